"""Sessions in an SQLite file, or in a database of the same kind that is never written to a file.

A file has a write-ahead log, is synced at every commit, and belongs to one worker thread per store.
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

# Bytes in the write-ahead log after which they are moved into the file. The log is then written from its
# start again, and a sync of a file that does not grow takes two thirds of the time: so it is done early.
_CHECKPOINT = 2**20
# Each purge adds a level to the full-text index, and past 2,000 levels SQLite considers it damaged.
_FRESH_INDEX = 256  # purges after which it is rebuilt

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
        """Return whether nobody has made the file yet, or it was cut to nothing."""
        try:
            return not self.file.exists() or (self.file.is_file() and not self.file.stat().st_size)
        except OSError:
            return False  # opening it will report the problem

    async def purge(self, session: str) -> None:
        """Delete a session permanently from the tables, the index and the write-ahead log."""

        def purge(database: SqliteDatabase) -> bool:  # as one, so that a close leaves nothing behind
            _purge(database, session)
            if _emptied(database.connection, 0):
                return True
            log.warning(
                "session %s is deleted; waiting up to %g s for the programs that are reading %s, "
                "so that its pages also leave the write-ahead log",
                session,
                self.timeout,
                self.file,
            )
            return _emptied(database.connection, self.timeout)

        if not await self.ask(purge):
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
        if self._forked:
            return  # the thread and the connection belong to the parent process
        done = self._worker.ask(self._disconnect)
        try:
            await asyncio.shield(done)  # done even if the caller is cancelled
        finally:
            self._worker.stop(wait=done.done())

    async def _do(self, work: Callable[[SqliteDatabase], T], *, writes: bool = False) -> T:
        del writes  # the thread does all work in order
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
            with contextlib.suppress(sqlite3.Error):  # the next one will do it; until then the log is safe
                self._database.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def _disconnect(self) -> None:
        if self._database is not None:
            self._database.connection.close()
            self._database = None


class MemoryStore(DatabaseStore[SqliteDatabase]):
    """A store that lives as long as the process, with the rules of a file but nothing durable.

    Work is done at once where it is asked for: there is no disk to wait for.
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
        """Forget everything, as is done when the store is dropped."""
        self._closed, self._database = True, None
        if self._free is not None:
            self._free()

    async def _do(self, work: Callable[[SqliteDatabase], T], *, writes: bool = False) -> T:
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
    """Delete a session from the tables and the index, and overwrite what is deleted."""
    database.connection.execute("PRAGMA secure_delete = ON")
    with database.transaction():
        no = Tables(database).known_session(session).key
        sqlite_index.forget(database, no)
        database.change("forget_values", id=session)
        database.change("delete_entries", session=no)
        database.change("delete_session", session=no)
        (purges,) = database.row("count_purges") or (0,)
        if purges % _FRESH_INDEX:
            database.change("optimize_index")
        else:
            sqlite_index.clear(database)


def _emptied(database: sqlite3.Connection, timeout: float) -> bool:
    """Move the write-ahead log into the file and empty it; False if others still read from it."""
    database.execute(f"PRAGMA busy_timeout = {round(timeout * 1000)}")
    try:
        busy: int = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        database.execute("PRAGMA busy_timeout = 0")
    return not busy


# ---- audits


def _audit(database: SqliteDatabase, session: str | None) -> list[str]:
    """Return a line for each problem of the file, its index and every session, or of one session."""
    with _any_text(database.connection):
        if session is not None:
            return audit_session(Tables(database), session)
        return [*_file(database.connection), *_index(database), *audit_sessions(Tables(database))]


@contextmanager
def _any_text(database: sqlite3.Connection) -> Generator[None]:
    """Read invalid UTF-8 too: an audit must find the rows that cannot be read."""
    before = database.text_factory
    database.text_factory = _legible
    try:
        yield
    finally:
        database.text_factory = before


def _legible(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _file(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("PRAGMA integrity_check(100)").fetchall()
    problems = [f"file: {line}" for (line,) in rows if line != "ok"]
    rows = database.execute("PRAGMA foreign_key_check").fetchall()
    return problems + [f"file: row {row[1]} of {row[0]} belongs to no session" for row in rows]


def _index(database: SqliteDatabase) -> list[str]:
    """Check the full-text index (https://www.sqlite.org/fts5.html, integrity-check), where that can be."""
    if database.read_only:
        return []
    try:
        with database.transaction():
            database.connection.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise
        return [f"search index: {error}; the messages themselves are safe: export the sessions to a new file"]
    return []


if TYPE_CHECKING:
    _: Store = SqliteStore("")
    _ = MemoryStore()
