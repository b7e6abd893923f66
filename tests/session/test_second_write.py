"""A write that fails or comes second behind an earlier one: the whole call has happened, or nothing of it."""

import asyncio

import pytest
from tests.support.live import Events, Gate, answer, prompt, run_turns, session_on

from foldline.core.log.entries import Compacted, Said
from foldline.errors import StoreError
from foldline.stores import MemoryStore


class Between(MemoryStore):
    """A store that does something once, before it appends the first entries that match."""

    def __init__(self):
        super().__init__()
        self.match = lambda entries: False
        self.do = None

    def once(self, match, do):
        self.match, self.do = match, do

    async def append(self, session, entries, **more):
        if self.do is not None and self.match(entries):
            do, self.do = self.do, None
            await do()
        await super().append(session, entries, **more)


async def fails():
    raise StoreError("the disk is full")


def has_message(entries):
    return any(isinstance(entry, Said) for entry in entries)


@pytest.mark.parametrize("how", ["fails", "cancelled"])
async def test_a_branch_whose_summary_cannot_be_stored_is_not_left(how):
    store, begun = Between(), asyncio.Event()

    async def hangs():
        begun.set()
        await asyncio.Event().wait()

    session = session_on(store)
    ids = await session.append(prompt(0), answer(0), prompt(1), answer(1))
    before = await session.context()
    store.once(has_message, fails if how == "fails" else hangs)
    leaving = asyncio.create_task(session.branch(ids[1], summarize=True))
    if how == "cancelled":
        await asyncio.wait_for(begun.wait(), 60)
        leaving.cancel()
    with pytest.raises(StoreError if how == "fails" else asyncio.CancelledError):
        await asyncio.wait_for(leaving, 60)
    assert await session.context() == before
    await session.branch(ids[1], summarize=True)
    assert "Question 1" in str((await session.context())[-1])
    assert await session.verify() == []


async def test_a_switch_that_cannot_be_stored_changes_nothing():
    store = Between()
    session = session_on(store, model="openai:gpt-4.1", dialect="openai-chat")
    await run_turns(session, 2)
    heard, setup, view = Events(session), session.setup, await session.context()
    store.once(lambda entries: True, fails)
    with pytest.raises(StoreError):
        await session.use_model("anthropic:claude-sonnet-4-6", dialect="anthropic", tools=[{"name": "mine"}])
    assert session.setup == setup
    assert await session.context() == view
    assert heard.names == []
    await session.use_model("anthropic:claude-sonnet-4-6", dialect="anthropic", tools=[{"name": "mine"}])
    assert (session.setup.model, session.dialect) == ("anthropic:claude-sonnet-4-6", "anthropic")


async def test_an_undo_behind_a_fold_of_another_process_undoes_that_fold():
    store = Between()
    session, other = session_on(store, Gate(opened=True)), session_on(store, Gate(opened=True))
    await run_turns(session, 6)
    await session.compact(target=3_000)
    await run_turns(session, 3, 6)
    view = await session.context()

    async def folds():
        await other.compact(target=2_000)

    store.once(lambda entries: True, folds)
    undone = await session.undo()
    newest = [entry.id async for entry in store.path("s") if isinstance(entry, Compacted)][-1]
    assert undone == newest
    assert await session.context() == view
