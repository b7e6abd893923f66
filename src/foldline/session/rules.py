"""The rules that a user stated in a session: those that stand, and what ended the others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.cut.edits import EditsOf
from foldline.core.cut.exclude import excluded, left_of
from foldline.core.ledger.facts.constraints import ConstraintHistory, Ended
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.text.wording import is_rule
from foldline.core.log.entries import Compacted, Entry, Lifted, Pruned, Said
from foldline.stores.base import Store


class Rules(msgspec.Struct, frozen=True):
    """The standing rules of a session, and those that a later sentence ended; oldest first."""

    standing: tuple[ConstraintFact, ...]
    ended: tuple[Ended, ...]


class RuleReader:
    """Reads the rules of a path as it grows: each entry is looked at once.

    `leaf` is the last entry that was read, `entries` how many its session had by then, on every branch;
    `out` are the edits by which the user took something out.
    """

    def __init__(self, leaf: str | None = None, entries: int = 0, out: EditsOf | None = None) -> None:
        self.leaf = leaf
        self.entries = entries
        self._out = out or {}
        self._history = ConstraintHistory()
        self._named: set[str] = set()
        self._begun = False  # somebody has spoken

    @property
    def rules(self) -> Rules:
        """The rules of what was read."""
        return Rules(self._history.standing, tuple(self._history.ended))

    def read(self, entries: Sequence[Entry]) -> None:
        """Read what comes next; a checkpoint before all messages has the rules of an earlier session."""
        self._named |= _named(entries)
        for entry in entries:
            if isinstance(entry, Compacted) and not self._begun:
                for fact in _rules(entry):
                    self._history.add(fact)
            elif isinstance(entry, Said):
                self._begun = self._begun or entry.message.role not in ("system", "developer")
                left = left_of(entry, self._out)
                self._history.read([left] if left is not None else [], self._named)

    def can_go_on(self, entries: Sequence[Entry]) -> bool:
        """Whether these continue what was read, and change nothing of it: no rule that was passed over."""
        if any(isinstance(one, Lifted) or (isinstance(one, Pruned) and one.excludes) for one in entries):
            return False
        leaves = [self.leaf, *(entry.id for entry in entries)]
        known = all(text in self._named or is_rule(text) for text in _named(entries))
        return known and all(entry.parent == leaf for leaf, entry in zip(leaves, entries, strict=False))


def rules_of(entries: Sequence[Entry]) -> Rules:
    """Return the rules of a path."""
    reader = RuleReader(out=excluded(entries))
    reader.read(entries)
    return reader.rules


class StoredRules:
    """The rules of a stored session. A long path is read once, then what was added to it."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._known: RuleReader | None = None
        self._lock = asyncio.Lock()

    async def constraints(self) -> Rules:
        """Return the user's standing rules, and those that a later sentence ended.

        The first call reads the path, later ones what was added to it.
        """
        async with self._lock:
            known, self._known = self._known, None  # where this is cancelled, it may be half read
            reader = await self._followed(known) if known is not None else None
            self._known = reader = reader or await self._whole()
            return reader.rules

    async def _followed(self, known: RuleReader) -> RuleReader | None:
        """Read on; None where the path has left what was read."""
        leaf = await self._store.leaf(self._session)
        if leaf == known.leaf:
            return known
        news = [entry async for entry in self._store.all(self._session, after=known.entries)]
        ids = [entry.id for entry in news]
        if leaf not in ids:
            return None
        news = news[: ids.index(leaf) + 1]
        if not known.can_go_on(news):
            return None
        await asyncio.to_thread(known.read, news)
        known.leaf, known.entries = leaf, known.entries + len(news)
        return known

    async def _whole(self) -> RuleReader:
        info = await self._store.info(self._session)
        if info is None:
            return RuleReader()
        path = [entry async for entry in self._store.path(self._session, info.leaf)] if info.leaf else []
        reader = RuleReader(info.leaf, info.entries, excluded(path))
        await asyncio.to_thread(reader.read, path)  # a second for ten thousands of messages
        return reader


def _named(entries: Iterable[Entry]) -> set[str]:
    """The rules in the boundaries' ledgers: a model may have named some that code alone does not find."""
    boundaries = (entry for entry in entries if isinstance(entry, Compacted))
    return {fact.text for boundary in boundaries for fact in _rules(boundary) if fact.entry}


def _rules(boundary: Compacted) -> tuple[ConstraintFact, ...]:
    return msgspec.convert(boundary.ledger, Ledger).constraints if boundary.ledger else ()
