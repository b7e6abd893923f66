"""The entries of one append, on their way into a database: their rows, before any of them is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from foldline.core.log.entries import Compacted, Entry, Lifted
from foldline.stores import tree
from foldline.stores.tree import Place, Spans

if TYPE_CHECKING:
    from foldline.stores.tables import Tables


class NewRows:
    """What an append adds to a session of `count` entries; looks behind it in what is stored."""

    def __init__(self, tables: Tables, session: Any, count: int, place: Place | None) -> None:
        self._tables = tables
        self._session = session
        self._count = count
        self._place = place  # of the entry that the next one follows
        self._places: dict[int, Place] = {}
        self._entries: dict[int, Entry] = {}
        self._seqs: dict[str, int] = {}

    def rows(self, entries: Sequence[Entry], payloads: Sequence[bytes]) -> list[dict[str, Any]]:
        """Return the rows of a chain of entries; raises StoreError if a Compacted keeps what it may not."""
        return [self._row(entry, payload) for entry, payload in zip(entries, payloads, strict=True)]

    def _row(self, entry: Entry, payload: bytes) -> dict[str, Any]:
        if isinstance(entry, Compacted):
            kept = [*entry.leading, *entry.quoted, *([entry.first_kept] if entry.first_kept else [])]
            tree.check_kept(entry, self._path(), self._found(kept).get)
        seq = self._count + len(self._places) + 1
        self._place = place = tree.place(entry, seq, self._place, self._events)
        self._places[seq], self._entries[seq], self._seqs[entry.id] = place, entry, seq
        return {
            "id": entry.id,
            "parent": entry.parent,
            "kind": tree.kind(entry),
            "payload": payload,
            **place._asdict(),
        }

    def _path(self) -> Spans:
        return tree.spans(self._place_at, self._place.seq) if self._place else []

    def _place_at(self, seq: int) -> Place:
        return self._places.get(seq) or self._tables.place_at(self._session, seq)

    def _found(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the seqs of those of these entries that there are."""
        stored = [id_ for id_ in ids if id_ not in self._seqs]
        return {**(self._tables.seqs(self._session, stored) if self._count and stored else {}), **self._seqs}

    def _events(self) -> list[Entry]:
        """Return the Compacted and Lifted entries of the path so far, in order."""
        found: list[Entry] = []
        for start, end in self._path():
            if start <= self._count:
                found += self._tables.events_between(self._session, start, min(end, self._count))
            new = (self._entries[seq] for seq in range(max(start, self._count + 1), end + 1))
            found += [entry for entry in new if isinstance(entry, Compacted | Lifted)]
        return found
