"""An SQLite file as a `Database`: open and migrate it, run named queries, and translate SQLite's errors."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from foldline.core.log.codec import text_in_utf8
from foldline.errors import FoldlineError, FormatError, StoreCorrupt, StoreError, StoreVersion
from foldline.files import create_private
from foldline.stores.database import Database, migrations, named_queries

# "FOLD" in the file's header, https://www.sqlite.org/pragma.html#pragma_application_id
APPLICATION = 0x464F4C44
# A safety net for one huge append: the store itself checkpoints between appends.
_AUTOCHECKPOINT_PAGES = 32_000
# A commit writes whole pages, about five for a message: half of SQLite's default page size halves the bytes.
# An existing file keeps its page size.
_PAGE_SIZE = 2_048
_ROWS = 10_240  # bytes of an append in addition to its payloads: about five pages of tables and indexes
_CACHE_KB = 16_000  # enough for one step of indexing; SQLite's default of 2 MB spills to disk

T = TypeVar("T")


class SqliteDatabase:
    """Named queries and transactions over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.read_only = bool(connection.execute("PRAGMA query_only").fetchone()[0])
        self.unsettled = 0  # approximate bytes in the write-ahead log
        self._queries = named_queries("sqlite")

    def rows(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        return self._execute(query, values).fetchall()

    def row(self, query: str, /, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a query."""
        found: tuple[Any, ...] | None = self._execute(query, values).fetchone()
        return found

    def change(self, query: str, /, **values: Any) -> int:
        """Write; return how many rows were changed."""
        return self._execute(query, values).rowcount

    def insert(self, query: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert many rows."""
        self.connection.executemany(self._queries[query], rows)

    def append(self, session: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
        """Move the leaf and write rows behind it, in the transaction of `writing`."""
        key, title = session["session"], session["title"]
        values = {**session, "title": title and text_in_utf8(title)}  # SQLite stores no lone surrogates
        if key is None:
            key = self._execute("begin_session", values).lastrowid
        elif not self._execute("advance_leaf", values).rowcount:
            return False
        for row in rows:
            row["session"] = key
        self.insert("insert_entry", rows)
        self.unsettled += _ROWS + sum(len(row["payload"]) for row in rows)
        return True

    def writing(self) -> AbstractContextManager[None]:
        """Take the write lock before the first read, so that no other writer comes between."""
        return self.transaction()

    def transaction(self) -> AbstractContextManager[None]:
        """Take the write lock, and commit everything done inside, or nothing."""
        return transaction(self.connection)

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything inside as it was at one moment."""
        return transaction(self.connection, "DEFERRED")

    def _execute(self, query: str, values: dict[str, Any]) -> sqlite3.Cursor:
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = json.dumps(value)
        return self.connection.execute(self._queries[query], values)


# ---- opening


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """Open the database at `path`, and create or migrate it if needed; if it cannot be written, only to read.

    Waits up to `timeout` seconds for a lock; the connection itself never waits, `retry_while_locked` does.
    Raises OSError and sqlite3.Error (see `store_error`), FormatError, StoreVersion, StoreError.
    """
    try:
        create_private(path)
    except OSError:
        if not path.is_file():
            raise
        return _connect_to_read(path, timeout)
    database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        retry_while_locked(lambda: _prepare(database, path), timeout)
    except sqlite3.OperationalError as error:
        database.close()
        unwritable = _primary_code(error) in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}
        if not unwritable or os.access(path.parent, os.W_OK):
            raise
        return _connect_to_read(path, timeout)
    except BaseException:
        database.close()
        raise
    return database


def connect_to_memory() -> sqlite3.Connection:
    """Open an empty database in memory, which is gone when its connection is closed."""
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for script in migrations("sqlite"):
        database.executescript(script)
    return database


def _connect_to_read(path: Path, timeout: float) -> sqlite3.Connection:
    database = retry_while_locked(lambda: open_read_only(path), timeout)
    try:
        retry_while_locked(lambda: _check_current(database, path), timeout)
        database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    except BaseException:
        database.close()
        raise
    return database


def _check_current(database: sqlite3.Connection, path: Path) -> None:
    version = _schema_version(database, path)
    if version < len(migrations("sqlite")):
        raise StoreError(
            f"{path} was written by an older Foldline (schema {version}) and cannot be updated, because it "
            "can only be read: make the file and its directory writable, or use a copy (`foldline backup "
            "TARGET`)."
        )


def retry_while_locked(work: Callable[[], T], timeout: float) -> T:
    """Do the work; retry for up to `timeout` seconds while another connection has the lock."""
    deadline, wait = time.monotonic() + timeout, 0.001
    while True:
        try:
            return work()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(wait)
            wait = min(2 * wait, 0.01)


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection has the lock, so that a retry may succeed."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


@contextmanager
def transaction(database: sqlite3.Connection, kind: str = "IMMEDIATE") -> Generator[None]:
    """Commit everything done inside, or nothing."""
    try:
        database.execute(f"BEGIN {kind}")
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.rollback()
        raise


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    version = _schema_version(database, path)
    database.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA foreign_keys = ON")
    database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    database.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT_PAGES}")
    if version < len(migrations("sqlite")):
        _migrate(database, path)


def _schema_version(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of the schema; raises FormatError, or StoreVersion for one of a newer Foldline."""
    # in this order: another process may commit the tables and the application id between two of these
    tables: int = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    version: int = database.execute("PRAGMA user_version").fetchone()[0]
    application: int = database.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise FormatError(
            "this SQLite database belongs to another program: choose another file", where=str(path)
        )
    if version > len(migrations("sqlite")):
        raise StoreVersion(
            f"{path} was written by a newer Foldline (schema {version}; this version supports "
            f"up to {len(migrations('sqlite'))}). Nothing was changed. Upgrade with "
            "`pip install --upgrade foldline`, or choose another file."
        )
    return version


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    with transaction(database):
        version = _schema_version(database, path)  # another process may have migrated it
        for number, script in enumerate(migrations("sqlite")[version:], version + 1):
            for statement in statements(script):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {number}")
        database.execute(f"PRAGMA application_id = {APPLICATION}")


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script; `executescript` would commit between them."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# ---- a file that can only be read


def open_read_only(path: Path, timeout: float = 0) -> sqlite3.Connection:
    """Open an existing SQLite file only to read; a write fails with SQLITE_READONLY.

    SQLite reads a write-ahead log through a `-shm` file, and creates that if it may. If it may not, no other
    process can be writing either: a file without a log is then read without locks (`immutable`), and a file
    with a log that was left behind is read from a private copy. Raises sqlite3.Error and OSError.
    See https://www.sqlite.org/wal.html#read_only_databases.
    """
    log, shared = (path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm"))
    if os.access(path.parent, os.W_OK) or shared.exists():
        return _open(path, "mode=ro", timeout)
    if log.exists() and log.stat().st_size:
        return _open_copy(path, log, timeout)
    return _open(path, "mode=ro&immutable=1", timeout)


def _open(path: Path, options: str, timeout: float) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"{path.resolve().as_uri()}?{options}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        database.execute("PRAGMA query_only = ON")
        database.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the files
    except BaseException:
        database.close()
        raise
    return database


def _open_copy(path: Path, log: Path, timeout: float) -> sqlite3.Connection:
    """Open a copy of a file and its log; it is deleted at once, so its space is freed with the connection."""
    with TemporaryDirectory(prefix="foldline-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / path.name
        for file in (path, log):
            shutil.copyfile(file, Path(folder) / file.name)
        return _open(copy, "mode=ro", timeout)


# ---- errors


def store_error(error: Exception, path: Path) -> FoldlineError:
    """Return the Foldline error, with advice, for an error of SQLite or the file system."""
    code = _primary_code(error) if isinstance(error, sqlite3.Error) else None
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(
            f"{path} is locked by another process. Nothing was written; try again when it is done."
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"{path}: the disk is full. Nothing was written; free some space and try again.")
    if code == sqlite3.SQLITE_NOTADB:
        return FormatError(
            "not a Foldline database: choose another file, or restore a backup", where=str(path)
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return StoreCorrupt(
            f"{path} is damaged ({error}). First make a copy of it. Then restore a backup, or save the "
            f"readable part with `sqlite3 {path.name} .recover`."
        )
    if code == sqlite3.SQLITE_READONLY:
        return StoreError(
            f"{path} can only be read ({error}). Nothing was written. Make the file and its directory "
            "writable, or copy it to a writable directory (`foldline backup TARGET`) and use the copy."
        )
    if isinstance(error, OSError) or code in {
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_AUTH,
    }:
        return StoreError(
            f"cannot open {path} for writing ({error}): check the permissions of the file and its directory."
        )
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(
            f"{path}: the disk failed ({error}). Nothing was written; check the disk and its space."
        )
    return StoreError(f"{path}: {error}")


def _primary_code(error: Exception) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


if TYPE_CHECKING:
    _: Database = SqliteDatabase(sqlite3.connect(""))
