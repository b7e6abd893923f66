"""Nobody waits: a summary is drafted in the background and committed in the time of an append."""

import asyncio

import pytest
from tests.support.live import (
    Events,
    Failing,
    Gate,
    answer,
    context_at,
    grow_to,
    joined_texts,
    policy_with,
    prompt,
    run_turns,
    session_on,
)
from tests.support.waiting import until as settled

from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Compacted, Pruned
from foldline.core.secrets import entries
from foldline.dialects import get

SOFT, HARD, USABLE = 5_950, 7_650, 8_500


async def drafted(store, gate, **more):
    """A session over its soft trigger, its summary in the making."""
    session = session_on(store, gate, **more)
    number = await context_at(session, SOFT)
    await asyncio.wait_for(gate.begun.wait(), 60)
    return session, number


async def test_above_the_soft_trigger_a_draft_is_made_while_the_session_goes_on(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    heard = Events(session)
    before = await session.context()
    await session.append(answer(number, 1))
    await run_turns(session, 2, number + 1, lines=1)
    assert (await session.context())[: len(before)] == before, "nothing is committed at the soft trigger"
    assert gate.asked == 1
    gate.go.set()
    await settled(lambda: session._compactor.drafts.ready is not None)
    assert heard.names.count("draft_ready") == 1
    assert (await session.context())[: len(before)] == before


async def test_at_the_hard_trigger_the_draft_is_committed_without_another_call(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    heard = Events(session)
    await session.append(answer(number))
    gate.go.set()
    await settled(lambda: session._compactor.drafts.ready is not None)
    number = await grow_to(session, HARD, number + 1)
    await session.append(prompt(number))
    messages = await session.context()
    [done] = heard.named("compacted")
    assert done.drafted
    assert gate.asked == 1
    assert "compaction_started" not in heard.names
    assert session.view_tokens < SOFT
    assert get("openai-chat").validate(messages) == []
    assert messages[-1]["content"] == prompt(number)["content"]
    assert done.receipt.tokens_after == session.view_tokens
    assert done.receipt.tokens_before > HARD
    stored = [entry async for entry in store.path("s") if isinstance(entry, Compacted)]
    assert [entry.id for entry in stored] == [done.entry]
    assert await session.verify() == []


async def test_the_commit_of_a_draft_looks_at_no_message_again(store, monkeypatch):
    looked = []
    clean = entries.clean_message
    monkeypatch.setattr(entries, "clean_message", lambda *given: looked.append(given[0]) or clean(*given))
    gate = Gate()
    session, number = await drafted(store, gate)
    gate.go.set()
    await settled(lambda: session._compactor.drafts.ready is not None)
    number = await grow_to(session, HARD, number + 1)
    await session.append(prompt(number))
    assert looked, "each message is looked at for secrets once"
    looked.clear()
    heard = Events(session)
    await session.context()
    assert "compacted" in heard.names
    assert not looked


async def test_what_a_draft_commits_is_what_a_fresh_reader_sees(store):
    gate = Gate(opened=True)
    session = session_on(store, gate)
    heard = Events(session)
    number = 0
    while not heard.named("compacted"):
        await run_turns(session, 1, number)
        await settled(lambda: not session._compactor.drafts.running)
        number += 1
    assert heard.named("compacted")[0].drafted
    other = session_on(store)
    assert await other.context() == await session.context()
    assert other.view_tokens == session.view_tokens
    await session.append(prompt(99))
    assert (await session_on(store).context())[-1] == prompt(99)


async def test_a_view_that_still_fits_does_not_wait_for_a_draft_in_the_making(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    await session.append(answer(number))
    number = await grow_to(session, HARD, number + 1)
    assert session.view_tokens <= USABLE
    await session.append(prompt(number, 1))
    messages = await asyncio.wait_for(session.context(), 60)
    assert len(messages) == 2 * number + 1, "all of it"
    gate.go.set()
    await settled(lambda: session._compactor.drafts.ready is not None)
    assert len(await session.context()) < 2 * number, "the moment is looked at again when the draft is there"


async def test_a_view_that_no_longer_fits_waits_for_the_draft_and_makes_no_second_one(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    await session.append(answer(number))
    while session.view_tokens <= USABLE:
        number += 1
        await session.append(prompt(number), answer(number))
    await session.append(prompt(number + 1))
    waiting = asyncio.create_task(session.context())
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await asyncio.wait_for(session.append({"role": "user", "content": "said while it waits"}), 60)
    gate.go.set()
    messages = await asyncio.wait_for(waiting, 60)
    assert gate.asked == 1
    assert messages[-1]["content"] == "said while it waits"
    assert session.view_tokens <= USABLE


async def test_what_was_said_while_a_draft_was_made_is_new_to_a_session_opened_later(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    await session.append(answer(number), prompt(number + 1, 100))
    gate.go.set()
    await session.context()
    left = session.view_tokens
    await session.close()
    again = session_on(store)
    await again.append(answer(number + 1))
    assert not isinstance(await again.compact(), Nothing), "what came since is new"
    assert again.view_tokens < left
    boundaries = [entry async for entry in store.path("s") if isinstance(entry, Compacted)]
    assert [boundary.seen is None for boundary in boundaries] == [False, True]
    assert isinstance(await again.compact(), Nothing)


async def test_a_draft_that_would_leave_too_much_is_made_anew(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    await session.append(answer(number), prompt(number + 1, 220))
    gate.go.set()
    await session.context()
    assert session.view_tokens <= HARD
    [boundary] = [entry async for entry in store.path("s") if isinstance(entry, Compacted)]
    assert boundary.seen is None, "it was planned on the view as it is"


async def test_only_where_no_draft_is_there_somebody_waits(store):
    gate = Gate()
    session = session_on(store, gate)
    heard = Events(session)
    await session.append(*(said for number in range(20) for said in (prompt(number), answer(number))))
    await session.append(prompt(20))
    waiting = asyncio.create_task(session.context())
    await asyncio.wait_for(gate.begun.wait(), 60)
    assert heard.names.count("compaction_started") == 1
    assert "draft_started" not in heard.names
    gate.go.set()
    await asyncio.wait_for(waiting, 60)
    assert [event.drafted for event in heard.named("compacted")] == [False]


async def test_a_pin_set_after_the_draft_is_quoted_by_what_is_committed(store):
    gate = Gate()
    session = session_on(store, gate)
    [odd] = await session.append({"role": "user", "content": "The clock is 7 minutes late."})
    await session.append(answer(0, 1))
    number = await context_at(session, SOFT, 1)
    await asyncio.wait_for(gate.begun.wait(), 60)
    await session.pin(odd)
    gate.go.set()
    await settled(lambda: session._compactor.drafts.ready is not None)
    await session.append(answer(number))
    number = await grow_to(session, HARD, number + 1)
    await session.append(prompt(number))
    folded = await session.context()
    assert gate.asked == 1
    assert "The clock is 7 minutes late." in joined_texts(folded[:1])
    await session.unpin(odd)


@pytest.mark.parametrize("act", ["compact", "undo"])
async def test_a_boundary_that_comes_first_makes_a_draft_void(store, act):
    gate = Gate(opened=True)
    session = session_on(store, gate)
    await grow_to(session, 3_000)
    await session.compact()
    number = await context_at(session, SOFT, 40)
    await settled(lambda: session._compactor.drafts.ready is not None)
    asked = gate.asked
    await (session.compact() if act == "compact" else session.undo())
    await session.append(answer(number))
    await run_turns(session, 1, number + 1)
    assert not session._compactor.drafts.ready or gate.asked > asked
    number = await grow_to(session, HARD, number + 2) if act == "compact" else number + 2
    await session.append(prompt(number))
    assert get("openai-chat").validate(await session.context()) == []
    assert session.view_tokens <= USABLE


async def test_closing_cancels_a_draft_and_leaves_the_session_as_it_was(store):
    gate = Gate()
    session, _ = await drafted(store, gate)
    before = await session.context()
    await session.close()
    again = session_on(store)
    assert await again.context() == before
    assert gate.asked == 1


async def test_a_draft_whose_summariser_fails_is_written_offline(store):
    broken = Failing()
    session = session_on(store, broken)
    heard = Events(session)
    await context_at(session, SOFT)
    await settled(lambda: session._compactor.drafts.ready is not None)
    assert heard.named("draft_ready")[0].receipt.summarizer == "offline"
    assert not heard.named("draft_failed")


async def test_by_hand_a_draft_in_the_making_is_dropped(store):
    gate = Gate()
    session, _ = await drafted(store, gate)
    heard = Events(session)
    doing = asyncio.create_task(session.compact("look at the fox"))
    await settled(lambda: gate.asked == 2)
    gate.go.set()
    receipt = await asyncio.wait_for(doing, 60)
    assert receipt.reason == "manual"
    assert not heard.named("draft_ready")
    assert not session._compactor.drafts.running


async def test_a_policy_without_background_drafts_nothing(store):
    gate = Gate(opened=True)
    session = session_on(store, gate, policy=policy_with(background=False))
    heard = Events(session)
    await run_turns(session, 20)
    assert heard.named("compacted")
    assert not heard.named("draft_started")


async def test_a_prune_that_is_enough_is_drafted_and_committed_without_a_summary(store):
    gate = Gate(opened=True)
    session = session_on(store, gate)
    heard = Events(session)
    for number in range(40):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        await session.append(prompt(number, 1), {"role": "assistant", "content": None, "tool_calls": [call]})
        await session.append(
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"line {number}\n" * 300}
        )
        assert get("openai-chat").validate(await session.context()) == []
        assert session.view_tokens <= USABLE
        await session.append(answer(number, 1))
        await settled(lambda: not session._compactor.drafts.running)
    assert heard.named("pruned")
    assert any(event.drafted for event in heard.named("pruned"))
    pruned = [entry async for entry in store.path("s") if isinstance(entry, Pruned)]
    assert len(pruned) == len(heard.named("pruned"))


async def test_what_was_drafted_is_committed_before_a_session_is_left(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    await session.append(answer(number))
    asyncio.get_running_loop().call_later(0.05, gate.go.set)
    receipt = await session.commit_draft()  # it waits for the one that is being written
    assert receipt is not None
    assert receipt.reason == "threshold"
    assert receipt.tokens_after < receipt.tokens_before
    assert await session.commit_draft() is None
    assert (await session.stats()).summaries == 1
    assert get(session.dialect).validate(await session.context()) == []
    await session.close()
    again = session_on(store, Gate())
    assert (await again.stats()).summaries == 1


async def test_no_draft_is_committed_while_calls_are_open_or_where_the_path_has_left_it(store):
    gate = Gate()
    session, number = await drafted(store, gate)
    gate.go.set()
    await session.append(answer(number))
    await settled(lambda: session._compactor.drafts.ready is not None)
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    await session.append({"role": "assistant", "content": None, "tool_calls": [call]})
    assert await session.commit_draft() is None
    await session.append({"role": "tool", "tool_call_id": "c", "content": "seen"}, answer(number))
    entries = [entry.id async for entry in store.path(session.id)]
    await session.branch(entries[1])
    assert await session.commit_draft() is None


async def test_a_draft_that_tells_what_was_left_by_a_rewind_is_not_committed(store):
    gate = Gate(opened=True)
    session = session_on(store, gate)
    number = await grow_to(session, SOFT)
    await session.append({"role": "user", "content": "Never touch the parser. " + prompt(number)["content"]})
    await session.context()
    await settled(lambda: session._compactor.drafts.ready is not None)
    await session.rewind()
    assert await session.commit_draft() is None
    number = await grow_to(session, HARD, number)
    await session.append(prompt(number))
    folded = joined_texts(await session.context())
    assert (await session.stats()).summaries == 1
    assert "Never touch the parser." not in folded
