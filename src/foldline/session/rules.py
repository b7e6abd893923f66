"""The rules that a user stated in a session: the standing ones, and what ended the others."""

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
    """Reads the rules of a growing path, each entry once.

    `leaf` is the last entry read, `entries` the session's number of entries at that time, on all branches;
    `exclusions` are the edits by which the user excluded messages.
    """

    def __init__(self, leaf: str | None = None, entries: int = 0, exclusions: EditsOf | None = None) -> None:
        self.leaf = leaf
        self.entries = entries
        self._exclusions = exclusions or {}
        self._history = ConstraintHistory()
        self._named: set[str] = set()
        self._has_messages = False

    @property
    def rules(self) -> Rules:
        """The rules of the entries read so far."""
        return Rules(self._history.standing, tuple(self._history.ended))

    def read(self, entries: Sequence[Entry]) -> None:
        """Read the next entries; a checkpoint before any message carries the rules of an earlier session."""
        self._named |= _named(entries)
        for entry in entries:
            if isinstance(entry, Compacted) and not self._has_messages:
                for fact in _rules(entry):
                    self._history.add(fact)
            elif isinstance(entry, Said):
                self._has_messages = self._has_messages or entry.message.role not in ("system", "developer")
                left = left_of(entry, self._exclusions)
                self._history.read([left] if left is not None else [], self._named)

    def continues(self, entries: Sequence[Entry]) -> bool:
        """Whether these entries continue the path without changing what was read before."""
        if any(
            isinstance(entry, Lifted) or (isinstance(entry, Pruned) and entry.excludes) for entry in entries
        ):
            return False
        leaves = [self.leaf, *(entry.id for entry in entries)]
        known = all(text in self._named or is_rule(text) for text in _named(entries))
        return known and all(entry.parent == leaf for leaf, entry in zip(leaves, entries, strict=False))


def rules_of(entries: Sequence[Entry]) -> Rules:
    """Return the rules of a path."""
    reader = RuleReader(exclusions=excluded(entries))
    reader.read(entries)
    return reader.rules


class StoredRules:
    """The rules of a stored session; reads its path once, then only what is added."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        self._session = session
        self._reader: RuleReader | None = None
        self._lock = asyncio.Lock()

    async def constraints(self) -> Rules:
        """Return the user's standing rules, and those that a later sentence ended.

        The first call reads the whole path, later ones only new entries.
        """
        async with self._lock:
            previous, self._reader = self._reader, None  # if cancelled, it may be half updated
            reader = await self._read_new(previous) if previous is not None else None
            self._reader = reader = reader or await self._read_all()
            return reader.rules

    async def _read_new(self, reader: RuleReader) -> RuleReader | None:
        """Read new entries; None if the path no longer continues what was read."""
        leaf = await self._store.leaf(self._session)
        if leaf == reader.leaf:
            return reader
        news = [entry async for entry in self._store.all(self._session, after=reader.entries)]
        ids = [entry.id for entry in news]
        if leaf not in ids:
            return None
        news = news[: ids.index(leaf) + 1]
        if not reader.continues(news):
            return None
        await asyncio.to_thread(reader.read, news)
        reader.leaf, reader.entries = leaf, reader.entries + len(news)
        return reader

    async def _read_all(self) -> RuleReader:
        info = await self._store.info(self._session)
        if info is None:
            return RuleReader()
        path = [entry async for entry in self._store.path(self._session, info.leaf)] if info.leaf else []
        reader = RuleReader(info.leaf, info.entries, excluded(path))
        await asyncio.to_thread(reader.read, path)  # takes a second for 10,000 messages
        return reader


def _named(entries: Iterable[Entry]) -> set[str]:
    """Return the rules in the boundaries' ledgers, which may include some that only a model found."""
    boundaries = (entry for entry in entries if isinstance(entry, Compacted))
    return {fact.text for boundary in boundaries for fact in _rules(boundary) if fact.entry}


def _rules(boundary: Compacted) -> tuple[ConstraintFact, ...]:
    return msgspec.convert(boundary.ledger, Ledger).constraints if boundary.ledger else ()
