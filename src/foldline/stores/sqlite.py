"""Sessions in an SQLite file: write-ahead log, full sync, one worker thread per store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from foldline.core.log.entries import Entry
from foldline.errors import StoreError
from foldline.stores import index, search
from foldline.stores.audit import audit
from foldline.stores.base import Hit, SessionInfo, Store
from foldline.stores.connection import connect, retry_while_locked, store_error, transaction
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans
from foldline.stores.worker import Worker

_PAGE = 256  # entries read in one step
# Bytes in the write-ahead log after which they are moved into the file. The log is then written from its
# start again, and a sync of a file that does not grow takes two thirds of the time: so it is done early.
_CHECKPOINT = 2**20
# Each purge adds a level to the full-text index, and past 2,000 levels SQLite considers it damaged.
_FRESH_INDEX = 256  # purges after which it is rebuilt

T = TypeVar("T")


class SqliteStore:
    """A store in one SQLite file, which is opened, created or migrated at the first use.

    All work of a store runs in its one thread, in order; several stores and processes may use one file.
    `timeout` is how many seconds to wait for another process's lock.
    """

    def __init__(self, path: str | Path, *, timeout: float = 10.0) -> None:
        self.file = Path(path)
        self.timeout = timeout
        self._worker = Worker("foldline-sqlite")
        self._tables: Tables | None = None
        self._closed = False
        self._process = os.getpid()

    async def append(self, session: str, entries: Sequence[Entry], *, seen: str | None) -> None:
        """Append a chain of entries: see `Store.append`."""
        await self._run(lambda tables: self._append(tables, session, tuple(entries), seen))

    async def leaf(self, session: str) -> str | None:
        """Return the id of the leaf."""
        known = await self._run(lambda tables: tables.session(session))
        return known.leaf if known else None

    async def move(self, session: str, leaf: str | None, *, seen: str | None) -> None:
        """Move the leaf: see `Store.move`."""
        await self._run(lambda tables: tables.move(session, leaf, seen))

    async def active(self, session: str, leaf: str | None = None) -> list[Entry]:
        """Return what a view needs: see `Store.active`."""
        return await self._run(lambda tables: tables.active(session, leaf))

    async def path(self, session: str, leaf: str | None = None) -> AsyncIterator[Entry]:
        """Yield the entries of the path, root first."""
        no, spans = await self._run(lambda tables: tables.spans_of(session, leaf))
        async for entry in self._pages(no, spans):
            yield entry

    async def all(self, session: str) -> AsyncIterator[Entry]:
        """Yield every entry in append order."""
        known = await self._run(lambda tables: tables.session(session))
        if known is not None and known.entries:
            async for entry in self._pages(known.no, [(1, known.entries)]):
                yield entry

    async def _pages(self, no: int, spans: Spans) -> AsyncIterator[Entry]:
        for first, last in spans:
            for start in range(first, last + 1, _PAGE):
                end = min(last, start + _PAGE - 1)
                for entry in await self._run(partial(Tables.page, no=no, start=start, end=end)):
                    yield entry

    async def entry(self, session: str, entry: str) -> Entry | None:
        """Return one entry; None if there is none."""
        return await self._run(lambda tables: tables.entry(session, entry))

    async def entries(self, session: str, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, in their order."""
        return await self._run(lambda tables: tables.entries(session, ids))

    async def sessions(self) -> list[SessionInfo]:
        """Return every session, the last updated first."""
        return await self._run(Tables.sessions)

    async def search(
        self, query: str, session: str | None = None, limit: int = 20, *, on_path: bool = False
    ) -> list[Hit]:
        """Return matching messages: see `Store.search`."""
        if not search.words(query) or limit < 1:
            return []
        scope = await self._run(lambda tables: index.scope(tables, session, on_path=on_path))
        if scope is None:
            return []
        while await self._run(lambda tables: index.catch_up(tables.database, scope)):
            pass  # in steps, so that appends can run in between
        hits = await self._run(lambda tables: index.matches(tables.database, query, scope, limit))
        before = 0 if hits else scope.last + 1
        while before and len(hits) < limit:
            step = partial(index.scan, query=query, scope=scope, before=before, limit=limit - len(hits))
            more, before = await self._run(lambda tables, step=step: step(tables.database))
            hits += more
        return hits

    async def verify(self, session: str | None = None) -> list[str]:
        """Return what is wrong: see `Store.verify`."""
        return await self._run(lambda tables: audit(tables, session))

    async def purge(self, session: str) -> None:
        """Delete a session permanently from the tables, the index and the write-ahead log."""
        if not await self._run(lambda tables: _purge(tables, session, self.timeout)):
            raise StoreError(
                f"session {session} is purged, but another process is reading {self.file}: "
                "copies of its pages stay in "
                f"{self.file.name}-wal until every program that uses the file has closed it."
            )

    async def close(self) -> None:
        """Close the file and end the thread."""
        if self._closed:
            return
        self._closed = True
        if self._process != os.getpid():
            return  # the thread and the connection belong to the parent process
        done = self._worker.ask(self._disconnect)
        try:
            await asyncio.shield(done)  # done even if the caller is cancelled
        finally:
            self._worker.stop(wait=done.done())

    async def _run(self, work: Callable[[Tables], T]) -> T:
        if self._closed:
            raise StoreError("this store is closed")
        if self._process != os.getpid():  # its thread and its connection stayed in the parent process
            raise StoreError(f"{self.file} was opened before a fork: open a separate store in each process")
        return await self._worker.ask(partial(self._work, work))

    def _work(self, work: Callable[[Tables], T]) -> T:
        try:
            if self._tables is None:
                self._tables = Tables(connect(self.file, self.timeout))
            return retry_while_locked(partial(work, self._tables), self.timeout)
        except (sqlite3.Error, OSError, UnicodeEncodeError) as error:
            raise store_error(error, self.file) from error

    def _append(self, tables: Tables, session: str, entries: Sequence[Entry], seen: str | None) -> None:
        tables.append(session, entries, seen)
        if tables.unsettled > _CHECKPOINT:
            tables.unsettled = 0
            self._worker.submit(self._checkpoint)  # after the answer, so that the append does not wait for it

    def _checkpoint(self) -> None:
        if self._tables is not None:
            with contextlib.suppress(sqlite3.Error):  # the next one will do it; until then the log is safe
                self._tables.database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _disconnect(self) -> None:
        if self._tables is not None:
            self._tables.database.close()
            self._tables = None


def _purge(tables: Tables, session: str, timeout: float) -> bool:
    """Delete a session; return whether the write-ahead log could be emptied of it.

    One piece of work, so that a purge that is cancelled or ended by a close leaves nothing behind.
    """
    database = tables.database
    database.execute("PRAGMA secure_delete = ON")
    with transaction(database):
        no = tables.known_session(session).no
        index.forget(database, no)
        database.execute("DELETE FROM entries WHERE session_no = ?", (no,))
        database.execute("DELETE FROM sessions WHERE no = ?", (no,))
        if _purges(database) % _FRESH_INDEX:
            database.execute("INSERT INTO search (search) VALUES ('optimize')")
        else:
            index.clear(database)
    return _emptied(database, timeout)


def _purges(database: sqlite3.Connection) -> int:
    """Return how many sessions were ever purged; their numbers are never used again."""
    counted = (
        "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'sessions') - (SELECT count(*) FROM sessions)"
    )
    found: int = database.execute(counted).fetchone()[0]
    return found


def _emptied(database: sqlite3.Connection, timeout: float) -> bool:
    """Move the write-ahead log into the file and empty it; False if others still read from it."""
    database.execute(f"PRAGMA busy_timeout = {round(timeout * 1000)}")
    try:
        busy: int = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        database.execute("PRAGMA busy_timeout = 0")
    return not busy


if TYPE_CHECKING:
    _: Store = SqliteStore("")
