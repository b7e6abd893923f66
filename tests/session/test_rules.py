"""The rules of a session that goes on are those of its path, and each entry of it is read once."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.support.live import run_turns, session_on
from tests.support.talk import assistant, user

from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.session.rules import rules_of
from foldline.stores import MemoryStore

LIFT = "You may now push to main."
RULE = "Never push to main."


async def of_path(session):
    return rules_of([entry async for entry in session.store.path(session.id)])


async def test_each_step_of_a_session_leaves_the_rules_of_its_path(store):
    session = session_on(store)

    async def check(standing, ended=()):
        found = await session.constraints()
        assert found == await of_path(session)
        assert [fact.text for fact in found.standing] == list(standing)
        assert [one.fact.text for one in found.ended] == list(ended)

    await check([])
    await session.append(user(RULE))
    await check([RULE])
    await run_turns(session, 8)
    await check([RULE])
    await session.compact(target=3_000)
    await check([RULE])
    await session.append(user("Always use tabs."), assistant("I will."))
    await check([RULE, "Always use tabs."])
    before = (await session.entries())[-1].entry
    await session.append(user(LIFT), assistant("Good."))
    await check(["Always use tabs.", LIFT], [RULE])
    await session.branch(before)
    await check([RULE, "Always use tabs."])
    await session.append(user("Never log tokens."))
    await check([RULE, "Always use tabs.", "Never log tokens."])
    await session.undo()
    await check([RULE, "Always use tabs.", "Never log tokens."])
    await store.move(session.id, None, seen=session.leaf)
    await check([])


async def test_a_command_whose_text_comes_with_the_next_look_is_passed_over(store):
    """What a message is can depend on the one before it, which was read at an earlier look."""
    session = session_on(store)
    await session.append(user("<command-name>/release</command-name>"))
    assert (await session.constraints()).standing == ()
    await session.append(user("Always bump the version first."), assistant("Done."))
    assert await session.constraints() == await of_path(session)
    assert (await session.constraints()).standing == ()


async def test_a_boundary_that_names_what_an_earlier_look_passed_over_has_all_of_it_read_again(store):
    session = session_on(store)
    await session.append(user("Rooms are booked by the hour."), assistant("Good."), user(RULE))
    before = await session.constraints()
    assert [fact.text for fact in before.standing] == [RULE]
    named = ConstraintFact("Rooms are booked by the hour.", (await session.entries())[0].entry)
    ledger = msgspec.to_builtins(Ledger(constraints=(named,)))
    boundary = Compacted("", None, Checkpoint("the work", "the work"), Receipt("manual"), ledger=ledger)
    async with session._shared.locked() as cursor:
        await cursor.write(boundary)
    found = await session.constraints()
    assert found == await of_path(session)
    assert [fact.text for fact in found.standing] == [named.text, RULE]


class CountingStore(MemoryStore):
    """A memory store that counts the entries that are read from it."""

    read = 0

    async def path(self, session, leaf=None):
        async for entry in super().path(session, leaf):
            self.read += 1
            yield entry

    async def all(self, session, *, after=0):
        async for entry in super().all(session, after=after):
            self.read += 1
            yield entry


async def test_a_later_look_reads_what_was_added(store):
    del store
    counted = CountingStore()
    session = session_on(counted)
    await session.append(user(RULE))
    await run_turns(session, 20)
    await session.constraints()
    counted.read = 0
    await session.constraints()
    assert counted.read == 0
    await session.append(user(LIFT))
    assert [one.by.text for one in (await session.constraints()).ended] == [LIFT]
    assert counted.read == 1


async def test_a_look_that_is_cancelled_leaves_nothing_half_read(store, monkeypatch):
    session = session_on(store)
    await session.append(user(RULE))
    await session.constraints()
    await session.append(user("Always use tabs."))
    whole = asyncio.to_thread

    async def interrupted(*given):
        await whole(*given)
        raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "to_thread", interrupted)
    with pytest.raises(asyncio.CancelledError):
        await session.constraints()
    monkeypatch.undo()
    assert [fact.text for fact in (await session.constraints()).standing] == [RULE, "Always use tabs."]


async def test_a_session_that_goes_on_from_another_has_its_rules(store):
    session = session_on(store)
    await session.append(user(RULE))
    await run_turns(session, 6)
    child = await session.handoff("Write the tests")
    assert [fact.text for fact in (await child.constraints()).standing] == [RULE]
    await child.append(user(LIFT))
    found = await child.constraints()
    assert [one.fact.text for one in found.ended] == [RULE]
    assert found == await of_path(child)
