"""A path read from its end: what was said last is asked for most."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from foldline.core.log.entries import Entry
from foldline.stores.base import Store

PAGE: Final = 256  # entries read in one step


async def backwards(
    store: Store, session: str, *, leaf: str | None = None, before: str | None = None
) -> AsyncIterator[Entry]:
    """Yield the entries of a path from the newest to the oldest; with `before`, those before that entry.

    The work is O(what is taken). Raises InputError where `before` is not on the path.
    """
    leaf = leaf or await store.leaf(session)  # the same path for every page
    page = await store.tail(session, PAGE, leaf=leaf, before=before)
    while page:
        for entry in reversed(page):
            yield entry
        page = await store.tail(session, PAGE, leaf=leaf, before=page[0].id)
