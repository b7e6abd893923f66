"""Sessions in an SQLite file, or in an SQLite database in memory.

A file has a write-ahead log and is synced at every commit. One worker thread per store does all work on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from foldline.errors import StoreError
from foldline.stores import sqlite_index
from foldline.stores.audit import audit_session, audit_sessions
from foldline.stores.base import Store
from foldline.stores.database_store import DatabaseStore
from foldline.stores.sqlite_database import (
    SqliteDatabase,
    connect,
    connect_to_memory,
    is_busy,
    retry_while_locked,
    store_error,
)
from foldline.stores.sqlite_index import SqliteIndex
from foldline.stores.tables import Tables
from foldline.stores.worker import Worker

# Bytes of the write-ahead log at which it is moved into the file, to be written from its start again. That is
# early, since a sync takes two thirds of the time if the log does not grow.
_CHECKPOINT = 2**20
# Each purge adds a level to the full-text index, and past 2,000 levels SQLite considers the index damaged.
_REBUILD_AFTER = 256  # purges

log = logging.getLogger("foldline")
T = TypeVar("T")


class SqliteStore(DatabaseStore[SqliteDatabase]):
    """A store in one SQLite file, which is opened, created or migrated at the first use.

    All work of a store runs in its one thread, in order; several stores and processes may use one file.
    `timeout` is how many seconds to wait for another process's lock.
    """

    def __init__(self, path: str | Path, *, timeout: float = 10.0) -> None:
        super().__init__(str(path), SqliteIndex(), _audit)
        self.file = Path(path)
        self.timeout = timeout
        self._worker = Worker("foldline-sqlite")
        self._database: SqliteDatabase | None = None

    def is_missing(self) -> bool:
        """Return whether the file does not exist yet, or is empty."""
        try:
            return not self.file.exists() or (self.file.is_file() and not self.file.stat().st_size)
        except OSError:
            return False  # the error is raised when the file is opened

    async def purge(self, session: str) -> None:
        """Delete a session permanently from the tables, the index and the write-ahead log."""

        def purge(database: SqliteDatabase) -> bool:  # in one step, so that a close cannot come between
            _purge(database, session)
            if _empty_log(database.connection, 0):
                return True
            log.warning(
                "session %s is deleted; waiting up to %g s for programs that are reading %s, to remove its "
                "copies from the write-ahead log too",
                session,
                self.timeout,
                self.file,
            )
            return _empty_log(database.connection, self.timeout)

        if not await self.ask(purge):
            raise StoreError(
                f"session {session} is purged, but another process is reading {self.file}: copies of its "
                f"text stay in {self.file.name}-wal until every program that uses the file has closed it."
            )

    async def close(self) -> None:
        """Close the file and end the thread."""
        if self._closed:
            return
        self._closed = True
        if self._forked:
            return  # the thread and the connection belong to the parent process
        done = self._worker.ask(self._disconnect)
        try:
            await asyncio.shield(done)  # done even if the caller is cancelled
        finally:
            self._worker.stop(wait=done.done())

    async def _run_on_connection(self, work: Callable[[SqliteDatabase], T], *, writes: bool = False) -> T:
        del writes  # the thread runs all work in order
        return await self._worker.ask(partial(self._work, work))

    def _work(self, work: Callable[[SqliteDatabase], T]) -> T:
        try:
            if self._database is None:
                self._database = SqliteDatabase(connect(self.file, self.timeout))
            result = retry_while_locked(partial(work, self._database), self.timeout)
        except (sqlite3.Error, OSError, UnicodeEncodeError, OverflowError) as error:
            raise store_error(error, self.file) from error
        if self._database.unsettled > _CHECKPOINT:
            self._database.unsettled = 0
            self._worker.submit(self._checkpoint)  # after the answer, so that the append does not wait for it
        return result

    def _checkpoint(self) -> None:
        if self._database is not None:
            with contextlib.suppress(
                sqlite3.Error
            ):  # the next checkpoint moves it; until then the log is safe
                self._database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.connection.close()
            self._database = None


class MemoryStore(DatabaseStore[SqliteDatabase]):
    """A store in memory, with the rules of a file; its sessions are gone when it is closed or dropped.

    Work runs in the calling thread, since it never waits for a disk.
    """

    shared = False

    def __init__(self) -> None:
        super().__init__("the store in memory", SqliteIndex(), _audit)
        self._database: SqliteDatabase | None = None
        self._free: weakref.finalize[[], MemoryStore] | None = None
        self._lock = threading.Lock()  # sessions of several event loops may use one store

    async def purge(self, session: str) -> None:
        """Delete a session permanently."""
        await self.ask(lambda database: _purge(database, session))

    async def close(self) -> None:
        """Delete everything, as when the store is dropped."""
        self._closed, self._database = True, None
        if self._free is not None:
            self._free()

    async def _run_on_connection(self, work: Callable[[SqliteDatabase], T], *, writes: bool = False) -> T:
        del writes
        with self._lock:
            if self._database is None:
                self._database = SqliteDatabase(connect_to_memory())
                self._free = weakref.finalize(self, self._database.connection.close)
            try:
                return work(self._database)
            except (sqlite3.Error, UnicodeEncodeError, OverflowError) as error:
                raise store_error(error, Path(self._name)) from error


# ---- purges


def _purge(database: SqliteDatabase, session: str) -> None:
    """Delete a session from the tables and the index, and overwrite the deleted data."""
    database.connection.execute("PRAGMA secure_delete = ON")
    with database.transaction():
        key = Tables(database).known_session(session).key
        sqlite_index.forget(database, key)
        database.change("forget_values", id=session)
        database.change("delete_entries", session=key)
        database.change("delete_session", session=key)
        (purges,) = database.row("count_purges") or (0,)
        if purges % _REBUILD_AFTER:
            database.change("optimize_index")
        else:
            sqlite_index.clear(database)


def _empty_log(database: sqlite3.Connection, timeout: float) -> bool:
    """Move the write-ahead log into the file and empty it; False if others read it for `timeout` seconds."""
    database.execute(f"PRAGMA busy_timeout = {round(timeout * 1000)}")
    try:
        busy: int = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        database.execute("PRAGMA busy_timeout = 0")
    return not busy


# ---- audits


def _audit(database: SqliteDatabase, session: str | None) -> list[str]:
    """Return a line for each problem of the file, its index and every session, or of one session."""
    with _lenient_text(database.connection):
        if session is not None:
            return audit_session(Tables(database), session)
        checked = [*_check_file(database.connection), *_check_index(database)]
        return [*checked, *audit_sessions(Tables(database))]


@contextmanager
def _lenient_text(database: sqlite3.Connection) -> Generator[None]:
    """Accept invalid UTF-8 inside: an audit must find the rows that have it."""
    before = database.text_factory
    database.text_factory = partial(str, encoding="utf-8", errors="replace")
    try:
        yield
    finally:
        database.text_factory = before


def _check_file(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("PRAGMA integrity_check(100)").fetchall()
    problems = [f"file: {line}" for (line,) in rows if line != "ok"]
    rows = database.execute("PRAGMA foreign_key_check").fetchall()
    return problems + [f"file: row {row[1]} of {row[0]} belongs to no session" for row in rows]


def _check_index(database: SqliteDatabase) -> list[str]:
    """Check the full-text index of a file that can be written (https://www.sqlite.org/fts5.html)."""
    if database.read_only:
        return []
    try:
        with database.transaction():
            database.connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise
        return [f"search index: {error}; the messages are safe: export the sessions to a new file"]
    return []


if TYPE_CHECKING:
    _: Store = SqliteStore("")
    _ = MemoryStore()
