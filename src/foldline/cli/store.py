"""Sessions in a store, as the commands use them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from foldline.cli.output import warn
from foldline.config import settings
from foldline.core.log.entries import Entry
from foldline.errors import SessionNotFound
from foldline.stores import MemoryStore, Store, open_store
from foldline.stores.database_store import DatabaseStore

T = TypeVar("T")
SHOWN = 5  # sessions that an ambiguous id names


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
    """Return whether a store is known not to be made yet; a store of another package need not say."""
    return isinstance(store, DatabaseStore) and store.is_missing()


def with_store(url: str | None, work: Callable[[Store], Coroutine[Any, Any, T]], *, make: bool = False) -> T:
    """Run work on a store to its end; see `opened`."""

    async def run() -> T:
        async with opened(url, make=make) as store:
            return await work(store)

    return asyncio.run(run())


def entries_of(url: str | None, session: str) -> list[Entry]:
    """Return the path of a stored session, named by its id or the beginning of it."""

    async def path(store: Store) -> list[Entry]:
        name = await known(store, session)
        return [entry async for entry in store.path(name)]

    return with_store(url, path)


async def known(store: Store, session: str) -> str:
    """Return the full id of a session from its id or the beginning of it; raises SessionNotFound."""
    if session and await store.info(session) is not None:
        return session
    found = await store.ids(session, SHOWN + 1) if session else []
    if len(found) == 1:
        return found[0]
    if found:
        more = "more than " if len(found) > SHOWN else ""
        shown = ", ".join(sorted(found)[:SHOWN])
        raise SessionNotFound(
            f"{session!r} is ambiguous, it matches {more}{min(len(found), SHOWN)} sessions: {shown}"
        )
    raise SessionNotFound(
        f"no session {session!r} in the store: `foldline sessions` lists them; "
        "--store URL names another store"
    )
