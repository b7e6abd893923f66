"""Short ids of sessions: a part that is unique in the store."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from foldline.errors import SessionNotFound
from foldline.stores.base import Store

EVERY: Final = 2**31 - 1  # no limit on sessions
LEAST: Final = 8  # characters of a short id
WHOLE: Final = 20  # longest id that is not shortened
SHOWN: Final = 5  # sessions listed for an ambiguous id
_HASH: Final = re.compile(rf"[0-9a-f]{{{LEAST}}}")


class ShortIds:
    """The shortest unique part of each id, as `find_session` takes it.

    For a hash it is the beginning; for any other id the end after a hyphen, since many ids begin alike, such
    as with a folder.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._forward = sorted(ids)
        self._backward = sorted(id_[::-1] for id_ in self._forward)

    def __call__(self, session: str) -> str:
        """Return the short form of one of the ids."""
        if len(session) <= WHOLE:
            return session
        ends = [session[place + 1 :] for place, sign in enumerate(session) if sign == "-"][::-1]
        begins = [session[:size] for size in range(LEAST, len(session))] if _HASH.match(session) else []
        unique = [part for part in (*begins, *ends) if len(part) >= LEAST and self._is_unique(part)]
        return min(unique, key=len, default=session)

    def _is_unique(self, part: str) -> bool:
        return _count_with_prefix(self._forward, part) + _count_with_prefix(self._backward, part[::-1]) == 1


def _count_with_prefix(ordered: list[str], prefix: str) -> int:
    return bisect_right(ordered, f"{prefix}\U0010ffff") - bisect_left(ordered, prefix)


async def short_ids(store: Store) -> ShortIds:
    """Return the short forms of all ids in a store."""
    return ShortIds(await store.ids("", EVERY))


async def find_session(store: Store, part: str) -> str:
    """Return the id of a session from the id, its beginning or its end; raises SessionNotFound."""
    if part and await store.info(part) is not None:
        return part
    ids = await store.ids("", EVERY) if part else []
    found = sorted(id_ for id_ in ids if id_.startswith(part) or id_.endswith(part))
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        shown = ", ".join(found[:SHOWN])
        raise SessionNotFound(f"{part!r} is ambiguous, it matches {len(found):,} sessions: {shown}{more}")
    raise SessionNotFound(
        f"no session {part!r} in the store: `foldline sessions` lists all; --store URL names another store"
    )
