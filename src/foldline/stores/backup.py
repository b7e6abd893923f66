"""Copy a store in use into one file: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from tempfile import NamedTemporaryFile

from foldline.errors import InputError, StoreError
from foldline.stores.base import Store
from foldline.stores.connection import store_error
from foldline.stores.read_only import open_read_only
from foldline.stores.sqlite import SqliteStore

_PAGES = 1_000  # copied in one step; between steps others may write
_PAUSE = 0.001  # seconds between two steps


def back_up(store: Store, target: Path) -> None:
    """Copy an SQLite store to a new file, while others go on writing (https://www.sqlite.org/backup.html).

    The copy appears under its name when it is whole and on the disk. Raises InputError where the target is
    there already or the store is no file, StoreError where it cannot be copied.
    """
    if not isinstance(store, SqliteStore):
        raise InputError("only an SQLite store is backed up so: use the database's own tool, such as pg_dump")
    if target.exists() or target.is_symlink():
        raise InputError(f"{target} is there already: name a new file")
    if not (store.file.is_file() and store.file.stat().st_size):
        raise InputError(f"there is no store at {store.file}")
    try:
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as made:
            part = Path(made.name)
        try:
            _copy(store.file, part)
            _sync(part)
            os.link(part, target)  # fails where somebody else made it meanwhile
            _sync(target.parent)
        finally:
            for leftover in (part, Path(f"{part}-wal"), Path(f"{part}-shm"), Path(f"{part}-journal")):
                leftover.unlink(missing_ok=True)
    except sqlite3.Error as error:
        raise store_error(error, store.file) from error
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error


def _copy(file: Path, part: Path) -> None:
    source = open_read_only(file, timeout=10.0)
    with contextlib.closing(source), contextlib.closing(sqlite3.connect(part)) as copy:
        source.backup(copy, pages=_PAGES, sleep=_PAUSE)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a write-ahead log beside it


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
