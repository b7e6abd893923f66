"""A log with damaged lines, chained anew: what stands behind them goes on from the last entry before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from foldline.core.log.entries import Compacted, Edit, Entry, Lifted, Pinned, Pruned, Said
from foldline.core.log.log import chained, entry_id, next_said_key

Now = Callable[[str], str]
"""Returns the id that an entry of the file has now; raises KeyError where it was left out."""


class Unplaced(Exception):
    """An entry that cannot stand in the log, and why."""


class Chain:
    """The entries read so far, by id; `renamed` maps the ids in the file to those of entries chained anew."""

    def __init__(self) -> None:
        self.renamed: dict[str, str] = {}
        self._damaged = False  # whether a line was left out, so that entries may lack their parent
        self._untold = False  # whether the next entry is the first behind such a line
        self._keys: dict[str | None, str] = {None: ""}  # id -> the said-key of the newest message up to it
        self._instead: dict[str, str | None] = {}  # an entry that was left out -> what stands before it
        self._newest: str | None = None

    def take(self, entry: Entry) -> tuple[Entry, str]:
        """Return an entry as it stands in the log, and what was done to it ("": nothing); raises Unplaced."""
        if entry.id in self._keys or entry.id in self.renamed:
            raise Unplaced(f"entry {entry.id} is in the file twice; the first one counts")
        parent = self._parent_of(entry)
        if entry_id(entry) != entry.id:
            self._leave(entry, parent)
            self._untold = True
            raise Unplaced(f"the content of entry {entry.id} does not match its id (left out)")
        if parent == entry.parent and not self.renamed:
            return self._proved(entry), ""
        placed = self._anew(entry, parent)
        if placed.id != entry.id:
            self.renamed[entry.id] = placed.id
        told, self._untold = self._untold, False
        return self._known(placed), _follows(entry, parent) if told else ""

    def lost(self) -> None:
        """Note that a line cannot be read: what follows goes on from the newest entry."""
        self._damaged = self._untold = True

    def _parent_of(self, entry: Entry) -> str | None:
        parent = self.renamed.get(entry.parent, entry.parent) if entry.parent else None
        if parent in self._keys:
            return parent
        if parent in self._instead:
            return self._instead[parent]
        if not self._damaged:
            raise Unplaced(
                f"entry {entry.id} follows {entry.parent}, which does not come before it (left out)"
            )
        return self._newest

    def _proved(self, entry: Entry) -> Entry:
        """Return an entry whose said-key follows the one before it; raises Unplaced."""
        if isinstance(entry, Said) and entry.said_key != next_said_key(
            self._keys[entry.parent], entry.message
        ):
            self._leave(entry, entry.parent)
            raise Unplaced(f"the said-key of entry {entry.id} does not follow the one before (left out)")
        return self._known(entry)

    def _anew(self, entry: Entry, parent: str | None) -> Entry:
        """Return an entry under another parent, what it points to under its new id; raises Unplaced."""
        try:
            placed = chained(_pointing(entry, self._now), parent)
        except KeyError as error:
            self._leave(entry, parent)
            raise Unplaced(_gone(entry, str(error.args[0]))) from None
        if isinstance(placed, Said):
            placed = msgspec.structs.replace(
                placed, said_key=next_said_key(self._keys[parent], placed.message)
            )
        return placed

    def _now(self, id_: str) -> str:
        """Return the id that an entry of the file has now; raises KeyError where it was left out."""
        known = self.renamed.get(id_, id_)
        if known not in self._keys:
            raise KeyError(id_)
        return known

    def _known(self, entry: Entry) -> Entry:
        self._keys[entry.id] = entry.said_key if isinstance(entry, Said) else self._keys[entry.parent]
        self._newest = entry.id
        return entry

    def _leave(self, entry: Entry, parent: str | None) -> None:
        self._damaged = True
        self._instead[entry.id] = parent


def _follows(entry: Entry, parent: str | None) -> str:
    before = f"goes on from entry {parent}" if parent else "stands first"
    return (
        f"entry {entry.id} follows one that is damaged or missing; it {before}, and ids from here on change"
    )


def _gone(entry: Entry, id_: str) -> str:
    if isinstance(entry, Compacted | Pruned):
        return (
            f"boundary {entry.id} is left out, since entry {id_} that it keeps is damaged or missing; the "
            "session goes on from the boundary before it, or whole. Compact it anew, or restore the file"
        )
    return f"entry {entry.id} is left out, since entry {id_} that it names is damaged or missing"


def _pointing(entry: Entry, now: Now) -> Entry:
    """Return an entry whose references are the ids of today; raises KeyError where one is gone."""
    replace = msgspec.structs.replace
    if isinstance(entry, Lifted | Pinned):
        return replace(entry, target=now(entry.target))
    if isinstance(entry, Pruned):
        return replace(entry, edits=_edits(entry.edits, now), seen=_maybe(entry.seen, now))
    if not isinstance(entry, Compacted):
        return entry
    first = _maybe(entry.first_kept, now)
    pins = tuple(replace(pin, entry=now(pin.entry)) for pin in entry.checkpoint.pins)
    named = entry.receipt.first_kept == entry.first_kept
    return replace(
        entry,
        checkpoint=replace(entry.checkpoint, pins=pins),
        receipt=replace(entry.receipt, first_kept=first) if named else entry.receipt,
        first_kept=first,
        leading=tuple(now(id_) for id_ in entry.leading),
        quoted=tuple(now(id_) for id_ in entry.quoted),
        edits=_edits(entry.edits, now),
        ledger=_cited(entry.ledger, now),
        seen=_maybe(entry.seen, now),
    )


def _maybe(id_: str | None, now: Now) -> str | None:
    return None if id_ is None else now(id_)


def _edits(edits: tuple[Edit, ...], now: Now) -> tuple[Edit, ...]:
    return tuple(msgspec.structs.replace(edit, entry=now(edit.entry)) for edit in edits)


def _cited(value: Any, now: Now, field: str = "") -> Any:
    """Return a ledger in builtins whose facts cite entries by today's ids, without those that are gone."""
    if isinstance(value, dict):
        rows: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {key: _cited(item, now, key) for key, item in rows.items()}
    if isinstance(value, list | tuple):
        items: list[Any] = [_cited(item, now, field) for item in value]  # pyright: ignore[reportUnknownVariableType]
        return [item for item in items if item] if field in _CITING else items
    if field in _CITING and isinstance(value, str) and value:
        try:
            return now(value)
        except KeyError:
            return ""
    return value


_CITING = ("entry", "entries", "work")
