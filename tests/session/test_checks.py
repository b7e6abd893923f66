"""What a policy does right behind a message: in the background, while the user reads, and nobody waits."""

import asyncio
from contextvars import copy_context

import pytest
from tests.support.live import Events, Gate, answer, grow_to, policy_with, prompt, session_on
from tests.support.waiting import until as settled

from foldline.core.decide.ask import Nothing
from foldline.core.decide.policy import Keep
from foldline.core.log.entries import Compacted, Noted, Pruned, Said
from foldline.core.measure.window import Amount
from foldline.dialects import get
from foldline.errors import FloorExceeded
from foldline.session import boundary
from foldline.session.shared import summaries_by

SOFT, HARD, USABLE = 5_950, 7_650, 8_500
SMALL = {"estimator": "foldline", "reserve": Amount(tokens=1_500), "keep": Keep(amount=Amount(tokens=2_000))}
PI = policy_with("pi", **SMALL)
GENCODE = policy_with("gencode", estimator="foldline", reserve=Amount(tokens=1_500))


async def path(store):
    return [entry async for entry in store.path("s")]


async def boundaries(store):
    return [entry for entry in await path(store) if isinstance(entry, Compacted | Pruned)]


async def nearly_full(session, tokens=USABLE):
    """Append turns, as long as one more stays below so many tokens, then a short question; returns its number."""
    for number in range(40):
        before = session.view_tokens
        await session.append(prompt(number))
        await session.context()
        await session.append(answer(number))
        if session.view_tokens + (session.view_tokens - before) > tokens - 100:
            break
    await session.append(prompt(number + 1, 1))
    await session.context()
    return number + 1


def long_answer(number):
    """Return a reply that is larger than the turn for which `nearly_full` found no room."""
    return answer(number, 45)


def read_call(made):
    return {"id": made, "type": "function", "function": {"name": "read", "arguments": "{}"}}


async def test_pi_folds_after_the_reply_before_the_next_message_is_said(store):
    session = session_on(store, policy=PI)
    number = await nearly_full(session)
    assert not await boundaries(store)
    await session.append(long_answer(number))
    await session.settled()
    assert isinstance((await path(store))[-1], Compacted)
    view = session.view_tokens
    await session.append(prompt(number + 1))
    messages = await session.context()
    assert messages[-1] == prompt(number + 1)
    assert len(await boundaries(store)) == 1
    assert view < session.view_tokens < USABLE


async def test_pi_folds_in_no_tool_loop_behind_a_reply_that_calls(store):
    session = session_on(store, policy=PI)
    number = await nearly_full(session)
    await session.append(
        {"role": "assistant", "content": long_answer(number)["content"], "tool_calls": [read_call("c1")]}
    )
    await session.settled()
    assert not await boundaries(store), "the call waits for its result"
    await session.append({"role": "tool", "tool_call_id": "c1", "content": "a line"})
    await session.settled()
    assert not await boundaries(store), "nobody reads yet: the next request looks"
    await session.context()
    assert len(await boundaries(store)) == 1


async def test_gencode_folds_on_append_once_all_calls_are_answered(store):
    session = session_on(store, policy=GENCODE)
    number = await nearly_full(session)
    calls = [read_call("c1"), read_call("c2")]
    await session.append({"role": "assistant", "content": None, "tool_calls": calls})
    await session.append({"role": "tool", "tool_call_id": "c1", "content": prompt(0, 60)["content"]})
    await session.settled()
    assert session.view_tokens > USABLE
    assert not await boundaries(store), "a call waits for its result"
    await session.append({"role": "tool", "tool_call_id": "c2", "content": "a line"})
    await session.settled()
    assert len(await boundaries(store)) == 1
    assert get("openai-chat").validate(await session.context()) == []
    assert number


async def test_gencode_folds_behind_the_message_of_the_user_too(store):
    session = session_on(store, policy=GENCODE)
    number = await nearly_full(session, USABLE - 200)
    await session.append(answer(number, 1))
    await session.settled()
    assert not await boundaries(store)
    await session.append(prompt(number + 1, 80))
    await session.settled()
    assert len(await boundaries(store)) == 1
    assert (await session.context())[-1] == prompt(number + 1, 80)


async def test_the_draft_of_foldline_begins_after_the_reply(store):
    gate = Gate()
    session = session_on(store, gate)
    heard = Events(session)
    number = await nearly_full(session, SOFT)
    assert not heard.named("draft_started")
    await session.append(long_answer(number))
    await asyncio.wait_for(gate.begun.wait(), 60)
    assert heard.names[-1] == "draft_started"
    gate.go.set()
    await session.settled()
    assert heard.names[-1] == "draft_ready"
    assert not await boundaries(store), "above the soft trigger nothing is committed"


async def test_a_policy_that_looks_before_requests_does_nothing_behind_a_message(store):
    session = session_on(store, policy=policy_with("klaude", **SMALL))
    await session.append(*(said for number in range(20) for said in (prompt(number), answer(number))))
    await session.append(prompt(20))
    await session.settled()
    assert not await boundaries(store)
    await session.context()
    assert len(await boundaries(store)) == 1


async def test_an_append_never_waits_and_what_is_said_meanwhile_stays_behind_the_cut(store):
    gate = Gate()
    session = session_on(store, gate, policy=PI)
    number = await nearly_full(session)
    await asyncio.wait_for(session.append(long_answer(number)), 60)
    await asyncio.wait_for(gate.begun.wait(), 60)
    await asyncio.wait_for(session.append(prompt(number + 1)), 60)
    waiting = asyncio.create_task(session.context())
    await asyncio.sleep(0.05)
    assert not waiting.done(), "the view does not fit before it is folded"
    gate.go.set()
    messages = await asyncio.wait_for(waiting, 60)
    assert gate.asked == 1
    assert messages[-1] == prompt(number + 1)
    assert session.view_tokens < USABLE
    said = [entry for entry in await path(store) if isinstance(entry, Said | Compacted)]
    assert [type(entry) for entry in said[-2:]] == [Said, Compacted]


async def test_appends_in_a_row_start_one_look_and_one_compaction(store):
    gate = Gate()
    session = session_on(store, gate, policy=GENCODE)
    heard = Events(session)
    number = await nearly_full(session)
    for more in range(3):
        await session.append(long_answer(number + more))
        await session.append(prompt(number + more + 1))
    gate.go.set()
    await asyncio.wait_for(session.settled(), 60)
    assert heard.names.count("compaction_started") == 1
    assert gate.asked == 1
    assert len(await boundaries(store)) == 1
    await session.settled()


async def test_a_compaction_that_fails_behind_an_append_is_told_and_struck_once(store, monkeypatch):
    session = session_on(store, policy=PI)
    heard = Events(session)
    number = await nearly_full(session)

    def broken(*_):
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(boundary, "plan", broken)
        await session.append(long_answer(number))
        await session.settled()
        assert heard.names[-4:] == ["compaction_started", "strike", "cooldown", "warning"]
        await session.append(prompt(number + 1))
        assert len(await session.context()) == 2 * number + 3, "it cools down, and the session goes on"
    kinds = [entry.kind for entry in await path(store) if isinstance(entry, Noted)]
    assert kinds.count("strike") == 1
    assert not isinstance(await session.compact(), Nothing)
    assert await session.verify() == []


async def test_a_floor_that_nothing_can_lower_is_raised_by_the_next_request_not_by_an_append(store):
    session = session_on(store, policy=PI)
    for number in range(3):
        [entry, _] = await session.append(prompt(number, 160), answer(number, 1))
        await session.pin(entry)
    await session.append(answer(4))
    await session.settled()
    assert session.view_tokens > USABLE
    with pytest.raises(FloorExceeded):
        await session.context()
    await session.settled()


@pytest.mark.parametrize("policy", [PI, policy_with()], ids=["compacting", "drafting"])
async def test_closing_midway_leaves_the_session_whole(store, policy):
    gate = Gate()
    session = session_on(store, gate, policy=policy)
    number = await nearly_full(session, USABLE if policy is PI else SOFT)
    await session.append(long_answer(number))
    await asyncio.wait_for(gate.begun.wait(), 60)
    await asyncio.wait_for(session.close(), 60)
    await session.settled()
    assert not await boundaries(store)
    again = session_on(store, policy=policy)
    assert await again.verify() == []
    await again.append(prompt(number + 1))
    assert (await again.context())[-1] == prompt(number + 1)
    await again.append(answer(number + 1, 1))
    await again.settled()
    assert len(await boundaries(store)) == (1 if policy is PI else 0)


async def test_by_hand_what_goes_on_in_the_background_gives_way(store):
    gate = Gate()
    session = session_on(store, gate, policy=PI)
    heard = Events(session)
    number = await nearly_full(session)
    await session.append(long_answer(number))
    await asyncio.wait_for(gate.begun.wait(), 60)
    doing = asyncio.create_task(session.compact("look at the fox"))
    await settled(lambda: gate.asked == 2)
    gate.go.set()
    receipt = await asyncio.wait_for(doing, 60)
    await session.settled()
    assert receipt.reason == "manual"
    assert [event.receipt.reason for event in heard.named("compacted")] == ["manual"]


@pytest.mark.parametrize(
    "more", [{"policy": policy_with(enabled=False)}, {"policy": policy_with(), "subagent": True}]
)
async def test_where_no_threshold_counts_nothing_begins(store, more):
    gate = Gate(opened=True)
    session = session_on(store, gate, **more)
    heard = Events(session)
    await grow_to(session, 9_000)
    await session.settled()
    assert set(heard.names) == {"message"}
    assert gate.asked == 0


async def test_what_is_said_while_a_boundary_is_made_is_new_to_the_next_request(store):
    gate = Gate()
    session = session_on(store, gate, policy=policy_with("klaude", **SMALL))
    number = await nearly_full(session)
    making = asyncio.create_task(session.compact())
    await asyncio.wait_for(gate.begun.wait(), 60)
    for more in range(number, number + 30):
        await session.append(answer(more), prompt(more + 1))
    gate.go.set()
    assert not isinstance(await asyncio.wait_for(making, 60), Nothing)
    assert session.view_tokens > USABLE, "it was asked for by hand, and stands"
    await asyncio.wait_for(session.context(), 60)
    assert session.view_tokens < USABLE
    assert len(await boundaries(store)) == 2


async def test_a_look_that_one_caller_began_folds_nothing_for_another(store, monkeypatch):
    ada, bob = Gate(opened=True), Gate(opened=True)
    session, append = session_on(store, policy=PI), store.append
    said = []

    def say(summarizer, *messages):
        context = copy_context()
        context.run(summaries_by.set, summarizer)
        return asyncio.create_task(session.append(*messages), context=context)

    async def append_beside_bob(name, entries, **given):
        if isinstance(entries[0], Compacted) and not said:
            said.append(
                say(bob, *(one(number + more) for more in range(1, 6) for one in (prompt, long_answer)))
            )
            for _ in range(20):  # until he waits for the lock, before Ada's look takes it again
                await asyncio.sleep(0)
        return await append(name, entries, **given)

    monkeypatch.setattr(store, "append", append_beside_bob)
    number = await nearly_full(session)
    await say(ada, long_answer(number))
    await session.settled()
    await said[0]
    await session.settled()
    assert len(await boundaries(store)) == 2
    assert (ada.asked, bob.asked) == (1, 1)
