"""Sessions in a store, as the commands use them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from foldline.cli.output import warn
from foldline.config import settings
from foldline.errors import SessionNotFound
from foldline.stores import MemoryStore, SqliteStore, Store, open_store

T = TypeVar("T")


@asynccontextmanager
async def opened(url: str | None, *, make: bool = False) -> AsyncGenerator[Store]:
    """Open the store that a URL names, and close it; a missing one is empty, and created only if `make`."""
    named = url or settings().store
    store = open_store(named)
    if not make and is_missing(store):
        if named:
            warn([f"there is no store at {named} yet: `foldline import FILE --store {named}` creates one"])
        store = MemoryStore()
    try:
        yield store
    finally:
        await store.close()


def is_missing(store: Store) -> bool:
    """Return whether a store is a file that nobody has made yet."""
    try:
        return isinstance(store, SqliteStore) and not store.file.exists()
    except OSError:
        return False  # opening it will report the problem


def with_store(url: str | None, work: Callable[[Store], Coroutine[Any, Any, T]], *, make: bool = False) -> T:
    """Run work on a store to its end; see `opened`."""

    async def run() -> T:
        async with opened(url, make=make) as store:
            return await work(store)

    return asyncio.run(run())


async def known(store: Store, session: str) -> str:
    """Return the full id of a session from its id or the beginning of it; raises SessionNotFound."""
    ids = [info.id for info in await store.sessions()]
    if session in ids:
        return session
    found = [name for name in ids if session and name.startswith(session)]
    if len(found) == 1:
        return found[0]
    if found:
        raise SessionNotFound(
            f"{session!r} is ambiguous, it matches {len(found)} sessions: {', '.join(sorted(found)[:5])}"
        )
    raise SessionNotFound(f"no session {session!r} in the store: `foldline sessions` lists them")
