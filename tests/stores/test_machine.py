"""Random histories: every store answers as the core's log does, and as the others do."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.stores.build import compact, lift, say, talk, title

from foldline.core.log.entries import Compacted, Entry, Lifted, Said
from foldline.core.log.log import Log
from foldline.errors import LeafMoved
from foldline.stores import MemoryStore, SqliteStore, Store

NUMBERS = st.integers(0, 10_000)


def expected(path: list[Entry]) -> list[Entry]:
    """What a view of the path needs, the plain way."""
    lifted = {entry.target: entry.lifted for entry in path if isinstance(entry, Lifted)}
    boundaries = [entry for entry in path if isinstance(entry, Compacted) and not lifted.get(entry.id)]
    if not boundaries:
        return path
    boundary = boundaries[-1]
    first = [entry.id for entry in path].index(boundary.first_kept or boundary.id)
    older = {*boundary.leading, *boundary.quoted}
    return [entry for at, entry in enumerate(path) if at >= first or entry.id in older]


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.stores: list[Store] = []
        self.log = Log()
        self.batches: list[tuple[list[Entry], str | None]] = []

    @initialize()
    def open(self) -> None:
        self.stores = [MemoryStore(), SqliteStore(Path(self.folder.name) / "s.db")]

    def each(self, ask):
        return [self.loop.run_until_complete(ask(store)) for store in self.stores]

    def append(self, batch: list[Entry], seen: str | None) -> None:
        try:
            self.log.append(batch, seen=seen)
        except LeafMoved:
            for store in self.stores:
                with pytest.raises(LeafMoved) as moved:
                    self.loop.run_until_complete(store.append("s", batch, seen=seen))
                assert moved.value.leaf == self.log.leaf
        else:
            self.each(lambda store: store.append("s", batch, seen=seen))
            self.batches.append((batch, seen))

    def tip(self) -> Entry | None:
        return self.log[self.log.leaf] if self.log.leaf else None

    def key(self) -> str:
        return next((e.said_key for e in reversed(self.log.path()) if isinstance(e, Said)), "")

    def some(self, number: int) -> Entry:
        return list(self.log.entries())[number % len(self.log)]

    @rule(count=st.integers(1, 4), number=st.integers(0, 5))
    def talk(self, count: int, number: int) -> None:
        first = say(self.tip(), f"word{number}", key=self.key())
        rest = talk(first, *[f"word{number} part{part}" for part in range(count - 1)])
        self.append([first, *rest], self.log.leaf)

    @rule(number=NUMBERS)
    @precondition(lambda self: len(self.log) > 0)
    def talk_at_an_old_leaf(self, number: int) -> None:
        at = self.some(number)
        self.append([title(at, f"late {number}")], at.id)

    @rule(number=NUMBERS)
    @precondition(lambda self: self.batches)
    def retry(self, number: int) -> None:
        batch, seen = self.batches[number % len(self.batches)]
        self.append(batch, seen)

    @rule(number=NUMBERS, quoted=st.lists(NUMBERS, max_size=3), keeps=st.booleans())
    @precondition(lambda self: self.log.leaf)
    def compact(self, number: int, quoted: list[int], keeps: bool) -> None:
        path = [entry.id for entry in self.log.path()]
        at = number % len(path)
        older = tuple(path[old % at] for old in quoted) if at else ()
        first = path[at] if keeps else None
        self.append([compact(self.tip(), first, leading=older[:1], quoted=older[1:])], self.log.leaf)

    @rule(number=NUMBERS, lifted=st.booleans())
    @precondition(lambda self: any(isinstance(entry, Compacted) for entry in self.log.entries()))
    def lift(self, number: int, lifted: bool) -> None:
        compacted = [entry.id for entry in self.log.entries() if isinstance(entry, Compacted)]
        if self.log.leaf:
            self.append([lift(self.tip(), compacted[number % len(compacted)], lifted=lifted)], self.log.leaf)

    @rule(number=NUMBERS)
    @precondition(lambda self: len(self.log) > 0)
    def move(self, number: int) -> None:
        to, seen = self.some(number).id if number else None, self.log.leaf
        self.each(lambda store: store.move("s", to, seen=seen))
        self.log.move(to)

    @rule()
    def reopen(self) -> None:
        sqlite = self.stores[1]
        self.loop.run_until_complete(sqlite.close())
        self.stores[1] = SqliteStore(Path(self.folder.name) / "s.db")

    @rule(number=st.integers(0, 5), on_path=st.booleans())
    def search(self, number: int, on_path: bool) -> None:
        memory, sqlite = self.each(
            lambda store: store.search(f"word{number}", "s", limit=1000, on_path=on_path)
        )
        assert sorted(hit.seq for hit in memory) == sorted(hit.seq for hit in sqlite)
        where = self.log.path() if on_path else self.log.entries()
        said = [entry.id for entry in where if isinstance(entry, Said)]
        assert {hit.entry for hit in memory} == {
            id_ for id_ in said if f"word{number}" in self.log[id_].message.text
        }

    @rule(number=NUMBERS)
    @precondition(lambda self: len(self.log) > 0)
    def look_elsewhere(self, number: int) -> None:
        leaf = self.some(number).id
        for found in self.each(lambda store: store.active("s", leaf)):
            assert found == expected(self.log.path(leaf))

    @invariant()
    def all_the_same(self) -> None:
        for found in self.each(lambda store: store.active("s")):
            assert found == expected(self.log.path())
        for leaf in self.each(lambda store: store.leaf("s")):
            assert leaf == self.log.leaf

    @rule()
    def look_at_everything(self) -> None:
        async def path(store: Store) -> list[Entry]:
            return [entry async for entry in store.path("s")]

        for found in self.each(path):
            assert found == self.log.path()
        memory, sqlite = self.each(lambda store: store.sessions())
        assert [(i.id, i.title, i.messages, i.entries, i.compactions, i.tokens, i.leaf) for i in memory] == [
            (i.id, i.title, i.messages, i.entries, i.compactions, i.tokens, i.leaf) for i in sqlite
        ]
        assert sum(info.entries for info in memory) == len(self.log)

    def teardown(self) -> None:
        try:
            for problems in self.each(lambda store: store.verify()):
                assert [line for line in problems if "said-key" not in line] == []
            self.each(lambda store: store.close())
        finally:
            self.loop.close()
            self.folder.cleanup()


Histories.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestHistories = Histories.TestCase
