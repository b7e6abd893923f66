"""Sessions in an SQLite file: write-ahead log, full sync, one worker thread per store."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from foldline.core.log.entries import Entry
from foldline.errors import StoreError
from foldline.stores import index, search
from foldline.stores.base import FEW, MARKS, Hit, Mark, SessionInfo, Store
from foldline.stores.connection import connect, retry_while_locked, store_error
from foldline.stores.database_key_values import DatabaseKeyValues
from foldline.stores.sqlite_audit import audit
from foldline.stores.sqlite_database import SqliteDatabase
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans
from foldline.stores.worker import Worker

_PAGE = 256  # entries read in one step
# Bytes in the write-ahead log after which they are moved into the file. The log is then written from its
# start again, and a sync of a file that does not grow takes two thirds of the time: so it is done early.
_CHECKPOINT = 2**20
_ROWS = 10_240  # bytes of an append beside its payloads: about five pages of tables and indexes
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
        self.key_values = DatabaseKeyValues(self._run)
        self._worker = Worker("foldline-sqlite")
        self._database: SqliteDatabase | None = None
        self._unsettled = 0  # approximate bytes in the write-ahead log
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
        key, spans = await self._run(lambda tables: tables.spans_of(session, leaf))
        async for entry in self._pages(key, spans):
            yield entry

    async def tail(
        self, session: str, limit: int, *, leaf: str | None = None, before: str | None = None
    ) -> list[Entry]:
        """Return the last entries of a path: see `Store.tail`."""
        return await self._run(lambda tables: tables.tail(session, limit, leaf, before))

    async def marks(
        self, session: str, leaf: str | None = None, *, kinds: Collection[Mark] = MARKS
    ) -> list[Entry]:
        """Return the entries of the path that are no messages: see `Store.marks`."""
        return await self._run(lambda tables: tables.marks(session, leaf, kinds))

    async def all(self, session: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """Yield every entry in append order."""
        known = await self._run(lambda tables: tables.session(session))
        if known is not None and known.entries > after:
            async for entry in self._pages(known.key, [(after + 1, known.entries)]):
                yield entry

    async def _pages(self, key: int, spans: Spans) -> AsyncIterator[Entry]:
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

    async def search(
        self, query: str, session: str | None = None, limit: int = 20, *, on_path: bool = False
    ) -> list[Hit]:
        """Return matching messages: see `Store.search`."""
        if not search.words(query) or limit < 1:
            return []
        scope = await self._run(lambda tables: index.scope(tables, session, on_path=on_path))
        if scope is None:
            return []
        while await self._run_in(lambda database: index.catch_up(database, scope)):
            pass  # in steps, so that appends can run in between
        hits = await self._run_in(lambda database: index.matches(database, query, scope, limit))
        before = 0 if hits else scope.last + 1
        while before and len(hits) < limit:
            step = partial(index.scan, query=query, scope=scope, before=before, limit=limit - len(hits))
            more, before = await self._run_in(step)
            hits += more
        if len(hits) < min(FEW, limit):
            known, room = tuple(hits), limit - len(hits)
            hits += await self._run_in(lambda database: index.some(database, query, scope, room, known))
        return hits

    async def verify(self, session: str | None = None) -> list[str]:
        """Return what is wrong: see `Store.verify`."""
        return await self._run_in(lambda database: audit(database.connection, Tables(database), session))

    async def set_times(self, session: str, created: float, updated: float) -> None:
        """Set the times that `sessions` tells: a copy keeps those of the original."""
        await self._run(lambda tables: tables.set_times(session, created, updated))

    async def purge(self, session: str) -> None:
        """Delete a session permanently from the tables, the index and the write-ahead log."""
        if not await self._run_in(lambda database: _purge(database, session, self.timeout)):
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
        return await self._run_in(lambda database: work(Tables(database)))

    async def _run_in(self, work: Callable[[SqliteDatabase], T]) -> T:
        if self._closed:
            raise StoreError("this store is closed")
        if self._process != os.getpid():  # its thread and its connection stayed in the parent process
            raise StoreError(f"{self.file} was opened before a fork: open a separate store in each process")
        return await self._worker.ask(partial(self._work, work))

    def _work(self, work: Callable[[SqliteDatabase], T]) -> T:
        try:
            if self._database is None:
                self._database = SqliteDatabase(connect(self.file, self.timeout))
            return retry_while_locked(partial(work, self._database), self.timeout)
        except (sqlite3.Error, OSError, UnicodeEncodeError) as error:
            raise store_error(error, self.file) from error

    def _append(self, tables: Tables, session: str, entries: Sequence[Entry], seen: str | None) -> None:
        written = tables.append(session, entries, seen)
        self._unsettled += written + _ROWS if written else 0
        if self._unsettled > _CHECKPOINT:
            self._unsettled = 0
            self._worker.submit(self._checkpoint)  # after the answer, so that the append does not wait for it

    def _checkpoint(self) -> None:
        if self._database is not None:
            with contextlib.suppress(sqlite3.Error):  # the next one will do it; until then the log is safe
                self._database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.connection.close()
            self._database = None


def _purge(database: SqliteDatabase, session: str, timeout: float) -> bool:
    """Delete a session; return whether the write-ahead log could be emptied of it.

    One piece of work, so that a purge that is cancelled or ended by a close leaves nothing behind.
    """
    database.connection.execute("PRAGMA secure_delete = ON")
    with database.transaction():
        no = Tables(database).known_session(session).key
        index.forget(database, no)
        database.change("forget_values", id=session)
        database.change("delete_entries", session=no)
        database.change("delete_session", session=no)
        (purges,) = database.row("count_purges") or (0,)
        if purges % _FRESH_INDEX:
            database.change("optimize_index")
        else:
            index.clear(database)
    return _emptied(database.connection, timeout)


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
