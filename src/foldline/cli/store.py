"""Access to stored sessions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeVar

from foldline.cli.output import warn
from foldline.config import basic_settings
from foldline.errors import FormatError, SessionNotFound
from foldline.exports.base import line
from foldline.stores import MemoryStore, Store, open_store
from foldline.stores.database_store import DatabaseStore
from foldline.stores.ids import find_session
from foldline.transcripts import header_line, open_transcript

T = TypeVar("T")


@asynccontextmanager
async def opened(url: str | None, *, make: bool = False) -> AsyncGenerator[Store]:
    """Open the store of a URL. A missing store is created if `make`; else an empty one in memory is used."""
    place = url or basic_settings().store
    store = open_store(place)
    if not make and is_missing(store):
        if place:
            warn([f"there is no store at {place} yet: `foldline import FILE --store {place}` creates one"])
        store = MemoryStore()
    try:
        yield store
    finally:
        await store.close()


def is_missing(store: Store) -> bool:
    """Return whether a store does not exist yet; False if another package provides the store."""
    return isinstance(store, DatabaseStore) and store.is_missing()


def with_store(url: str | None, work: Callable[[Store], Coroutine[Any, Any, T]], *, make: bool = False) -> T:
    """Run work on a store; see `opened`."""

    async def run() -> T:
        async with opened(url, make=make) as store:
            return await work(store)

    return asyncio.run(run())


def is_file(source: str) -> bool:
    """Return whether a FILE|ID is a file, a pipe or standard input; these win over a stored session."""
    return source == "-" or (os.path.exists(source) and not os.path.isdir(source))  # noqa: PTH110, PTH112


@contextmanager
def open_source(source: str, url: str | None) -> Generator[BinaryIO]:
    """Open a session FILE, or the stored session ID in Foldline's own format, for reading."""
    if is_file(source):
        with open_transcript(source) as stream:
            yield stream
        return
    name = find_stored(source, url)
    with TemporaryFile(prefix="foldline-") as copy:
        with_store(url, lambda store: write_log(store, name, copy.write))
        copy.seek(0)
        yield copy


def find_stored(source: str, url: str | None) -> str:
    """Return the id of the stored session that a FILE|ID names; raises FormatError if no session matches."""
    try:
        return with_store(url, lambda store: find_session(store, source))
    except SessionNotFound as error:
        text = f"no such file, and {error}"
        if os.path.isdir(source):  # noqa: PTH112
            text = "this is a directory; name a session file in it (`foldline batch fold` folds all of them)"
        raise FormatError(text, where=source) from error


async def write_log(store: Store, session: str, put: Callable[[bytes], object]) -> int:
    """Write a stored session in Foldline's own format, with all branches; return the number of entries."""
    put(header_line(session=session, leaf=await store.leaf(session)))
    count = 0
    async for entry in store.all(session):
        put(line(entry))
        count += 1
    return count
