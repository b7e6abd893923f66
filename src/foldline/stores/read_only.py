"""Open an SQLite file that cannot be written: a read-only file, directory or file system."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory


def open_read_only(path: Path, timeout: float = 0) -> sqlite3.Connection:
    """Open an existing SQLite file for reading alone; every write through it fails with SQLITE_READONLY.

    A write-ahead log is read through its `-shm` file, which SQLite makes where it may. Where neither file
    can be made, nobody else is writing: a whole file is then read without locks (`immutable`), and a log
    that was left behind is read in a private copy. Raises sqlite3.Error and OSError.
    See https://www.sqlite.org/wal.html#read_only_databases.
    """
    log = _beside(path, "-wal")
    if os.access(path.parent, os.W_OK) or _beside(path, "-shm").exists():
        return _opened(path, "mode=ro", timeout)
    if log.exists() and log.stat().st_size:
        return _copied(path, log, timeout)
    return _opened(path, "mode=ro&immutable=1", timeout)


def is_read_only(database: sqlite3.Connection) -> bool:
    """Return whether a connection was opened for reading alone."""
    return bool(database.execute("PRAGMA query_only").fetchone()[0])


def _opened(path: Path, options: str, timeout: float) -> sqlite3.Connection:
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


def _copied(path: Path, log: Path, timeout: float) -> sqlite3.Connection:
    """Open a copy of a file and its log; the copy has no name any more, and is gone with the connection."""
    with TemporaryDirectory(prefix="foldline-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / path.name
        for file in (path, log):
            shutil.copyfile(file, Path(folder) / file.name)
        return _opened(copy, "mode=ro", timeout)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
