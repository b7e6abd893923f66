"""The asynchronous half of a store over a database, common to all databases.

The subclass for a database runs work on a connection, and provides a full-text index, an audit and a purge.
Most methods of a store run a method of `Tables`.
"""

from __future__ import annotations

import functools
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from types import CoroutineType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from foldline.core.log.entries import Entry
from foldline.errors import StoreCorrupt, StoreError
from foldline.stores import index, search
from foldline.stores.appending import append
from foldline.stores.audit_log import AuditLog
from foldline.stores.base import FEW, Hit
from foldline.stores.database import Database
from foldline.stores.index import ScanPlace, Scope, WordIndex
from foldline.stores.key_values import KeyValues
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans

log = logging.getLogger("foldline")
_PAGE = 256  # entries read in one step

D = TypeVar("D", bound=Database)
P = ParamSpec("P")
T = TypeVar("T")


def _run_on_tables(
    work: Callable[Concatenate[Tables, P], T], *, writes: bool = False
) -> Callable[Concatenate[DatabaseStore[Any], P], CoroutineType[Any, Any, T]]:
    """Make an async method that runs a method of `Tables` on the store's connection."""

    @functools.wraps(work)
    async def run(self: DatabaseStore[Any], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(lambda tables: work(tables, *args, **kwargs), writes=writes)

    return run


class DatabaseStore(ABC, Generic[D]):
    """Base class of stores over a database; see `Store` for the methods."""

    shared = True  # other processes may use the same sessions

    def __init__(self, name: str, words: WordIndex, audit: Callable[[D, str | None], list[str]]) -> None:
        self.key_values = KeyValues(self.ask)
        self.audit_log = AuditLog(self.ask)
        self._name = name
        self._words = words
        self._audit = audit
        self._closed = False
        self._process = os.getpid()

    @abstractmethod
    async def _run_on_connection(self, work: Callable[[D], T], *, writes: bool = False) -> T:
        """Run work on a connection; work that `writes` ends before the work of any later call starts."""

    @abstractmethod
    async def purge(self, session: str) -> None:
        """Delete a session permanently: its rows, its index, its values."""

    @abstractmethod
    async def close(self) -> None:
        """Release the store's resources."""

    def is_missing(self) -> bool:
        """Return whether the store is a file that does not exist yet or is empty."""
        return False

    async def run(self, work: Callable[[Tables], T], *, writes: bool = False) -> T:
        """Run work on the tables; see `_run_on_connection`."""
        return await self.ask(lambda database: work(Tables(database)), writes=writes)

    async def ask(self, work: Callable[[D], T], *, writes: bool = False) -> T:
        """Run work on the database; raises StoreError if the store is not open in this process."""
        if self._closed:
            raise StoreError("this store is closed")
        if self._forked:  # threads and connections stay in the parent process
            raise StoreError(f"{self._name} was opened before a fork: open a separate store in each process")
        return await self._run_on_connection(work, writes=writes)

    @property
    def _forked(self) -> bool:
        return self.shared and self._process != os.getpid()

    async def append(self, session: str, entries: Sequence[Entry], *, seen: str | None) -> None:
        """Append a chain of entries."""
        batch = tuple(entries)
        await self.run(lambda tables: append(tables, session, batch, seen), writes=True)

    leaf = _run_on_tables(Tables.leaf)
    move = _run_on_tables(Tables.move, writes=True)
    active = _run_on_tables(Tables.active)
    tail = _run_on_tables(Tables.tail)
    marks = _run_on_tables(Tables.marks)
    notes = _run_on_tables(Tables.notes)
    entry = _run_on_tables(Tables.entry)
    entries = _run_on_tables(Tables.entries)
    sessions = _run_on_tables(Tables.sessions)
    sessions_of = _run_on_tables(Tables.sessions_of)
    count_of = _run_on_tables(Tables.count_of)
    idle = _run_on_tables(Tables.idle)
    info = _run_on_tables(Tables.info)
    ids = _run_on_tables(Tables.ids)
    count = _run_on_tables(Tables.count)
    set_times = _run_on_tables(Tables.set_times)

    async def verify(self, session: str | None = None) -> list[str]:
        """Return the problems of the store, or of one session: see `Store.verify`."""
        return await self.ask(lambda database: self._audit(database, session))

    async def path(self, session: str, leaf: str | None = None) -> AsyncIterator[Entry]:
        """Yield the entries of the path, root first."""
        key, spans = await self.run(lambda tables: tables.spans_of(session, leaf))
        async for entry in self._pages(session, key, spans):
            yield entry

    async def all(self, session: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """Yield every entry in append order."""
        row = await self.run(lambda tables: tables.session(session))
        if row is not None and row.entries > after:
            async for entry in self._pages(session, row.key, [(after + 1, row.entries)]):
                yield entry

    async def _pages(self, session: str, key: Any, spans: Spans) -> AsyncIterator[Entry]:
        for first, last in spans:
            for start in range(first, last + 1, _PAGE):
                end = min(last, start + _PAGE - 1)
                try:
                    page = await self.run(partial(Tables.page, session=key, start=start, end=end))
                except StoreCorrupt:
                    await self.run(lambda tables: tables.known_session(session))  # was it purged meanwhile?
                    raise
                for entry in page:
                    yield entry

    async def search(
        self, query: str, session: str | None = None, limit: int = 20, *, on_path: bool = False
    ) -> list[Hit]:
        """Return matching messages: see `Store.search`. Works in steps, so that appends can run between."""
        if not search.words(query) or limit < 1:
            return []
        run, words = self.run, self._words
        scope = await run(lambda tables: index.scope(tables, session, on_path=on_path))
        if scope is None:
            return []
        unindexed = await self._catch_up(scope)
        hits = await run(lambda tables: index.full_hits(tables, words, query, scope, limit))
        place = ScanPlace(unindexed) if unindexed else None
        if not hits:
            place = await run(lambda tables: index.start_of_scan(tables, scope))
        while place is not None and len(hits) < limit:
            step = partial(index.scan, query=query, scope=scope, place=place, limit=limit)
            more, place = await run(step)
            hits = list(dict.fromkeys([*hits, *more]))[:limit]
        if len(hits) < min(FEW, limit):
            known, missing = tuple(hits), limit - len(hits)
            hits += await run(lambda tables: words.partial_hits(tables, query, scope, missing, known))
        return hits

    async def _catch_up(self, scope: Scope) -> list[Any]:
        """Index new messages; return the sessions left unindexed because the index cannot be written."""
        unindexed = await self.run(lambda tables: index.sessions_behind(tables, scope))
        try:
            while unindexed:
                while await self.run(partial(index.index_more, words=self._words, session=unindexed[-1])):
                    pass
                unindexed.pop()
        except StoreError as error:
            log.info("%s: new messages are searched without the index: %s", self._name, error)
        return unindexed
