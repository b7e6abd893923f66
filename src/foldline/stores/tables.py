"""Read the log from SQL tables: the synchronous half of the stores. The queries are in sql/."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from foldline.core.log.entries import Compacted, Entry
from foldline.core.log.log import digest
from foldline.errors import InputError, LeafMoved, SessionNotFound, StoreCorrupt, StoreError
from foldline.stores import tree
from foldline.stores.base import FIRST, MARKS, Listed, Mark, SessionInfo
from foldline.stores.database import Contended, Database
from foldline.stores.rows import unpack
from foldline.stores.tree import Place, Spans

log = logging.getLogger("foldline")
_SKIPPED_IF_DAMAGED = frozenset({"compacted", "pruned", "lifted", "noted"})


class SessionRow(NamedTuple):
    """The row of a session: its key, its leaf, the number of its entries, and the leaf's place."""

    key: Any  # the database's key of the session: `:session` in its queries
    leaf: str | None
    entries: int
    place: Place | None


class Tables:
    """Read and write the log over one connection; call it from one thread at a time."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def leaf(self, session: str) -> str | None:
        """Return the id of the leaf."""
        known = self.session(session)
        return known.leaf if known else None

    def move(self, session: str, leaf: str | None, *, seen: str | None) -> None:
        """Move the leaf: see `Store.move`."""
        with self.database.transaction():
            known = self.known_session(session)
            if leaf is not None:
                self.seq_of(known.key, leaf)
            if known.leaf == leaf:
                return
            if known.leaf != seen:
                raise LeafMoved(f"session {session}: another writer moved the leaf first", leaf=known.leaf)
            if not self.database.change(
                "move_leaf", session=known.key, leaf=leaf, seen=seen, updated=time.time()
            ):
                raise Contended

    def active(self, session: str, leaf: str | None = None) -> list[Entry]:
        """Return what a view needs: see `Store.active`."""
        with self.database.snapshot():
            known = self.session(session)
            place = self.place_of(known, leaf)
            if known is None or place is None:
                return []
            boundary = self._readable_boundary(session, known.key, place)
            if boundary is None:
                return list(self.read(known.key, self.spans(known.key, place.seq)))
            return self._kept(known.key, place, boundary)

    def spans_of(self, session: str, leaf: str | None) -> tuple[Any, Spans]:
        """Return the key of a session and the ranges of seq of its path to `leaf`."""
        known = self.session(session)
        place = self.place_of(known, leaf)
        return (known.key, self.spans(known.key, place.seq)) if known and place else (None, [])

    def tail(
        self, session: str, limit: int, *, leaf: str | None = None, before: str | None = None
    ) -> list[Entry]:
        """Return the last entries of a path: see `Store.tail`."""
        with self.database.snapshot():
            known = self.session(session)
            place = self.place_of(known, leaf)
            if before is None:
                spans = self.spans(known.key, place.seq, most=limit) if known and place else []
                return list(self.read(known.key, spans)) if known else []
            seq = self.find(known.key, before) if known else None
            path = self.spans(known.key, place.seq) if known and place else []
            if known is None or seq is None or not tree.is_on(path, seq):
                raise InputError(f"{before!r} is not on the path of this session")
            spans = self.spans(known.key, seq, most=max(limit, 0) + 1)
            start, end = spans.pop()
            return list(self.read(known.key, [*spans, *([(start, end - 1)] if end > start else [])]))

    def marks(self, session: str, leaf: str | None = None, *, kinds: Collection[Mark] = MARKS) -> list[Entry]:
        """Return the entries of some kinds: see `Store.marks`."""
        with self.database.snapshot():
            key, spans = self.spans_of(session, leaf)
            return [entry for start, end in spans for entry in self._marks_between(key, start, end, kinds)]

    def notes(self, session: str) -> list[Entry]:
        """Return the notes on every branch of a session, in append order; [] for an unknown session."""
        known = self.session(session)
        return self._marks_between(known.key, 1, known.entries, {"noted"}) if known else []

    def page(self, session: Any, start: int, end: int) -> list[Entry]:
        """Return the entries from seq `start` to `end`, both included."""
        return list(self.read(session, [(start, end)]))

    def entry(self, session: str, entry: str) -> Entry | None:
        """Return one entry; None if the session or the entry is unknown."""
        known = self.session(session)
        return self.stored(known.key, [entry]).get(entry) if known else None

    def entries(self, session: str, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, in their order."""
        known = self.session(session)
        found = self.stored(known.key, ids) if known else {}
        missing = [id_ for id_ in ids if id_ not in found]
        if missing:
            raise StoreError(f"session {session} has no entry {', '.join(missing[:5])}")
        return [found[id_] for id_ in ids]

    def sessions(self, *, limit: int | None = None, after: Listed = FIRST) -> list[SessionInfo]:
        """Return sessions, the last updated first."""
        rows = self.database.rows("newest_sessions", limit=limit, updated=after[0], id=after[1])
        return [SessionInfo(*row) for row in rows]

    def sessions_of(self, user: str, *, limit: int | None = None, after: Listed = FIRST) -> list[SessionInfo]:
        """Return the sessions of a user, the last updated first."""
        rows = self.database.rows("sessions_of_user", user=user, limit=limit, updated=after[0], id=after[1])
        return [SessionInfo(*row) for row in rows]

    def count_of(self, user: str) -> int:
        """Return how many sessions a user has."""
        row = self.database.row("count_sessions_of_user", user=user)
        return row[0] if row else 0

    def idle(self, before: float, limit: int) -> list[str]:
        """Return the ids of sessions last updated before a Unix time, the oldest first."""
        return [id_ for (id_,) in self.database.rows("idle_sessions", before=before, limit=limit)]

    def info(self, session: str) -> SessionInfo | None:
        """Return the info of one session."""
        row = self.database.row("info", **id_and_key(session))
        return SessionInfo(*row) if row else None

    def ids(self, prefix: str, limit: int) -> list[str]:
        """Return the newest ids with a prefix: see `Store.ids`."""
        past = f"{prefix}\U0010ffff"  # every id with this prefix sorts before it
        return [id_ for (id_,) in self.database.rows("ids_from", first=prefix, past=past, limit=limit)]

    def set_times(self, session: str, created: float, updated: float) -> None:
        """Set when a session was created and updated."""
        with self.database.transaction():
            key = self.known_session(session).key
            self.database.change("set_times", session=key, created=created, updated=updated)

    def count(self) -> int:
        """Return how many sessions there are."""
        row = self.database.row("count_sessions")
        return row[0] if row else 0

    def session(self, session: str) -> SessionRow | None:
        """Return the row of a session; None for an unknown session."""
        row = self.database.row("session", **id_and_key(session))
        if row is None:
            return None
        key, leaf, entries, *place = row
        return SessionRow(key, leaf, entries, Place(*place) if place[0] is not None else None)

    def known_session(self, session: str) -> SessionRow:
        """Return the row of a session; raises SessionNotFound."""
        known = self.session(session)
        if known is None:
            raise SessionNotFound(f"no session {session!r} in this store")
        return known

    def seq_of(self, session: Any, entry: str) -> int:
        """Return the seq of an entry; raises StoreError if the session has no such entry."""
        return self._seqs_of(session, [entry])[0]

    def place_at(self, session: Any, seq: int) -> Place:
        """Return the place of the entry at `seq`; raises StoreCorrupt if it is missing."""
        row = self.database.row("place", session=session, seq=seq)
        if row is None:
            raise StoreCorrupt(f"entry {seq} of the session is missing: run `foldline verify`")
        return Place(*row)

    def spans(self, session: Any, seq: int, first: int = 1, most: int | None = None) -> Spans:
        """Return the ranges of seq of the path to `seq`: see `tree.spans`."""
        return tree.spans(partial(self.place_at, session), seq, first, most)

    def read(self, session: Any, spans: Spans) -> Iterator[Entry]:
        """Yield the entries of these ranges; raises StoreCorrupt if one is missing or cannot be read.

        A damaged boundary or note is skipped: that changes the view, but loses no message.
        """
        for start, end in spans:
            rows = self.database.rows("payloads", session=session, first=start, last=end)
            if len(rows) != end - start + 1:
                raise StoreCorrupt(f"entries are missing between {start} and {end}: run `foldline verify`")
            for seq, (payload, kind) in enumerate(rows, start):
                try:
                    entry = unpack(payload)
                except StoreCorrupt as error:
                    if kind not in _SKIPPED_IF_DAMAGED:
                        (id_, *_) = self.database.row("found", session=session, seq=seq) or ("",)
                        raise StoreCorrupt(
                            f"session {id_}, entry {seq}: {error}. Run `foldline verify --session {id_}`"
                        ) from error
                else:
                    yield entry

    def events(self, session: Any, place: Place | None) -> list[Entry]:
        """Return the Compacted and Lifted entries on the path up to `place`, in order."""
        spans = self.spans(session, place.seq) if place else []
        return [entry for start, end in spans for entry in self.events_between(session, start, end)]

    def events_between(self, session: Any, start: int, end: int) -> list[Entry]:
        """Return the Compacted and Lifted entries from seq `start` to `end`."""
        return self._marks_between(session, start, end, {"compacted", "lifted"})

    def _marks_between(self, session: Any, start: int, end: int, kinds: Collection[str]) -> list[Entry]:
        """Return the entries of these kinds from seq `start` to `end`; damaged ones are skipped."""
        found: list[Entry] = []
        for (payload,) in self.database.rows(
            "marks", session=session, first=start, last=end, kinds=list(kinds)
        ):
            with contextlib.suppress(StoreCorrupt):
                found.append(unpack(payload))
        return found

    def _readable_boundary(self, session: str, key: Any, place: Place) -> Compacted | None:
        """Return the newest readable effective Compacted; warns if a newer one is damaged."""
        newest = place.boundary
        if newest is None:
            return None
        try:
            stored = self.stored(key, [newest]).get(newest)
        except StoreCorrupt:
            stored = None
        if isinstance(stored, Compacted):
            return stored
        before = tree.effective(self.events(key, place))
        fallback = f"continues from the boundary before it, {before}" if before else "is sent whole"
        log.warning(
            "session %s: its compaction %s cannot be read, and the session %s. Restore a backup, or "
            "compact again; `foldline verify --session %s` lists the damage.",
            session,
            newest,
            fallback,
            session,
        )
        earlier = self.stored(key, [before]).get(before) if before else None
        if before and not isinstance(earlier, Compacted):
            raise StoreCorrupt(f"the boundary {before} is not a compaction: run `foldline verify`")
        return earlier if isinstance(earlier, Compacted) else None

    def _kept(self, session: Any, leaf: Place, boundary: Compacted) -> list[Entry]:
        """Return the entries that a boundary keeps, and those after it."""
        first, *older = self._seqs_of(
            session, [boundary.first_kept or boundary.id, *boundary.leading, *boundary.quoted]
        )
        single = [(seq, seq) for seq in sorted(set(older)) if seq < first]
        return list(self.read(session, [*single, *self.spans(session, leaf.seq, first)]))

    def place_of(self, session: SessionRow | None, leaf: str | None) -> Place | None:
        """Return the place of an entry, or of the leaf; raises StoreCorrupt if the leaf is missing."""
        if session is None:
            return None
        if leaf is None:
            if session.leaf is not None and session.place is None:
                raise StoreCorrupt(f"the leaf {session.leaf} is missing: run `foldline verify`")
            return session.place
        return self.place_at(session.key, self.seq_of(session.key, leaf))

    def find(self, session: Any, entry: str) -> int | None:
        """Return the seq of an entry; None for an unknown entry."""
        row = self.database.row("seq", session=session, id=entry)
        return row[0] if row else None

    def seqs(self, session: Any, ids: Iterable[str]) -> dict[str, int]:
        """Return the seqs of these entries, leaving out unknown ones."""
        return dict(self.database.rows("seqs", session=session, ids=sorted(set(ids))))  # pyright: ignore[reportArgumentType]

    def _seqs_of(self, session: Any, ids: Sequence[str]) -> list[int]:
        """Return the seqs of these entries, in their order; raises StoreError if one is missing."""
        found = self.seqs(session, ids)
        missing = next((id_ for id_ in ids if id_ not in found), None)
        if missing is not None:
            raise StoreError(f"no entry {missing} in this session")
        return [found[id_] for id_ in ids]

    def stored(self, session: Any, ids: Sequence[str]) -> dict[str, Entry]:
        """Return these entries by id, leaving out unknown ones; raises StoreCorrupt if one cannot be read."""
        rows = self.database.rows("payloads_of", session=session, ids=sorted(set(ids)))
        return {id_: unpack(payload) for id_, payload in rows}


def id_and_key(session: str) -> dict[str, Any]:
    """Return the query values that identify a session: its id, and a key derived from it."""
    return {"id": session, "key": digest(session.encode("utf-8", "surrogatepass"))}
