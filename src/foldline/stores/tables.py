"""The log in SQL tables: the synchronous half of the SQLite store. See sql/ for the tables."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from foldline.core.log.entries import Compacted, Entry
from foldline.errors import LeafMoved, SessionNotFound, StoreCorrupt, StoreError
from foldline.stores import tree
from foldline.stores.base import SessionInfo
from foldline.stores.connection import transaction
from foldline.stores.rows import pack, unpack
from foldline.stores.tree import Place, Spans

log = logging.getLogger("foldline")
_BOUNDARIES = frozenset({"compacted", "pruned", "lifted"})
SESSION_KEYS = 2**32  # the keys of one session


class SessionRow(NamedTuple):
    """The row of a session: its number, its leaf, the number of its entries, and the leaf's place."""

    no: int
    leaf: str | None
    entries: int
    place: Place | None


class Tables:
    """Read and write the log over one connection; call it from one thread at a time."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.unsettled = 0  # approximate bytes in the write-ahead log

    def append(self, session: str, entries: Sequence[Entry], seen: str | None) -> None:
        """Append as `Store.append` says."""
        tree.check_batch(session, entries, seen)
        if not entries:
            return
        payloads = [pack(entry) for entry in entries]
        first, last = tree.times_in(entries, time.time())
        with transaction(self.database):
            known = self.session(session)
            again = self._again(known.no, entries) if known else 0
            if known and again == len(entries) and self._is_retry(known, entries):
                return
            leaf = known.leaf if known else None
            if leaf != seen:
                raise LeafMoved(f"session {session}: another writer appended first", leaf=leaf)
            known = known or self._create(session, first)
            self._extend(known, entries, payloads, again)
            self.database.execute(
                "UPDATE sessions SET leaf = ?, entries = ?, updated = ?, title = coalesce(?, title)"
                " WHERE no = ?",
                (
                    entries[-1].id,
                    known.entries + len(entries) - again,
                    last,
                    tree.title_in(entries),
                    known.no,
                ),
            )
        self.unsettled += sum(map(len, payloads)) + 10_240  # about five pages of tables and indexes

    def move(self, session: str, leaf: str | None, seen: str | None) -> None:
        """Move the leaf as `Store.move` says."""
        with transaction(self.database):
            known = self.known_session(session)
            if leaf is not None:
                self.seq_of(known.no, leaf)
            if known.leaf == leaf:
                return
            if known.leaf != seen:
                raise LeafMoved(f"session {session}: another writer moved the leaf first", leaf=known.leaf)
            self.database.execute(
                "UPDATE sessions SET leaf = ?, updated = ? WHERE no = ?", (leaf, time.time(), known.no)
            )

    def active(self, session: str, leaf: str | None) -> list[Entry]:
        """Read as `Store.active` says."""
        with transaction(self.database, "DEFERRED"):
            known = self.session(session)
            place = self._place(known, leaf)
            if known is None or place is None:
                return []
            boundary = self._readable(session, known.no, place)
            if boundary is None:
                return list(self.read(known.no, self.spans(known.no, place.seq)))
            return self._kept(known.no, place, boundary)

    def spans_of(self, session: str, leaf: str | None) -> tuple[int, Spans]:
        """Return the number of a session and the ranges of seq of its path to `leaf`."""
        known = self.session(session)
        place = self._place(known, leaf)
        return (known.no, self.spans(known.no, place.seq)) if known and place else (0, [])

    def page(self, no: int, start: int, end: int) -> list[Entry]:
        """Return the entries from seq `start` to `end`, both included."""
        return list(self.read(no, [(start, end)]))

    def entry(self, session: str, entry: str) -> Entry | None:
        """Return one entry; None if there is none."""
        known = self.session(session)
        seq = self._find(known.no, entry) if known else None
        return None if known is None or seq is None else self._one(known.no, seq)

    def _one(self, no: int, seq: int) -> Entry:
        """Return the entry at `seq`; raises StoreCorrupt where it cannot be read, whatever its kind."""
        row = self.database.execute("SELECT payload FROM entries WHERE key = ?", (key(no, seq),)).fetchone()
        if row is None:
            raise StoreCorrupt(f"entry {seq} of the session is missing: run `foldline verify`")
        return unpack(row[0])

    def entries(self, session: str, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, in their order."""
        found = {id_: entry for id_ in set(ids) if (entry := self.entry(session, id_)) is not None}
        missing = [id_ for id_ in ids if id_ not in found]
        if missing:
            raise StoreError(f"session {session} has no entry {', '.join(missing[:5])}")
        return [found[id_] for id_ in ids]

    def sessions(self) -> list[SessionInfo]:
        """Return every session, the last updated first."""
        rows = self.database.execute(
            "SELECT s.id, s.title, s.created, s.updated, coalesce(e.messages, 0), s.entries,"
            " coalesce(e.compactions, 0), coalesce(e.tokens, 0), s.leaf"
            " FROM sessions s LEFT JOIN entries e ON e.session_no = s.no AND e.id = s.leaf"
            " ORDER BY s.updated DESC, s.no DESC"
        )
        return [SessionInfo(*row) for row in rows]

    def session(self, session: str) -> SessionRow | None:
        """Return the row of a session; None where there is none."""
        row = self.database.execute(
            "SELECT s.no, s.leaf, s.entries, e.seq, e.segment, e.joint, e.boundary, e.messages, e.tokens,"
            " e.compactions FROM sessions s LEFT JOIN entries e ON e.session_no = s.no AND e.id = s.leaf"
            " WHERE s.id = ?",
            (session,),
        ).fetchone()
        if row is None:
            return None
        no, leaf, entries, *place = row
        return SessionRow(no, leaf, entries, Place(*place) if place[0] is not None else None)

    def known_session(self, session: str) -> SessionRow:
        """Return the row of a session; raises SessionNotFound."""
        known = self.session(session)
        if known is None:
            raise SessionNotFound(f"no session {session!r} in this store")
        return known

    def seq_of(self, no: int, entry: str) -> int:
        """Return the seq of an entry; raises StoreError where the session has no such entry."""
        seq = self._find(no, entry)
        if seq is None:
            raise StoreError(f"no entry {entry} in this session")
        return seq

    def place_at(self, no: int, seq: int) -> Place:
        """Return the place of the entry at `seq`; raises StoreCorrupt if it is missing."""
        row = self.database.execute(
            "SELECT seq, segment, joint, boundary, messages, tokens, compactions FROM entries WHERE key = ?",
            (key(no, seq),),
        ).fetchone()
        if row is None:
            raise StoreCorrupt(f"entry {seq} of the session is missing: run `foldline verify`")
        return Place(*row)

    def spans(self, no: int, seq: int, first: int = 1) -> Spans:
        """Return the ranges of seq of the path to `seq`, from `first` on."""
        return tree.spans(partial(self.place_at, no), seq, first)

    def read(self, no: int, spans: Spans) -> Iterator[Entry]:
        """Yield the entries of these ranges; raises StoreCorrupt if one is missing or cannot be read.

        A damaged boundary is passed over: it changes what a view shows, and nothing that was said.
        """
        for start, end in spans:
            rows = self.database.execute(
                "SELECT payload, kind FROM entries WHERE key BETWEEN ? AND ? ORDER BY key",
                (key(no, start), key(no, end)),
            ).fetchall()
            if len(rows) != end - start + 1:
                raise StoreCorrupt(f"entries are missing between {start} and {end}: run `foldline verify`")
            for payload, kind in rows:
                try:
                    entry = unpack(payload)
                except StoreCorrupt:
                    if kind not in _BOUNDARIES:
                        raise
                else:
                    yield entry

    def events(self, no: int, place: Place | None) -> list[Entry]:
        """Return the Compacted and Lifted entries on the path up to `place`, in order."""
        found: list[Entry] = []
        for start, end in self.spans(no, place.seq) if place else []:
            rows = self.database.execute(
                "SELECT payload FROM entries WHERE key BETWEEN ? AND ?"
                " AND kind IN ('compacted', 'lifted') ORDER BY key",
                (key(no, start), key(no, end)),
            )
            for (payload,) in rows:
                with contextlib.suppress(StoreCorrupt):  # a damaged one counts as if it were not there
                    found.append(unpack(payload))
        return found

    def _readable(self, session: str, no: int, place: Place) -> str | None:
        """Return the newest effective Compacted that can be read; warns where that is not the newest."""
        newest = place.boundary
        try:
            if newest is None or isinstance(self._one(no, self.seq_of(no, newest)), Compacted):
                return newest
        except StoreError:
            pass
        before = tree.effective(self.events(no, place))
        goes_on = f"goes on from the boundary before it, {before}" if before else "is sent whole"
        log.warning(
            "session %s: its compaction %s cannot be read, and the session %s. Restore a backup, or "
            "compact it anew; `foldline verify --session %s` says what is damaged.",
            session,
            newest,
            goes_on,
            session,
        )
        return before

    def _create(self, session: str, now: float) -> SessionRow:
        made = self.database.execute(
            "INSERT INTO sessions (id, entries, title, created, updated) VALUES (?, 0, '', ?, ?)",
            (session, now, now),
        )
        assert made.lastrowid is not None
        return SessionRow(made.lastrowid, None, 0, None)

    def _extend(
        self, session: SessionRow, entries: Sequence[Entry], payloads: Sequence[bytes], again: int
    ) -> None:
        """Insert the entries except the first `again`, which are stored already."""
        no, count = session.no, session.entries
        place = self._place(session, entries[again - 1].id if again else None)
        for entry, payload in zip(entries[again:], payloads[again:], strict=True):
            self._check_kept(no, entry, place)
            count += 1
            place = tree.place(entry, count, place, partial(self.events, no, place))
            self.database.execute(
                "INSERT INTO entries (key, session_no, id, parent, kind, payload,"
                " seq, segment, joint, boundary, messages, tokens, compactions)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (key(no, count), no, entry.id, entry.parent, tree.kind(entry), payload, *place),
            )

    def _again(self, no: int, entries: Sequence[Entry]) -> int:
        """Return how many of the first entries are stored already: a retry, or a branch that was left."""
        for count, entry in enumerate(entries):
            seq = self._find(no, entry.id)
            if seq is None:
                return count
            tree.check_same(entry, self._one(no, seq))
        return len(entries)

    def _is_retry(self, session: SessionRow, entries: Sequence[Entry]) -> bool:
        """Return whether these very entries, times included, stand on the path already."""
        leaf = self._place(session, None)
        seqs = [self.seq_of(session.no, entry.id) for entry in entries]
        if leaf is None or not tree.on(self.spans(session.no, leaf.seq), seqs[-1]):
            return False
        stored = [self._one(session.no, seq) for seq in seqs]
        return all(tree.same_writer(entry, old) for entry, old in zip(entries, stored, strict=True))

    def _check_kept(self, no: int, entry: Entry, parent: Place | None) -> None:
        if isinstance(entry, Compacted):
            path = self.spans(no, parent.seq) if parent else []
            tree.check_kept(entry, path, partial(self._find, no))

    def _kept(self, no: int, leaf: Place, boundary: str) -> list[Entry]:
        compacted = self._one(no, at := self.seq_of(no, boundary))
        if not isinstance(compacted, Compacted):
            raise StoreCorrupt(f"the boundary {boundary} is not a compaction: run `foldline verify`")
        first = self.seq_of(no, compacted.first_kept) if compacted.first_kept else at
        older = {self.seq_of(no, id_) for id_ in (*compacted.leading, *compacted.quoted)}
        alone = [(seq, seq) for seq in sorted(older) if seq < first]
        return list(self.read(no, [*alone, *self.spans(no, leaf.seq, first)]))

    def _place(self, session: SessionRow | None, leaf: str | None) -> Place | None:
        if session is None:
            return None
        if leaf is None:
            if session.leaf is not None and session.place is None:
                raise StoreCorrupt(f"the leaf {session.leaf} is missing: run `foldline verify`")
            return session.place
        return self.place_at(session.no, self.seq_of(session.no, leaf))

    def _find(self, no: int, entry: str) -> int | None:
        row = self.database.execute(
            "SELECT seq FROM entries WHERE session_no = ? AND id = ?", (no, entry)
        ).fetchone()
        return row[0] if row else None


def key(no: int, seq: int) -> int:
    """Return the key of a row: a session's rows stand side by side, in order."""
    return no * SESSION_KEYS + seq
