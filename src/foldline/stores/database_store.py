"""A store over a database: the asynchronous half, which is the same for all of them.

A database brings a way to do work over one of its connections, a full-text index, and what is its own of an
audit and a purge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from foldline.core.log.entries import Entry
from foldline.stores import index, search
from foldline.stores.appending import append
from foldline.stores.base import FEW, MARKS, Hit, Mark, SessionInfo
from foldline.stores.index import WordIndex
from foldline.stores.key_values import KeyValues
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans

_PAGE = 256  # entries read in one step

T = TypeVar("T")


class DatabaseStore(ABC):
    """What every store over a database does the same; see `Store` for what each method promises."""

    shared = True  # other processes may use the same sessions

    def __init__(self, index_: WordIndex) -> None:
        self.key_values = KeyValues(self._run)
        self._index = index_

    @abstractmethod
    async def _run(self, work: Callable[[Tables], T], *, writes: bool = False) -> T:
        """Do work over one connection; what `writes` is done before anything that is asked afterwards."""

    @abstractmethod
    async def verify(self, session: str | None = None) -> list[str]:
        """Return what is wrong."""

    @abstractmethod
    async def purge(self, session: str) -> None:
        """Delete a session permanently: its rows, its index, its values."""

    @abstractmethod
    async def close(self) -> None:
        """Release what the store holds."""

    def is_missing(self) -> bool:
        """Return whether the store is a file that nobody has made yet, or one that was cut to nothing."""
        return False

    async def append(self, session: str, entries: Sequence[Entry], *, seen: str | None) -> None:
        """Append a chain of entries."""
        batch = tuple(entries)
        await self._run(lambda tables: append(tables, session, batch, seen), writes=True)

    async def leaf(self, session: str) -> str | None:
        """Return the id of the leaf."""
        known = await self._run(lambda tables: tables.session(session))
        return known.leaf if known else None

    async def move(self, session: str, leaf: str | None, *, seen: str | None) -> None:
        """Move the leaf."""
        await self._run(lambda tables: tables.move(session, leaf, seen), writes=True)

    async def active(self, session: str, leaf: str | None = None) -> list[Entry]:
        """Return what a view needs."""
        return await self._run(lambda tables: tables.active(session, leaf))

    async def path(self, session: str, leaf: str | None = None) -> AsyncIterator[Entry]:
        """Yield the entries of the path, root first."""
        key, spans = await self._run(lambda tables: tables.spans_of(session, leaf))
        async for entry in self._pages(key, spans):
            yield entry

    async def tail(
        self, session: str, limit: int, *, leaf: str | None = None, before: str | None = None
    ) -> list[Entry]:
        """Return the last entries of a path."""
        return await self._run(lambda tables: tables.tail(session, limit, leaf, before))

    async def marks(
        self, session: str, leaf: str | None = None, *, kinds: Collection[Mark] = MARKS
    ) -> list[Entry]:
        """Return the entries of the path that are no messages."""
        return await self._run(lambda tables: tables.marks(session, leaf, kinds))

    async def all(self, session: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """Yield every entry in append order."""
        known = await self._run(lambda tables: tables.session(session))
        if known is not None and known.entries > after:
            async for entry in self._pages(known.key, [(after + 1, known.entries)]):
                yield entry

    async def _pages(self, key: Any, spans: Spans) -> AsyncIterator[Entry]:
        for first, last in spans:
            for start in range(first, last + 1, _PAGE):
                end = min(last, start + _PAGE - 1)
                for entry in await self._run(partial(Tables.page, session=key, start=start, end=end)):
                    yield entry

    async def entry(self, session: str, entry: str) -> Entry | None:
        """Return one entry; None if there is none."""
        return await self._run(lambda tables: tables.entry(session, entry))

    async def entries(self, session: str, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, in their order."""
        return await self._run(lambda tables: tables.entries(session, ids))

    async def sessions(self, *, limit: int | None = None, offset: int = 0) -> list[SessionInfo]:
        """Return sessions, the last updated first."""
        return await self._run(lambda tables: tables.sessions(limit, offset))

    async def info(self, session: str) -> SessionInfo | None:
        """Return what `sessions` tells of one session."""
        return await self._run(lambda tables: tables.info(session))

    async def ids(self, prefix: str, limit: int) -> list[str]:
        """Return the ids of the newest sessions that begin so."""
        return await self._run(lambda tables: tables.ids(prefix, limit))

    async def count(self) -> int:
        """Return how many sessions there are."""
        return await self._run(Tables.count)

    async def set_times(self, session: str, created: float, updated: float) -> None:
        """Set the times that `sessions` tells: a copy keeps those of the original."""
        await self._run(lambda tables: tables.set_times(session, created, updated))

    async def search(
        self, query: str, session: str | None = None, limit: int = 20, *, on_path: bool = False
    ) -> list[Hit]:
        """Return matching messages: in steps, so that appends can run in between."""
        if not search.words(query) or limit < 1:
            return []
        run, words = self._run, self._index
        scope = await run(lambda tables: index.scope(tables, session, on_path=on_path))
        if scope is None:
            return []
        for key in await run(lambda tables: index.behind(tables, scope)):
            while await run(partial(index.catch_up, words=words, session=key)):
                pass
        hits = await run(lambda tables: index.matches(tables, words, query, scope, limit))
        place = None if hits else await run(lambda tables: index.first_place(tables, scope))
        while place is not None and len(hits) < limit:
            step = partial(index.scan, query=query, scope=scope, place=place, limit=limit - len(hits))
            more, place = await run(step)
            hits += more
        if len(hits) < min(FEW, limit):
            known, room = tuple(hits), limit - len(hits)
            hits += await run(lambda tables: words.some(tables, query, scope, room, known))
        return hits
