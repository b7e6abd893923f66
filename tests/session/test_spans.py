"""OpenTelemetry: the span of a compaction, the span of a model's call, and what coop's plan wants to see in a trace.

coop's list: `compaction` spans when the context exceeds the threshold; `running compaction` with
messages_to_summarize, cut_index and tokens_before; `compaction complete` with summary_len and summary_tokens;
`session compacted` with tokens_before and first_kept; later requests with fewer messages; input tokens bounded.
"""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from opentelemetry.util.genai.handler import TelemetryHandler
from tests.support.live import Gate, answer, context_at, prompt, run_turns, session_on
from tests.support.waiting import until as settled

from foldline import tracing
from foldline.core.log.entries import Said
from foldline.core.measure.window import Window
from foldline.errors import ProviderError
from foldline.providers.base import Call
from foldline.testing import Refusal, Scripted


def named(spans, name):
    return [span for span in spans() if span.name == name]


def events(span):
    return {event.name: dict(event.attributes) for event in span.events}


async def test_a_compaction_by_hand_is_a_span_with_what_it_did(store, spans):
    session = session_on(store)
    await run_turns(session, 6)
    receipt = await session.compact()
    [span] = named(spans, "compaction")
    seen = dict(span.attributes)
    assert seen["foldline.reason"] == "manual"
    assert seen["foldline.cut"] == receipt.first_kept
    assert seen["foldline.messages_folded"] == receipt.dropped["messages"]
    assert seen["foldline.tokens_before"] == receipt.tokens_before
    assert seen["foldline.tokens_after"] == receipt.tokens_after
    assert seen["foldline.session"] == "s"
    assert "the quick brown fox" not in str(seen) + str(events(span)), "no word of the session is in a trace"


async def test_coops_verification_list(store, spans):
    window = Window(context=34_000, output=2_000)
    model = Scripted(lambda asked: f"Answer {asked.index}. " + "It is so. " * 60, window=window)
    session = session_on(store, Gate(opened=True), policy="coop", window=window)
    for number in range(60):
        await session.append(prompt(number, 8))
        reply = await model.complete(Call(await session.context(), max_tokens=1_000))
        await session.append(reply.native)
    folds = named(spans, "compaction")
    assert folds
    for span in folds:
        assert span.attributes["foldline.reason"] == "threshold"
        told = events(span)
        running, complete, done = (
            told[name] for name in ("running compaction", "compaction complete", "session compacted")
        )
        assert running["messages_to_summarize"] > 0
        assert running["cut_index"] > 0
        assert running["tokens_before"] == done["tokens_before"] == span.attributes["foldline.tokens_before"]
        assert complete["summary_len"] > 0
        assert complete["summary_tokens"] > 0
        assert done["first_kept"]
        assert done["summary_len"] > 0
        assert span.attributes["foldline.tokens_after"] < running["tokens_before"]
    calls = named(spans, "chat scripted")
    assert len(calls) == 60
    counts = [span.attributes[tracing.MESSAGE_COUNT] for span in calls]
    inputs = [span.attributes[tracing.INPUT_TOKENS] for span in calls]
    drops = [i for i in range(1, 60) if counts[i] < counts[i - 1]]
    assert len(drops) == len(folds), "each later request has fewer messages"
    assert all(inputs[i] < inputs[i - 1] for i in drops)
    assert max(inputs) <= window.context
    assert max(inputs[drops[0] :]) <= inputs[drops[0] - 1] * 1.2, "bounded, not growing without end"


async def test_the_cut_counts_all_messages_of_the_session_from_the_second_compaction_on_too(store, spans):
    session = session_on(store, window=Window(context=20_000, output=1_000))  # folded by hand alone
    for _ in range(3):
        await run_turns(session, 6)
        await session.compact()
    said = [entry.id async for entry in store.path("s") if isinstance(entry, Said)]
    folds = named(spans, "compaction")
    assert len(folds) == 3
    for number, span in enumerate(folds, start=1):
        running, done = (events(span)[name] for name in ("running compaction", "session compacted"))
        assert running["total_messages"] == len(said) * number / 3
        assert running["cut_index"] == said.index(done["first_kept"])
        assert 0 < running["messages_to_summarize"] <= running["cut_index"] < running["total_messages"]


async def test_a_mended_overflow_is_a_span_and_the_retry_another(store, spans):
    window = Window(context=10_000, output=1_000)
    model = Scripted(lambda asked: "It is so.", window=window)
    session = session_on(store, Gate(opened=True), window=window)
    await run_turns(session, 4)
    await session.append(prompt(9))
    messages = await session.context()
    mended = await session.overflowed(
        RuntimeError("prompt is too long: 12000 tokens > 10000 maximum"), view=messages
    )
    await model.complete(Call(mended, max_tokens=100))
    fold, call = named(spans, "compaction")[0], named(spans, "chat scripted")[0]
    assert fold.attributes["foldline.reason"] == "overflow"
    assert {"running compaction", "compaction complete", "session compacted"} == set(events(fold))
    assert call.attributes[tracing.MESSAGE_COUNT] < len(messages)


async def test_a_draft_is_a_span_and_its_commit_another(store, spans):
    session = session_on(store, Gate(opened=True))
    number = await context_at(session, 5_950)
    await settled(lambda: session._compactor.drafts.ready is not None)
    assert [span.name for span in spans()] == ["compaction_draft"]
    await session.append(answer(number))
    number = await context_at(session, 7_650, number + 1)
    [span] = named(spans, "compaction")
    assert span.attributes["foldline.drafted"] is True
    assert set(events(span)) == {"session compacted"}


async def test_the_call_of_a_model_is_a_span_of_the_gen_ai_conventions(spans):
    model = Scripted(["Hello.", "Hello again.", Refusal(429, "slow down")], model="m")
    await model.complete(Call([{"role": "user", "content": "Hi"}], max_tokens=100))
    async for _ in model.stream(Call([{"role": "user", "content": "Hi"}], max_tokens=100)):
        pass
    with pytest.raises(ProviderError):
        await model.complete(Call([{"role": "user", "content": "Hi"}]))
    whole, stream, refused = named(spans, "chat m")
    for span in (whole, stream):
        assert span.attributes["gen_ai.operation.name"] == "chat"
        assert span.attributes["gen_ai.request.model"] == "m"
        assert span.attributes["gen_ai.request.max_tokens"] == 100
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
        assert span.attributes["gen_ai.usage.output_tokens"] > 0
        assert span.attributes["gen_ai.response.finish_reasons"] == ("end",)
        assert span.status.status_code is StatusCode.UNSET
    assert refused.status.status_code is StatusCode.ERROR
    assert refused.attributes["error.type"] == "rate"


def conventional(session):
    """The attributes that OpenTelemetry's own library gives a streamed call of a folded conversation."""
    exporter = InMemorySpanExporter()
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    handler = TelemetryHandler(tracer_provider=tracers)
    with handler.inference("openai", request_model="m", conversation_id=session) as call:
        call.request_stream = True
        call.max_tokens = 100
        call.conversation_compacted = True
        call.response_model_name = "m"
        call.finish_reasons = ["stop"]
        call.input_tokens, call.output_tokens = 10, 1
        call.cache_read_input_tokens, call.cache_write_input_tokens = 4, 5
    [made] = exporter.get_finished_spans()
    return dict(made.attributes)


async def test_what_a_call_says_bears_the_names_of_the_conventions_own_library(store, spans):
    model = Scripted(["Hello."] * 2, model="m")
    session = session_on(store)
    await run_turns(session, 6)
    await session.append(prompt(6))
    before = await session.context()
    await model.complete(Call(before))
    await session.compact()
    async for _ in model.stream(Call(await session.context(), max_tokens=100)):
        pass
    whole, folded = (dict(span.attributes) for span in named(spans, "chat m"))
    expected = conventional("s")
    ours = {name for name in folded if not name.startswith("foldline.")}
    assert ours == set(expected)
    for name in (tracing.CONVERSATION, tracing.COMPACTED, tracing.REQUEST_STREAM, tracing.OPERATION):
        assert folded[name] == expected[name]
    assert whole[tracing.CONVERSATION] == "s"
    assert tracing.COMPACTED not in whole, "it is said where it is so, and never denied"
    [fold] = named(spans, "compaction")
    assert fold.attributes[tracing.CONVERSATION] == "s"


async def test_a_model_asked_for_a_summary_is_a_child_of_the_compaction(store, spans):
    model = Scripted(["no summary"] * 9, model="writer")

    class Asks:
        name = "model:writer"

        async def summarize(self, request):
            await model.complete(Call([{"role": "user", "content": "sum it up"}]))
            raise RuntimeError("whatever it said")

    session = session_on(store, Asks())
    await run_turns(session, 6)
    await session.compact()
    [fold], [call] = named(spans, "compaction"), named(spans, "chat writer")
    assert call.parent.span_id == fold.context.span_id
