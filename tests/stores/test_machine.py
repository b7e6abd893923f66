"""Random histories: every store answers as the core's log does, and as the others do."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.stores.build import compact, lift, say, talk, title
from tests.support.log import Log

from foldline.core.log.entries import Compacted, Entry, Lifted, Said
from foldline.core.log.log import chained
from foldline.errors import LeafMoved
from foldline.stores import MemoryStore, SessionInfo, SqliteStore, Store, open_store

pytestmark = pytest.mark.slow

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
    """One history in every store, each opened twice as by two processes; `Log` is the model."""

    def __init__(self, postgres_url: str) -> None:
        super().__init__()
        self.postgres_url = postgres_url
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.stores: list[Store] = []
        self.others: list[Store] = []
        self.log = Log()
        self.batches: list[tuple[list[Entry], str | None]] = []
        self.races = 0

    def opened(self) -> list[Store]:
        return [SqliteStore(Path(self.folder.name) / "s.db"), open_store(self.postgres_url)]

    @initialize()
    def open(self) -> None:
        memory = MemoryStore()
        self.stores, self.others = [memory, *self.opened()], [memory, *self.opened()]

    def each(self, ask):
        return [self.loop.run_until_complete(ask(store)) for store in self.stores]

    def at_once(self, *asks) -> list[list[object]]:
        """What each store answers when both of its openings are asked all of this at once."""

        async def ask_all(pair) -> list[object]:
            return await asyncio.gather(
                *(ask(store) for ask in asks for store in pair), return_exceptions=True
            )

        return [
            self.loop.run_until_complete(ask_all(pair)) for pair in zip(self.stores, self.others, strict=True)
        ]

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

    @rule(folds=st.booleans(), late=st.integers(1, 3))
    @precondition(lambda self: self.log.leaf)
    def write_at_once(self, folds: bool, late: int) -> None:
        """One commit sent twice, among others who saw an older leaf: it is there once, and they are told."""
        seen, tip = self.log.leaf, self.tip()
        mine = [compact(tip, tip.id) if folds else say(tip, "word1", key=self.key(), at=float(len(self.log)))]
        path = self.log.path()
        stale = [title(path[-1 - back], f"stale {back}") for back in range(1, late + 1) if back < len(path)]
        found = self.at_once(
            lambda store: store.append("s", mine, seen=seen),
            *(lambda store, entry=entry: store.append("s", [entry], seen=entry.parent) for entry in stale),
        )
        self.log.append(mine, seen=seen)
        self.batches.append((mine, seen))
        for answers in found:
            assert answers[:2] == [None, None]
            assert all(isinstance(answer, LeafMoved) for answer in answers[2:])
            assert {answer.leaf for answer in answers[2:]} <= {seen, mine[0].id}

    @rule()
    @precondition(lambda self: self.log.leaf)
    def commit_a_fold_that_was_planned_earlier(self) -> None:
        """Planned at one leaf, overtaken by a message, put behind that, and sent again."""
        planned_at, tip = self.log.leaf, self.tip()
        draft = compact(tip, tip.id)
        self.append([say(tip, "word2 came between", key=self.key())], planned_at)
        self.append([draft], planned_at)  # everybody refuses it
        rebased = chained(draft, self.log.leaf)
        seen = self.log.leaf
        self.append([rebased], seen)
        self.append([rebased], seen)
        assert sum(entry.id == rebased.id for entry in self.log.path()) == 1

    @rule(writers=st.integers(2, 4), turns=st.integers(1, 3))
    def race(self, writers: int, turns: int) -> None:
        """Writers of one session who each take the leaf that they find: one history, nothing lost."""
        self.races += 1
        name = f"race {self.races}"

        async def write(store: Store, number: int) -> list[str]:
            done: list[str] = []
            while len(done) < turns:
                leaf = await store.leaf(name)
                before = await store.entry(name, leaf) if leaf else None
                entry = say(before, f"{number} {len(done)}")
                try:
                    await store.append(name, [entry], seen=leaf)
                except LeafMoved:
                    continue
                done.append(entry.id)
            return done

        async def run(pair) -> None:
            done = await asyncio.gather(*(write(pair[n % 2], n) for n in range(writers)))
            path = [entry.id async for entry in pair[0].path(name)]
            assert sorted(path) == sorted(id_ for ids in done for id_ in ids)
            assert await pair[1].verify(name) == []
            await pair[1].purge(name)

        for pair in zip(self.stores, self.others, strict=True):
            self.loop.run_until_complete(run(pair))

    @rule()
    def reopen(self) -> None:
        for store in self.stores[1:]:
            self.loop.run_until_complete(store.close())
        self.stores[1:] = self.opened()

    @rule(number=st.integers(0, 5), on_path=st.booleans())
    def search(self, number: int, on_path: bool) -> None:
        memory, *databases = self.each(
            lambda store: store.search(f"word{number}", "s", limit=1000, on_path=on_path)
        )
        for found in databases:
            assert sorted(hit.seq for hit in memory) == sorted(hit.seq for hit in found)
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

    @rule(number=NUMBERS, before=NUMBERS, limit=st.integers(0, 12))
    @precondition(lambda self: len(self.log) > 0)
    def read_the_end(self, number: int, before: int, limit: int) -> None:
        leaf = self.some(number).id
        path = self.log.path(leaf)
        at = before % (len(path) + 1)
        until = path[at].id if at < len(path) else None
        for found in self.each(lambda store: store.tail("s", limit, leaf=leaf, before=until)):
            assert found == path[max(0, at - limit) : at]
        for found in self.each(lambda store: store.marks("s", leaf)):
            assert found == [entry for entry in path if not isinstance(entry, Said)]

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
        memory, *databases = self.each(lambda store: store.sessions())
        for infos in databases:
            assert [figures(info) for info in infos] == [figures(info) for info in memory]
        assert sum(info.entries for info in memory) == len(self.log)

    def teardown(self) -> None:
        try:
            for problems in self.each(lambda store: store.verify()):
                assert [line for line in problems if "said-key" not in line] == []
            if self.log.leaf or len(self.log):
                self.each(lambda store: store.purge("s"))
            assert self.each(lambda store: store.count()) == [0] * len(self.stores)
            for store in (*self.stores, *self.others):
                self.loop.run_until_complete(store.close())
        finally:
            self.loop.close()
            self.folder.cleanup()


def figures(info: SessionInfo) -> list[object]:
    return [info.id, info.title, info.messages, info.entries, info.compactions, info.tokens, info.leaf]


def test_histories(postgres_url: str) -> None:
    run_state_machine_as_test(
        lambda: Histories(postgres_url),
        settings=settings(max_examples=20, stateful_step_count=25, deadline=None),
    )
