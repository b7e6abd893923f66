"""A request that did not fit: a shorter reply, then one compaction, then one clear error."""

import asyncio

import openai
import pytest
from tests.support.live import (
    Events,
    Gate,
    answer,
    context_at,
    grow_to,
    policy_with,
    prompt,
    run_turns,
    session_on,
    setup,
)
from tests.support.waiting import until as settled

import foldline
from foldline.core.decide.overflow import share_left
from foldline.core.log.entries import Compacted, Noted
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.errors import CompactionFailed, FloorExceeded, InputError, OverflowRemains, ProviderError
from foldline.folding import overhead_of
from foldline.providers import Patience
from foldline.providers.base import Call
from foldline.session.overflow import overflow_in, shorter
from foldline.testing import Scripted, serve

WIDE = Window(context=100_000, output=8_000)


def too_long(limit=None, asked=None, max_tokens=None) -> ProviderError:
    sizes = Overflow(limit=limit, asked=asked, max_tokens=max_tokens)
    return ProviderError("prompt is too long", kind="overflow", status=400, overflow=sizes)


async def wide(store, summarizer=None, count=12, **more):
    more.setdefault("window", WIDE)
    session = session_on(store, summarizer, **more)
    await run_turns(session, count)
    await session.append(prompt(count))
    return session


async def test_what_the_provider_does_not_take_is_folded_until_it_does(store):
    """Our window is assumed ten times too wide; the model says so in the real words."""
    model = Scripted(lambda asked: "A short answer.", window=Window(context=4_000, output=500))
    session = await wide(store)
    heard = Events(session)
    sent = 0
    for number in range(13, 25):
        messages = await session.context()
        try:
            reply = await model.complete(Call(messages, max_tokens=200))
        except ProviderError as error:
            sent += 1
            messages = await session.overflowed(error, max_tokens=200)
            reply = await model.complete(Call(messages, max_tokens=session.max_tokens or 200))
        await session.append(reply.native)
        await session.append(prompt(number))
    assert sent == 1, "once the window is learnt, the triggers see to it"
    assert session.setup.window.context == 4_000
    assert heard.named("window_learnt")[0].context == 4_000
    assert heard.named("compacted")[0].receipt.reason == "overflow"
    assert len(await session.history()) == 24 + 1 + 2 * 12
    assert await session.verify() == []


async def test_a_learnt_window_is_known_after_a_restart_and_behind_later_boundaries(store):
    session = await wide(store)
    await session.overflowed(too_long(limit=8_000, asked=9_000))
    assert session.setup.window.context == 8_000
    await grow_to(session, 4_000, 20)
    await session.compact()
    await grow_to(session, 4_000, 40)
    await session.compact()
    await session.close()
    again = session_on(store, window=WIDE)
    await again.context()
    assert again.setup.window.context == 8_000
    assert (await again.stats()).usable < 8_000
    other = session_on(store, window=WIDE, model="another")
    await other.context()
    assert other.setup.window.context == WIDE.context


async def test_a_window_that_was_asked_for_is_never_widened(store):
    session = await wide(store, window=Window(context=50_000))
    await session.overflowed(too_long(limit=200_000, asked=210_000))
    assert session.setup.window.context == 50_000


async def test_an_unknown_window_is_narrowed_where_the_provider_names_none(store):
    session = await wide(store, known=False)
    size = session.view_tokens
    await session.overflowed(too_long())
    assert session.setup.window.context < size
    assert session.view_tokens < size


async def test_a_smaller_max_tokens_comes_first_and_folds_nothing(store):
    session = await wide(store)
    heard = Events(session)
    before = await session.context()
    error = too_long(limit=100_000, asked=90_000, max_tokens=16_000)
    assert await session.overflowed(error, max_tokens=16_000) == before
    assert session.max_tokens == 10_000
    assert heard.named("overflow")[0].remedy == "max_tokens"
    assert not heard.named("compacted")
    await session.append(answer(12))
    assert session.max_tokens is None
    await session.append(prompt(13))
    await session.overflowed(error)
    assert session.max_tokens == 10_000, "the error says what was asked for"
    await session.overflowed(error)
    assert session.max_tokens is None
    assert heard.named("compacted")[0].receipt.reason == "overflow", "who does not heed it is compacted"


async def test_later_requests_are_told_ahead_how_long_their_reply_may_be(store):
    """The provider counts the reply that is asked for: what fitted once does not two turns later."""
    session = await wide(store, count=30, window=Window(context=100_000, output=8_000))
    await session.context()
    size = session.view_tokens
    asked = size + size // 4  # the provider counts a quarter more than we do
    room = asked // 2  # more than what a policy keeps free for a reply, less than this caller asks for
    limit, wanted = asked + room, 2 * room
    await session.overflowed(too_long(limit=limit, asked=asked, max_tokens=wanted), max_tokens=wanted)
    assert session.max_tokens == room
    left = room
    for number in range(31, 34):
        await session.append(answer(number))
        assert session.max_tokens is None
        await session.append(prompt(number))
        await session.context()
        grown = (session.view_tokens - size) * 5 // 4
        assert session.max_tokens is not None
        assert session.max_tokens + asked + grown <= session.setup.window.context
        assert session.max_tokens < left
        left = session.max_tokens
    await session.context()
    assert session.max_tokens == left, "asked again, it says the same"
    await session.append(prompt(40))
    await session.context()
    assert session.max_tokens < left, "what more is said is counted"
    await session.compact(target=4_000)
    await session.context()
    assert session.max_tokens is None, "there is room again"


async def test_a_caller_who_asks_for_long_replies_is_refused_once_not_every_turn(store):
    """The provider adds the reply that is asked for to the request; the policy keeps less than that free."""
    model = Scripted(lambda asked: "A short answer.", window=Window(context=24_000, output=12_000))
    session = session_on(store, None, window=Window(context=24_000))
    refused, fitted = 0, 0
    for number in range(60):
        await session.append(prompt(number, 12))
        messages = await session.context()
        cap = 12_000
        try:
            fitted += session.max_tokens is not None
            reply = await model.complete(Call(messages, max_tokens=session.max_tokens or cap))
        except ProviderError as error:
            refused += 1
            messages = await session.overflowed(error, max_tokens=cap)
            reply = await model.complete(Call(messages, max_tokens=session.max_tokens or cap))
        await session.append(reply.native)
    assert fitted > 10, "there were turns in which the whole cap had no room"
    assert refused == 1, "what the first refusal told is kept in mind"


async def test_another_model_owes_nothing_to_the_reply_of_the_one_before(store):
    session = await wide(store)
    await session.overflowed(too_long(limit=100_000, asked=95_000, max_tokens=8_000), max_tokens=8_000)
    assert session.max_tokens == 5_000
    await session.use_model("any:other", window=200_000)
    assert session.max_tokens is None
    await session.context()
    assert session.max_tokens is None


async def test_a_second_overflow_is_one_clear_error_with_what_cannot_be_removed(store):
    session = await wide(store, system="be kind " * 500)
    await session.overflowed(too_long(asked=120_000))
    leaf = session.leaf
    with pytest.raises(OverflowRemains) as caught:
        await session.overflowed(too_long(asked=110_000))
    assert isinstance(caught.value, CompactionFailed)
    assert caught.value.breakdown["unanswered"] > 0
    assert caught.value.floor == sum(caught.value.breakdown.values())
    assert caught.value.asked == 110_000
    assert "already compacted for this message" in str(caught.value)
    assert isinstance(caught.value.__cause__, ProviderError)
    assert session.leaf == leaf, "nothing was written"
    await session.append(answer(12, 1), prompt(13, 1))
    assert await session.context()


async def test_a_tool_loop_may_overflow_again_once_the_model_has_replied(store):
    session = await wide(store)
    await session.overflowed(too_long(asked=120_000))
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    await session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    with pytest.raises(foldline.CallsOpen):
        await session.overflowed(too_long(asked=120_000))
    await session.append({"role": "tool", "tool_call_id": "c1", "content": "line\n" * 9_000})
    size = session.view_tokens
    messages = await session.overflowed(too_long(asked=120_000))
    assert session.view_tokens < size
    assert messages[-1]["role"] == "tool"


async def test_a_view_that_was_just_compacted_is_folded_further(store):
    session = await wide(store, count=30)
    receipt = await session.compact()
    after = receipt.tokens_after
    await session.context()
    await session.overflowed(too_long(asked=200_000))
    assert session.view_tokens < after


@pytest.mark.parametrize("fields", [{"on_overflow": False}, {"enabled": False}])
async def test_a_policy_that_forbids_it_is_obeyed(store, fields):
    session = await wide(store, policy=policy_with(**fields))
    error = too_long(asked=120_000)
    with pytest.raises(ProviderError) as caught:
        await session.overflowed(error)
    assert caught.value is error
    assert not [entry async for entry in store.path("s") if isinstance(entry, Compacted)]


async def test_disabled_but_for_overflows_is_obeyed_too(store):
    session = await wide(store, policy=policy_with(enabled=False, on_overflow=True))
    await session.overflowed(too_long(asked=120_000))
    assert [entry async for entry in store.path("s") if isinstance(entry, Compacted)]


async def test_what_is_no_overflow_is_raised_again(store):
    session = await wide(store)
    for error in (ProviderError("slow down", kind="rate", status=429), ValueError("a bug")):
        with pytest.raises(type(error)) as caught:
            await session.overflowed(error)
        assert caught.value is error
    with pytest.raises(InputError, match="not an overflow"):
        await session.overflowed({"choices": [{"message": answer(1), "finish_reason": "stop"}]})
    with pytest.raises(InputError):
        await session.overflowed("prompt is too long")


async def test_an_overflow_in_disguise_is_folded_by_the_next_context(store):
    """z.ai answers, with a usage above the window; nothing was refused."""
    session = await wide(store)
    heard = Events(session)
    usage = {"prompt_tokens": 140_000, "completion_tokens": 5}
    reply = {"choices": [{"message": answer(12, 1), "finish_reason": "stop"}], "usage": usage}
    await session.append(reply)
    await session.append(prompt(13, 1))
    messages = await session.context()
    assert heard.named("compacted")[0].receipt.reason == "overflow"
    assert messages[-1] == prompt(13, 1)
    assert overflow_in(reply, session.setup) == Overflow(limit=100_000, asked=140_000)


async def test_a_draft_that_is_ready_mends_an_overflow_at_once(store):
    gate = Gate(opened=True)
    session = session_on(store, gate)
    await context_at(session, 5_950)
    await settled(lambda: session._compactor.drafts.ready is not None)
    heard = Events(session)
    await session.overflowed(too_long(limit=10_000, asked=10_500))
    assert gate.asked == 1
    [done] = heard.named("compacted")
    assert done.drafted
    assert done.receipt.reason == "overflow"


async def test_a_draft_that_is_too_large_for_the_window_that_is_learnt_is_not_used(store):
    session = session_on(store, Gate(opened=True), window=Window(context=20_000, output=1_000))
    await context_at(session, 11_900)
    await settled(lambda: session._compactor.drafts.ready is not None)
    left = session._compactor.drafts.ready.boundary.receipt.tokens_after
    heard = Events(session)
    await session.overflowed(too_long(limit=left, asked=session.view_tokens))
    [done] = heard.named("compacted")
    assert not done.drafted
    assert session.view_tokens <= left * 0.85, "as much as the policy leaves usable of it"


async def test_an_overflow_waits_for_the_draft_in_the_making(store):
    gate = Gate()
    session = session_on(store, gate)
    await context_at(session, 5_950)
    await asyncio.wait_for(gate.begun.wait(), 60)
    mending = asyncio.create_task(session.overflowed(too_long(asked=11_000)))
    await asyncio.sleep(0.02)
    assert not mending.done()
    gate.go.set()
    await asyncio.wait_for(mending, 60)
    assert gate.asked == 1


async def test_a_message_that_nothing_can_make_fit_is_one_clear_error(store):
    system = "be kind " * 4_000
    given = {"system": system, "overhead": overhead_of(system, None, OFFLINE)}
    session = session_on(store, window=Window(context=3_000, output=500), **given)
    await session.append(prompt(1))
    with pytest.raises(FloorExceeded) as caught:
        await session.overflowed(too_long(limit=3_000, asked=9_000))
    assert caught.value.breakdown["system"] > 3_000
    assert caught.value.__cause__ is not None


async def test_sub_agents_skip_thresholds_but_not_overflows(store):
    session = session_on(store, subagent=True)
    heard = Events(session)
    await run_turns(session, 15)
    assert session.view_tokens > 8_500
    assert "compacted" not in heard.names
    assert "draft_started" not in heard.names
    await session.append(prompt(15))
    await session.overflowed(too_long(limit=10_000, asked=12_000))
    assert session.view_tokens < 8_500


def test_the_share_of_the_window_follows_the_providers_count():
    assert share_left(Overflow(asked=2_000), 1_000, 10_000) == 0.5
    assert share_left(Overflow(asked=500), 1_000, 10_000) == 1.0
    assert share_left(Overflow(), 1_000, 10_000) == pytest.approx(0.07)


def test_the_reply_that_was_asked_for_has_room_beside_what_is_left():
    assert share_left(Overflow(limit=8_000, asked=7_090), 7_090, 7_600, 1_000) == pytest.approx(7_000 / 7_600)
    assert share_left(Overflow(limit=8_000, asked=7_090, max_tokens=1_000), 7_090, 7_600) < 1
    assert share_left(Overflow(limit=8_000, asked=9_000), 9_000, 6_800, 100) == 1.0
    assert share_left(Overflow(limit=8_000, asked=9_000), 9_000, 6_800, 9_000) == pytest.approx(4_000 / 6_800)


async def test_a_view_that_is_small_enough_but_for_its_reply_is_folded_for_it(store):
    """The room is less than a reply wants (1,024 tokens at least), and the policy would leave it so."""
    session = await wide(
        store, policy=policy_with("codex"), window=Window(context=10_000, output=900), count=8
    )
    while session.view_tokens < 9_150:
        await session.append({"role": "user", "content": "and then " * 40})
    size = session.view_tokens
    assert size < session._shared.model.ask("overflow").usable
    await session.overflowed(too_long(limit=10_000, asked=size, max_tokens=900), max_tokens=900)
    assert session.view_tokens <= 9_100


async def test_the_session_s_summariser_learns_the_window_too():
    model = Scripted(lambda asked: "A short answer.", window=Window(context=6_000, output=3_000))
    async with serve(model) as url:
        name = f"openai-compatible:scripted@{url}/v1"
        session = foldline.open("memory://", "s", model=name, policy="pi")
        session.summarizer._patience = Patience(attempts=1)
        async with (
            session,
            openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=60) as client,
        ):
            await run_turns(session, 20)
            await session.append(prompt(20))
            with pytest.raises(openai.BadRequestError) as caught:
                await client.chat.completions.create(model="m", messages=await session.context())
            await session.overflowed(caught.value)
    asked = [request for request in model.requests if request.max_tokens]
    assert asked, "a summary was asked for"
    assert [request.refused for request in asked if request.refused] == []


async def test_what_the_official_sdk_raises_is_read(store):
    model = Scripted(lambda asked: "short", window=Window(context=4_000, output=500))
    session = await wide(store)
    async with (
        serve(model) as url,
        openai.AsyncOpenAI(base_url=url, api_key="any", max_retries=0, timeout=60) as client,
    ):
        messages = await session.context()
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="m", messages=messages, max_tokens=100)
        messages = await session.overflowed(caught.value, max_tokens=100)
        reply = await client.chat.completions.create(model="m", messages=messages, max_tokens=100)
    await session.append(reply)
    assert session.setup.window.context == 4_000
    assert (await session.history())[-1]["content"] == "short"


def test_words_of_any_exception_are_read():
    words = (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    )
    wide = setup(window=WIDE)
    assert overflow_in(RuntimeError(words), wide) == Overflow(limit=8192, asked=9000)
    assert overflow_in(RuntimeError("no"), wide) is None


def test_without_sizes_our_own_count_says_whether_a_shorter_reply_fits():
    assert shorter(Overflow(), setup(window=WIDE), 99_000, 8_000) is None
    assert shorter(Overflow(), setup(window=WIDE), 95_000, 8_000).max_tokens == 5_000
    assert shorter(Overflow(), setup(window=WIDE), 95_000, None) is None


async def test_notes_of_a_window_that_make_no_sense_are_left_alone(store):
    session = await wide(store)
    await session.note("window", model="", context="many")
    again = session_on(store, window=WIDE)
    await again.context()
    assert again.setup.window == WIDE
    assert [e.kind async for e in store.path("s") if isinstance(e, Noted)] == ["window"]
