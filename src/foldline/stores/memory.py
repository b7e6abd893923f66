"""Sessions in memory: for tests, for one-off folds, and as the reference for other stores."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from foldline.core.log.entries import Compacted, Entry, Lifted
from foldline.core.log.log import verify
from foldline.errors import LeafMoved, SessionNotFound, StoreError
from foldline.stores import search, tree
from foldline.stores.base import FEW, MARKS, Hit, Mark, SessionInfo, Store
from foldline.stores.key_values import MemoryKeyValues
from foldline.stores.rows import copy
from foldline.stores.tree import Place, Spans


class _Session:
    """The entries of one session, each at index seq - 1, with their places."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.places: list[Place] = []
        self.seqs: dict[str, int] = {}
        self.leaf: str | None = None
        self.title = ""
        self.created = 0.0
        self.updated = 0.0

    def place(self, entry: str | None) -> Place | None:
        return None if entry is None else self.places[self.seq(entry) - 1]

    def seq(self, entry: str) -> int:
        seq = self.seqs.get(entry)
        if seq is None:
            raise StoreError(f"no entry {entry} in this session")
        return seq

    def spans(self, place: Place | None, first: int = 1, most: int | None = None) -> Spans:
        return tree.spans(lambda seq: self.places[seq - 1], place.seq if place else None, first, most)

    def read(self, spans: Spans) -> list[Entry]:
        return [entry for start, end in spans for entry in self.entries[start - 1 : end]]

    def is_retry(self, entries: Sequence[Entry]) -> bool:
        """Return whether these very entries, times included, stand on the path already."""
        path = self.spans(self.place(self.leaf))
        for entry in reversed(entries):
            seq = self.seqs.get(entry.id)
            if seq is None or not tree.on(path, seq):
                return False
            stored = self.entries[seq - 1]
            tree.check_same(entry, stored)
            if not tree.same_writer(entry, stored):
                return False
        return True

    def events(self, place: Place | None) -> list[Entry]:
        return [entry for entry in self.read(self.spans(place)) if isinstance(entry, Compacted | Lifted)]

    def add(self, entry: Entry) -> None:
        """Append one entry; only the lists' tails change, so that a batch can be taken back."""
        if entry.id in self.seqs:  # appended before, on a branch that was left
            tree.check_same(entry, self.entries[self.seqs[entry.id] - 1])
            return
        parent = self.place(entry.parent)
        if isinstance(entry, Compacted):
            tree.check_kept(entry, self.spans(parent), self.seqs.get)
        self.places.append(tree.place(entry, len(self.entries) + 1, parent, partial(self.events, parent)))
        self.entries.append(entry)
        self.seqs[entry.id] = len(self.entries)

    def take_back(self, count: int) -> None:
        for entry in self.entries[count:]:
            del self.seqs[entry.id]
        del self.entries[count:], self.places[count:]


class MemoryStore:
    """A store that lives as long as the process, with the rules of a database but nothing durable."""

    shared = False  # with other processes

    def __init__(self) -> None:
        self.key_values = MemoryKeyValues()
        self._sessions: dict[str, _Session] = {}
        self._closed = False

    async def append(self, session: str, entries: Sequence[Entry], *, seen: str | None) -> None:
        """Append a chain of entries: see `Store.append`."""
        tree.check_batch(session, entries, seen)
        copies = [copy(entry) for entry in entries]  # nobody else holds a reference to the stored copies
        known = self._open().get(session) or _Session()
        if known.is_retry(copies):
            return
        if known.leaf != seen:
            raise LeafMoved(f"session {session}: another writer appended first", leaf=known.leaf)
        count = len(known.entries)
        try:
            for entry in copies:
                known.add(entry)
        except StoreError:
            known.take_back(count)
            raise
        created, known.updated = tree.times_in(copies, time.time())
        known.created = known.created if count else created
        known.leaf = copies[-1].id
        known.title = tree.title_in(copies) or known.title
        self._sessions[session] = known

    async def leaf(self, session: str) -> str | None:
        """Return the id of the leaf."""
        known = self._open().get(session)
        return known.leaf if known else None

    async def move(self, session: str, leaf: str | None, *, seen: str | None) -> None:
        """Move the leaf: see `Store.move`."""
        known = self._known(session)
        known.place(leaf)
        if known.leaf not in {leaf, seen}:
            raise LeafMoved(f"session {session}: another writer moved the leaf first", leaf=known.leaf)
        if known.leaf != leaf:
            known.leaf, known.updated = leaf, time.time()

    async def active(self, session: str, leaf: str | None = None) -> list[Entry]:
        """Return what a view needs: see `Store.active`."""
        known = self._open().get(session) or _Session()
        place = known.place(known.leaf if leaf is None else leaf)
        if place is None or place.boundary is None:
            return known.read(known.spans(place))
        at = known.seq(place.boundary)
        compacted = known.entries[at - 1]
        assert isinstance(compacted, Compacted)
        first = known.seq(compacted.first_kept) if compacted.first_kept else at
        older = sorted({known.seq(id_) for id_ in (*compacted.leading, *compacted.quoted)})
        alone = [(seq, seq) for seq in older if seq < first]
        return known.read([*alone, *known.spans(place, first)])

    async def path(self, session: str, leaf: str | None = None) -> AsyncIterator[Entry]:
        """Yield the entries of the path, root first."""
        known = self._open().get(session) or _Session()
        for entry in known.read(known.spans(known.place(known.leaf if leaf is None else leaf))):
            yield entry

    async def tail(
        self, session: str, limit: int, *, leaf: str | None = None, before: str | None = None
    ) -> list[Entry]:
        """Return the last entries of a path: see `Store.tail`."""
        known = self._open().get(session)
        place = known.place(known.leaf if leaf is None else leaf) if known else None
        if before is not None:
            path = known.spans(place) if known else []
            tree.check_before(path, known.seqs.get(before) if known else None, before)
        if known is None or place is None:
            return []
        if before is None:
            return known.read(known.spans(place, most=limit))
        return known.read(known.spans(known.place(before), most=max(limit, 0) + 1))[:-1]

    async def marks(
        self, session: str, leaf: str | None = None, *, kinds: Collection[Mark] = MARKS
    ) -> list[Entry]:
        """Return the entries of the path that are no messages: see `Store.marks`."""
        return [entry async for entry in self.path(session, leaf) if tree.kind(entry) in kinds]

    async def all(self, session: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """Yield every entry in append order."""
        known = self._open().get(session) or _Session()
        for entry in known.entries[after:]:
            yield entry

    async def entry(self, session: str, entry: str) -> Entry | None:
        """Return one entry; None if there is none."""
        known = self._open().get(session)
        return known.entries[known.seqs[entry] - 1] if known and entry in known.seqs else None

    async def entries(self, session: str, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, in their order."""
        known = self._open().get(session) or _Session()
        missing = [id_ for id_ in ids if id_ not in known.seqs]
        if missing:
            raise StoreError(f"session {session} has no entry {', '.join(missing[:5])}")
        return [known.entries[known.seqs[id_] - 1] for id_ in ids]

    async def sessions(self, *, limit: int | None = None, offset: int = 0) -> list[SessionInfo]:
        """Return sessions, the last updated first."""
        infos = [_info(name, known) for name, known in self._open().items()]
        infos.reverse()
        ordered = sorted(infos, key=lambda info: -info.updated)
        return ordered[offset:] if limit is None else ordered[offset : offset + limit]

    async def info(self, session: str) -> SessionInfo | None:
        """Return what `sessions` tells of one session."""
        known = self._open().get(session)
        return _info(session, known) if known else None

    async def ids(self, prefix: str, limit: int) -> list[str]:
        """Return the ids of the newest sessions that begin so."""
        return [name for name in reversed(self._open()) if name.startswith(prefix)][:limit]

    async def count(self) -> int:
        """Return how many sessions there are."""
        return len(self._open())

    async def search(
        self, query: str, session: str | None = None, limit: int = 20, *, on_path: bool = False
    ) -> list[Hit]:
        """Return matching messages, the newest first: see `Store.search`."""
        self._open()
        if not search.words(query):
            return []
        names = list(self._sessions) if session is None else [session] if session in self._sessions else []
        said = [
            (name, seq, entry, search.searchable(entry))
            for name in reversed(names)
            for seq, entry in self._searched(name, on_path=on_path)
        ]
        held = [one for one in said if search.begins(one[3], query)]
        held.sort(key=lambda one: not search.begins(one[3], query, whole=True))
        held = held or [one for one in said if search.holds(one[3], query)]
        hits = [search.hit(name, seq, entry, query) for name, seq, entry, _ in held]
        if len(hits) < FEW and len(search.different_words(query)) > 1:
            others = [one for one in said if one not in held]
            places = search.ranked([text for *_, text in others], query)
            hits += [search.hit(*others[place][:3], query, partial=True) for place in places]
        return hits[: max(limit, 0)]

    async def verify(self, session: str | None = None) -> list[str]:
        """Return what is wrong: see `Store.verify`."""
        names = list(self._open()) if session is None else [session]
        return [f"session {name}: {line}" for name in names for line in verify(self._known(name).entries)]

    async def set_times(self, session: str, created: float, updated: float) -> None:
        """Set the times that `sessions` tells: a copy keeps those of the original."""
        known = self._known(session)
        known.created, known.updated = created, updated

    async def purge(self, session: str) -> None:
        """Delete a session permanently."""
        self._known(session)
        del self._sessions[session]
        self.key_values.forget(session)

    async def close(self) -> None:
        """Forget everything."""
        self._sessions = {}
        self._closed = True

    def _open(self) -> dict[str, _Session]:
        if self._closed:
            raise StoreError("this store is closed")
        return self._sessions

    def _known(self, session: str) -> _Session:
        known = self._open().get(session)
        if known is None:
            raise SessionNotFound(f"no session {session!r} in this store")
        return known

    def _searched(self, name: str, *, on_path: bool) -> Iterator[tuple[int, Entry]]:
        known = self._sessions[name]
        path = known.spans(known.place(known.leaf)) if on_path else [(1, len(known.entries))]
        for start, end in reversed(path):
            for seq in range(end, start - 1, -1):
                entry = known.entries[seq - 1]
                if search.searched_as(entry):
                    yield seq, entry


def _info(name: str, known: _Session) -> SessionInfo:
    place = known.place(known.leaf)
    return SessionInfo(
        id=name,
        title=known.title,
        created=known.created,
        updated=known.updated,
        messages=place.messages if place else 0,
        entries=len(known.entries),
        compactions=place.compactions if place else 0,
        tokens=place.tokens if place else 0,
        leaf=known.leaf,
    )


if TYPE_CHECKING:
    _: Store = MemoryStore()
