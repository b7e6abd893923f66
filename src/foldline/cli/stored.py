"""Sessions in a store, as the commands use them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from foldline.config import settings
from foldline.errors import SessionNotFound
from foldline.stores import Store, open_store

T = TypeVar("T")


@asynccontextmanager
async def opened(url: str | None) -> AsyncGenerator[Store]:
    """Open the store that a URL names, and close it."""
    store = open_store(url or settings().store)
    try:
        yield store
    finally:
        await store.close()


def with_store(url: str | None, work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """Run work on a store to its end."""

    async def run() -> T:
        async with opened(url) as store:
            return await work(store)

    return asyncio.run(run())


async def known(store: Store, session: str) -> str:
    """Return the full id of a session given by its id or the beginning of it; raises SessionNotFound."""
    ids = [info.id for info in await store.sessions()]
    if session in ids:
        return session
    found = [name for name in ids if session and name.startswith(session)]
    if len(found) == 1:
        return found[0]
    if found:
        raise SessionNotFound(f"{session!r} begins {len(found)} sessions: {', '.join(sorted(found)[:5])}")
    raise SessionNotFound(f"no session {session!r} in the store: `foldline sessions` lists them")
