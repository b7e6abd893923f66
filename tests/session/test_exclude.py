"""Messages taken out of a live session: what the model, its tools, folds and other sessions see of them."""

import asyncio

import pytest
from tests.support.live import Gate, run_turns, session_on
from tests.support.talk import assistant, call, tool, user

from foldline.core.log.entries import Receipt
from foldline.errors import InputError
from foldline.session.events import PruneDone, Undone
from foldline.session.sync import SyncSession
from foldline.stores import MemoryStore

RULE = "Never touch the zebra table."


async def asked(session) -> str:
    """Return what the model is sent."""
    return str(await session.context())


async def test_a_message_is_out_until_an_undo(store):
    session = session_on(store)
    first, *_ = await session.append(
        user(RULE), assistant("I will not."), user("and now?"), assistant("done")
    )
    heard = []
    for name in (PruneDone.name, Undone.name):
        session.on(name, heard.append)
    before = await asked(session)
    receipt = await session.exclude(first)
    assert isinstance(receipt, Receipt)
    assert receipt.tokens_before - receipt.tokens_after > 0
    assert "zebra" not in await asked(session)
    assert [type(event) for event in heard] == [PruneDone]
    assert [info.how for info in await session.entries()] == ["excluded", "kept", "kept", "kept"]
    assert "zebra" in str(await session.history())
    assert (await session.constraints()).standing == ()
    with pytest.raises(InputError, match="undo the exclusion, then pin it"):
        await session.pin(first)
    await session.undo()
    assert await asked(session) == before
    assert [fact.text for fact in (await session.constraints()).standing] == [RULE]
    assert isinstance(heard[-1], Undone)
    await session.redo()
    assert "zebra" not in await asked(session)
    assert (await session.constraints()).standing == ()
    assert await session.verify() == []


async def test_a_fold_a_hand_off_and_another_process_leave_it_out(store):
    session = session_on(store)
    first, *_ = await session.append(user(RULE), assistant("The zebra is safe."))
    await run_turns(session, 6)
    for entry in [one.entry for one in (await session.entries())[:2]]:
        await session.exclude(entry)
    await session.compact()
    assert "zebra" not in await asked(session)
    assert "zebra" not in await session.preview_handoff("go on")
    later = session_on(store)
    assert "zebra" not in await asked(later)
    with pytest.raises(InputError, match="already taken out of the context"):
        await later.exclude(first)
    assert [info.how for info in await later.entries()][:3] == ["excluded", "excluded", "folded"]


async def test_the_models_tools_do_not_find_it_and_the_user_does(store):
    session = session_on(store)
    entries = await session.append(
        user("read"),
        assistant("", call("a"), call("b")),
        tool("a", "zebra"),
        tool("b", "lion"),
        assistant("done"),
    )
    await session.exclude(entries[2])
    assert "Nothing in this conversation matches" in await session.call_tool(
        "recall_search", {"query": "zebra"}
    )
    assert "taken out of the context by the user" in await session.call_tool(
        "recall_read", {"entry": entries[2]}
    )
    assert entries[2] not in await session.call_tool("recall_list")
    assert [hit.entry for hit in await session.recall("zebra")] == [entries[2]]
    assert "zebra" in (await session.read(entries[2])).text
    assert [info.entry for info in await session.folded()] == [entries[2]]
    begun = await session.handoff("go on")
    assert "Nothing in this conversation matches" in await begun.call_tool(
        "recall_search", {"query": "zebra"}
    )
    await session.undo()
    assert entries[2] in await begun.call_tool("recall_search", {"query": "zebra"})


async def test_one_part_goes_and_the_others_stay(store):
    session = session_on(store)
    (entry,) = await session.append(
        {"role": "user", "content": [{"type": "text", "text": "zebra"}, {"type": "text", "text": "lion"}]}
    )
    await session.append(assistant("yes"))
    await session.exclude(entry, 0)
    assert "zebra" not in await asked(session)
    assert "lion" in await asked(session)
    assert "zebra" not in await session.call_tool("recall_read", {"entry": entry})
    with pytest.raises(InputError, match="has no part 0 in the context; it has 1"):
        await session.exclude(entry, 0)


async def test_what_is_no_message_is_refused(store):
    session = session_on(store)
    await session.append(user("hello"), assistant("yes"))
    with pytest.raises(InputError, match="no message 'nowhere'"):
        await session.exclude("nowhere")


async def test_a_summary_that_was_asked_for_before_is_not_committed(store):
    gate = Gate()
    session = session_on(store, gate)
    first, *_ = await session.append(user(RULE), assistant("The zebra is safe."))
    await run_turns(session, 6)
    making = asyncio.create_task(session.compact())
    await gate.begun.wait()
    await session.exclude(first)
    gate.go.set()
    assert not isinstance(await making, Receipt)
    assert "zebra table" not in await asked(session)


def test_the_session_without_async_does_the_same():
    with SyncSession(session_on(MemoryStore())) as session:
        first, *_ = session.append(user(RULE), assistant("yes"), user("and now?"))
        session.exclude(first)
        assert "zebra" not in str(session.context())


async def test_what_was_said_after_a_fold_that_kept_nothing_stays_in_the_live_view(store):
    session = session_on(store, policy="codex")
    await run_turns(session, 3)
    first, *_ = await session.append(user(RULE), assistant("I will not."))
    assert isinstance(await session.compact(), Receipt)
    await session.append(user("and now?"))
    await session.exclude(first)
    assert "and now?" in await asked(session)
    assert RULE not in await asked(session)


async def test_a_range_is_folded_in_which_a_result_was_taken_out(store):
    session = session_on(store)
    ids = await session.append(
        user("look"), assistant("", call("c1", path="a")), tool("c1", "zebra " * 50), assistant("I see")
    )
    await run_turns(session, 2)
    await session.exclude(ids[2])
    assert isinstance(await session.compact(since=ids[1]), Receipt)
    assert "zebra" not in await asked(session)
    assert "taken out of the context" not in await asked(session)
