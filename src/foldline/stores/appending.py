"""Append to the log in SQL tables: detect retries, check that entries fit the path, make their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from foldline.core.log.entries import Compacted, Entry, Lifted, Noted
from foldline.errors import LeafMoved, StoreError
from foldline.stores import tree
from foldline.stores.database import Contended
from foldline.stores.rows import pack
from foldline.stores.tables import SessionRow, Tables, id_and_key
from foldline.stores.tree import Place, Spans


def append(tables: Tables, session: str, entries: Sequence[Entry], seen: str | None) -> None:
    """Append a chain of entries: see `Store.append`. Raises Contended if another writer came between."""
    _check_batch(session, entries, seen)
    if not entries:
        return
    payloads = [pack(entry) for entry in entries]
    times = [entry.at for entry in entries if entry.at is not None] or [time.time()]
    with tables.database.writing():
        row = tables.session(session)
        stored = _count_stored(tables, row.key, entries) if row else 0
        if row and stored == len(entries) and _is_retry(tables, row, entries):
            return
        leaf = row.leaf if row else None
        if leaf != seen:
            raise LeafMoved(f"session {session}: another writer appended first", leaf=leaf)
        key, count = (row.key, row.entries) if row else (None, 0)
        place = tables.place_of(row, entries[stored - 1].id if stored else None)
        rows = _NewRows(tables, key, count, place).rows(entries[stored:], payloads[stored:])
        update = {
            **id_and_key(session),
            "session": key,
            "seen": leaf,
            "before": count,
            "leaf": entries[-1].id,
            "entries": count + len(rows),
            "created": times[0],
            "updated": times[-1],
            "title": _newest_noted(entries, "title", "title", lambda title: isinstance(title, str)),
            "user": _newest_noted(entries, tree.SERVED, "user", tree.is_user),
        }
        if not tables.database.append(update, rows):
            raise Contended


def _check_batch(session: str, entries: Sequence[Entry], seen: str | None) -> None:
    """Raise StoreError unless the entries chain from `seen` on, each with its own id."""
    if not session:
        raise StoreError("a session needs a non-empty id")
    parent = seen
    for entry in entries:
        if entry.parent != parent:
            raise StoreError(f"entry {entry.id} follows {entry.parent}, not {parent}: nothing was written")
        parent = entry.id
    ids = {entry.id for entry in entries} - {"", seen}
    if len(ids) != len(entries):
        raise StoreError("two entries of one append have the same id, or one has none: nothing was written")


def _newest_noted(
    entries: Sequence[Entry], kind: str, key: str, is_valid: Callable[[object], bool]
) -> str | None:
    """Return the newest valid value of a key in the notes of a kind; None without one."""
    values = (e.data.get(key) for e in reversed(entries) if isinstance(e, Noted) and e.kind == kind)
    return next((cast("str", value) for value in values if is_valid(value)), None)


def _count_stored(tables: Tables, session: Any, entries: Sequence[Entry]) -> int:
    """Count the leading entries that are already stored, by an earlier try or on an abandoned branch."""
    if tables.find(session, entries[0].id) is None:
        return 0
    stored = tables.stored(session, [entry.id for entry in entries])
    for count, entry in enumerate(entries):
        if entry.id not in stored:
            return count
        if entry.parent != stored[entry.id].parent:
            raise StoreError(f"another entry {entry.id} is already in the session: nothing was written")
    return len(entries)


def _is_retry(tables: Tables, session: SessionRow, entries: Sequence[Entry]) -> bool:
    """Return whether these entries are already on the path.

    Ids do not depend on times, so two writers can create the same id, but at different times.
    """
    leaf = tables.place_of(session, None)
    last = tables.seq_of(session.key, entries[-1].id)
    if leaf is None or not tree.is_on(tables.spans(session.key, leaf.seq), last):
        return False
    stored = tables.stored(session.key, [entry.id for entry in entries])
    return all(entry.at == stored[entry.id].at for entry in entries)


class _NewRows:
    """The rows that an append adds to a session of `count` entries."""

    def __init__(self, tables: Tables, session: Any, count: int, place: Place | None) -> None:
        self._tables = tables
        self._session = session
        self._count = count
        self._place = place  # of the last entry
        self._places: dict[int, Place] = {}
        self._entries: dict[int, Entry] = {}
        self._seqs: dict[str, int] = {}

    def rows(self, entries: Sequence[Entry], payloads: Sequence[bytes]) -> list[dict[str, Any]]:
        """Return the rows of a chain; raises StoreError if a Compacted keeps an entry off its path."""
        return [self._row(entry, payload) for entry, payload in zip(entries, payloads, strict=True)]

    def _row(self, entry: Entry, payload: bytes) -> dict[str, Any]:
        if isinstance(entry, Compacted):
            self._check_kept(entry)
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

    def _check_kept(self, entry: Compacted) -> None:
        kept = [*entry.leading, *entry.quoted, *([entry.first_kept] if entry.first_kept else [])]
        path, seqs = self._path(), self._find_seqs(kept)
        for id_ in kept:
            if id_ not in seqs or not tree.is_on(path, seqs[id_]):
                raise StoreError(
                    f"compaction {entry.id} keeps entry {id_}, which is not on its path: nothing was written"
                )

    def _path(self) -> Spans:
        def place_at(seq: int) -> Place:
            return self._places.get(seq) or self._tables.place_at(self._session, seq)

        return tree.spans(place_at, self._place.seq) if self._place else []

    def _find_seqs(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the seqs of these entries, leaving out unknown ones."""
        earlier = [id_ for id_ in ids if id_ not in self._seqs]
        return {
            **(self._tables.seqs(self._session, earlier) if self._count and earlier else {}),
            **self._seqs,
        }

    def _events(self) -> list[Entry]:
        """Return the Compacted and Lifted entries of the path so far, in order."""
        found: list[Entry] = []
        for start, end in self._path():
            if start <= self._count:
                found += self._tables.events_between(self._session, start, min(end, self._count))
            new = (self._entries[seq] for seq in range(max(start, self._count + 1), end + 1))
            found += [entry for entry in new if isinstance(entry, Compacted | Lifted)]
        return found
