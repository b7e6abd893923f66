"""Copy a store: all sessions into another store, or an SQLite store in use into a new file.

`transfer` continues where an earlier run ended. The copy of a file is complete, or is not created.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final, Protocol, runtime_checkable

import msgspec

from foldline.core.log.entries import Entry
from foldline.errors import InputError, SessionNotFound, StoreError
from foldline.stores.base import SessionInfo, Store
from foldline.stores.sqlite import SqliteStore
from foldline.stores.sqlite_database import open_read_only, store_error

_BATCH: Final = 200  # entries in one append


@runtime_checkable
class Restorable(Store, Protocol):
    """A store that can set the times of a session, as the stores of this package can."""

    async def set_times(self, session: str, created: float, updated: float) -> None:
        """Set when a session was created and updated; raises SessionNotFound."""
        ...


class Transferred(msgspec.Struct, frozen=True):
    """A copied session: the number of new entries in the target, and a description of what differs."""

    session: str
    entries: int
    problem: str = ""


async def transfer(source: Store, target: Store) -> AsyncGenerator[Transferred]:
    """Copy every session with all branches, its leaf, title and times; yields each when it is complete.

    The last updated session comes last. A session with identical figures is skipped; others are compared
    entry by entry, and are continued, or left alone if they differ. The next run copies entries that are
    appended to the source meanwhile; a session that is purged there meanwhile is not copied, and values with
    an expiry (leases, previews) never are. Raises InputError if the target cannot set times, and StoreError.
    """
    if not isinstance(target, Restorable):
        raise InputError("this store cannot take copies: name an SQLite, PostgreSQL or memory store")
    for info in reversed(await source.sessions()):
        existing = await target.info(info.id)
        try:
            copied = await _transfer_session(source, target, info, existing)
        except SessionNotFound:
            if await source.info(info.id) is not None:
                raise
            if existing is None and await target.info(info.id) is not None:
                await target.purge(info.id)  # the half that was copied
        else:
            yield copied


async def _transfer_session(
    source: Store, target: Restorable, info: SessionInfo, existing: SessionInfo | None
) -> Transferred:
    if existing == info:
        return Transferred(info.id, 0)
    if existing is not None and existing.entries > info.entries:
        return Transferred(
            info.id, 0, f"the target has {existing.entries} entries of it, the source {info.entries}"
        )
    common = await _count_common(source, target, info.id) if existing else 0
    if existing is not None and common < existing.entries:
        return Transferred(info.id, 0, f"entry {common + 1} differs in the target")
    leaf = existing.leaf if existing else None
    async with aclosing(_batches(source, info, common)) as batches:
        async for batch in batches:
            if leaf != batch[0].parent:
                await target.move(info.id, batch[0].parent, seen=leaf)
            await target.append(info.id, batch, seen=batch[0].parent)
            leaf = batch[-1].id
    if leaf != info.leaf:
        await target.move(info.id, info.leaf, seen=leaf)
    copied = await target.info(info.id)
    if copied != info:
        await target.set_times(info.id, info.created, info.updated)
        copied = await target.info(info.id)
    problem = "" if copied == info else f"its figures differ: {copied} in the target, {info} in the source"
    return Transferred(info.id, info.entries - common, problem)


async def differences(source: Store, target: Store) -> AsyncGenerator[str]:
    """Yield a line for each session of the source that differs in the target."""
    for info in await source.sessions():
        copied = await target.info(info.id)
        if copied != info:
            yield f"session {info.id}: the target has {copied}, the source {info}"
        elif (common := await _count_common(source, target, info.id)) != info.entries:
            yield f"session {info.id}: entry {common + 1} differs in the target"


async def _count_common(source: Store, target: Store, session: str) -> int:
    """Count the leading entries that are the same in both stores."""
    count = 0
    async with (
        aclosing(_all(source, session, 0)) as originals,
        aclosing(_all(target, session, 0)) as copies,
    ):
        async for copy in copies:
            if copy != await anext(originals, None):
                break
            count += 1
    return count


async def _batches(source: Store, info: SessionInfo, after: int) -> AsyncGenerator[Sequence[Entry]]:
    """Yield the entries after the first `after` in chains, each entry the child of the previous one."""
    batch: list[Entry] = []
    remaining = info.entries - after
    async with aclosing(_all(source, info.id, after)) as entries:
        async for entry in entries:
            if not remaining:
                break  # appended since the info was read
            remaining -= 1
            if batch and (entry.parent != batch[-1].id or len(batch) == _BATCH):
                yield batch
                batch = []
            batch.append(entry)
    if batch:
        yield batch


async def _all(store: Store, session: str, after: int) -> AsyncGenerator[Entry]:
    async for entry in store.all(session, after=after):
        yield entry


# ---- one file


def back_up(store: Store, target: Path) -> None:
    """Copy an SQLite store to a new file while it is in use (https://www.sqlite.org/backup.html).

    The copy gets its name once it is complete and synced. Raises InputError if the target exists or the store
    is not a file, StoreError if it cannot be copied.
    """
    if not isinstance(store, SqliteStore):
        raise InputError(
            "only an SQLite store can be backed up by Foldline: use a tool of your database, such as pg_dump"
        )
    if target.exists() or target.is_symlink():
        raise InputError(f"{target} already exists: name a new file")
    if not (store.file.is_file() and store.file.stat().st_size):
        raise InputError(f"there is no store at {store.file}")
    try:
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as temporary:
            part = Path(temporary.name)
        try:
            _copy(store.file, part)
            _sync(part)
            _name(part, target)
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
    with closing(source), closing(sqlite3.connect(part)) as copy:
        source.backup(copy)  # in one step: SQLite restarts a stepwise copy at every write
        copy.execute("PRAGMA journal_mode = DELETE")  # a single file without a write-ahead log


def _name(part: Path, target: Path) -> None:
    """Give a complete copy its name; raises FileExistsError if the target was created meanwhile."""
    try:
        os.link(part, target)
    except PermissionError:  # a file system without hard links
        target.touch(exist_ok=False)
        part.replace(target)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
