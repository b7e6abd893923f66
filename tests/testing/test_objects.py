"""Scripted and faulty models as providers in this process: what the real providers give over HTTP."""

import asyncio

import msgspec
import pytest
from tests.support.waiting import until
from tests.testing.clients import MODEL

from foldline.core.log.messages import Usage
from foldline.core.measure.overflow import Overflow
from foldline.dialects import get as dialect_of
from foldline.errors import ProviderError
from foldline.providers import Call, Delta, Reply, get
from foldline.testing import Answer, Faulty, Gate, Refusal, Scripted, call, calls, serve

DIALECTS = ("openai-chat", "openai-responses", "anthropic")
TEXT = "Twelve files were read, and nothing was changed. " * 5
HELLO = Call([{"role": "user", "content": "Hello"}], max_tokens=1_000, timeout=60.0)
EACH = pytest.mark.parametrize("dialect", DIALECTS)
WAYS = pytest.mark.parametrize(
    ("dialect", "stream"), [(dialect, stream) for dialect in DIALECTS for stream in (False, True)]
)


def over_http(url, dialect):
    maker = "anthropic" if dialect == "anthropic" else "openai"
    return get(f"{maker}-compatible:{MODEL}@{url}/v1", api_key="test", dialect=dialect)


async def ask(provider, asked=HELLO, *, stream=False):
    if not stream:
        return await provider.complete(asked)
    *deltas, reply = [piece async for piece in provider.stream(asked)]
    assert all(isinstance(delta, Delta) for delta in deltas)
    assert "".join(delta.text for delta in deltas if delta.kind == "text") == reply.text
    return reply


@WAYS
async def test_a_text_with_its_usage(dialect, stream):
    model = Scripted([TEXT], dialect=dialect)
    reply = await ask(model, stream=stream)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.stop, reply.model, reply.tokens_asked) == (TEXT, "end", MODEL, 1_000)
    assert reply.usage == Usage(input=5, output=reply.usage.output)
    assert (model.name, model.dialect) == ("scripted:scripted", dialect)
    await model.close()


@WAYS
async def test_a_call_of_a_tool_goes_round(dialect, stream):
    model = Scripted([call("read", path="a.py"), "Empty."], dialect=dialect)
    first = await ask(model, stream=stream)
    assert first.stop == "tools"
    message = dialect_of(dialect).decode_reply(first.native)
    assert [(one.name, one.arguments) for one in message.calls] == [("read", {"path": "a.py"})]


@WAYS
async def test_the_same_reply_as_over_http(dialect, stream):
    script = [Answer(TEXT, calls=call("read", path="a.py").calls, thinking="Let me see.")]
    asked = msgspec.structs.replace(HELLO, thinking=True, max_tokens=3_000)
    here = await ask(Scripted(script, dialect=dialect), asked, stream=stream)
    async with serve(Scripted(script)) as url:
        provider = over_http(url, dialect)
        there = await ask(provider, asked, stream=stream)
        await provider.close()
    assert (here.text, here.usage, here.stop) == (there.text, there.usage, there.stop)
    decode = dialect_of(dialect).decode_reply
    assert decode(here.native).parts == decode(there.native).parts


@WAYS
async def test_an_overflow_is_told_apart(dialect, stream):
    model = Scripted(["never"], dialect=dialect, window=1_000)
    long = Call([{"role": "user", "content": "word " * 2_000}], max_tokens=100)
    with pytest.raises(ProviderError) as caught:
        await ask(model, long, stream=stream)
    error = caught.value
    assert (error.kind, error.transient) == ("overflow", False)
    if dialect != "openai-responses":  # its words name no sizes
        assert error.overflow.limit == 1_000
        assert error.overflow.asked == model.requests[0].tokens
    assert isinstance(error.overflow, Overflow)


@EACH
async def test_errors_by_script_and_by_a_function_of_the_request(dialect):
    def by_length(asked):
        return Refusal(529) if len(asked.messages) > 1 else "short"

    model = Scripted([Refusal(429, retry_after=2), Refusal(500), by_length, by_length], dialect=dialect)
    kinds = []
    for asked in (HELLO, HELLO, msgspec.structs.replace(HELLO, messages=HELLO.messages * 2)):
        with pytest.raises(ProviderError) as caught:
            await ask(model, asked)
        kinds.append((caught.value.kind, caught.value.retry_after))
    assert kinds == [("rate", 2.0), ("server", None), ("overloaded", None)]
    assert (await ask(model)).text == "short"
    with pytest.raises(ProviderError, match="the script has 4 answers"):
        await ask(model)
    assert len(model.requests) == 5


KINDS = {
    "rate": {"rate"},
    "overloaded": {"overloaded"},
    "server": {"server"},
    "reset": {"connection"},
    "half": {"connection"},
    "stall": {"timeout"},
    "malformed": {"malformed"},
    "unfinished": {"connection", "malformed"},
}


@WAYS
@pytest.mark.parametrize("fault", KINDS)
async def test_every_fault_has_its_kind_here_and_over_http(dialect, stream, fault):
    asked = msgspec.structs.replace(HELLO, timeout=0.3 if fault == "stall" else 60.0)
    here = Faulty(Scripted([TEXT], dialect=dialect), seed=1, plan=[fault])
    found = set()
    with pytest.raises(ProviderError) as caught:
        await ask(here, asked, stream=stream)
    found.add(caught.value.kind)
    assert (await ask(here, stream=stream)).text == TEXT
    async with serve(Faulty(Scripted([TEXT]), seed=1, plan=[fault])) as url:
        provider = over_http(url, dialect)
        with pytest.raises(ProviderError) as caught:
            await ask(provider, asked, stream=stream)
        found.add(caught.value.kind)
        await provider.close()
    assert found <= KINDS[fault]
    assert caught.value.transient


async def test_cancelling_a_slow_answer_ends_it():
    model = Scripted([Answer("late", wait=Gate()), "next"])
    task = asyncio.create_task(model.complete(HELLO))
    await until(lambda: model.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await model.complete(HELLO)).text == "next"


def test_an_answer_takes_what_call_and_calls_return():
    made = Answer("I look.", calls=[call("read", path="a"), calls(call("read", path="b"), call("ls"))])
    assert [(one.name, one.arguments) for one in made.calls] == [
        ("read", {"path": "a"}),
        ("read", {"path": "b"}),
        ("ls", {}),
    ]
    with pytest.raises(TypeError, match="`calls` takes ToolCalls"):
        Answer(calls=["read"])


async def test_a_stream_closed_early_leaves_nothing_open():
    model = Scripted([TEXT, "next"])
    pieces = model.stream(HELLO)
    assert (await anext(pieces)).kind == "text"
    await pieces.aclose()
    assert (await model.complete(HELLO)).text == "next"


@EACH
async def test_silent_overflows_are_seen_by_the_provider(dialect):
    long = Call([{"role": "user", "content": "word " * 2_000}], max_tokens=100)
    reply = await Scripted(["Fine."], dialect=dialect, window=1_000, overflow="accept").complete(long)
    assert reply.overflow.limit == 1_000
    with pytest.raises(ProviderError) as caught:
        await Scripted(["Fine."], dialect=dialect, window=1_000, overflow="starve").complete(long)
    assert caught.value.kind == "overflow"
