"""Ids of sessions as people read and type them: a part of one is enough."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

from foldline.errors import SessionNotFound
from foldline.stores.base import Store

EVERY: Final = 2**31 - 1  # sessions: all there are
LEAST: Final = 8  # characters of a short id
WHOLE: Final = 20  # characters of an id that is short as it is
SHOWN: Final = 5  # sessions that an ambiguous id names
_HASH: Final = re.compile(rf"[0-9a-f]{{{LEAST}}}")


class ShortIds:
    """The least part of each of these ids that names it alone, as `find_session` takes it.

    That is its beginning where this is a hash, else its end from a hyphen on: what stands before, such as a
    folder, many ids share.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._forward = sorted(ids)
        self._backward = sorted(one[::-1] for one in self._forward)

    def __call__(self, session: str) -> str:
        """Return the short form of one of the ids."""
        if len(session) <= WHOLE:
            return session
        ends = [session[at + 1 :] for at, sign in enumerate(session) if sign == "-"][::-1]
        begins = [session[:size] for size in range(LEAST, len(session))] if _HASH.match(session) else []
        alone = [part for part in (*begins, *ends) if len(part) >= LEAST and self._is_alone(part)]
        return min(alone, key=len, default=session)

    def _is_alone(self, part: str) -> bool:
        return _beginning(self._forward, part) + _beginning(self._backward, part[::-1]) == 1


def _beginning(ordered: list[str], start: str) -> int:
    return bisect_right(ordered, f"{start}\U0010ffff") - bisect_left(ordered, start)


async def short_ids(store: Store) -> ShortIds:
    """Return the short forms of all ids in a store."""
    return ShortIds(await store.ids("", EVERY))


async def find_session(store: Store, part: str) -> str:
    """Return the id of the session that an id, its beginning or its end names; raises SessionNotFound."""
    if part and await store.info(part) is not None:
        return part
    ids = await store.ids("", EVERY) if part else []
    found = sorted(one for one in ids if one.startswith(part) or one.endswith(part))
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        shown = ", ".join(found[:SHOWN])
        raise SessionNotFound(f"{part!r} is ambiguous, it matches {len(found):,} sessions: {shown}{more}")
    raise SessionNotFound(
        f"no session {part!r} in the store: `foldline sessions` lists them; --store URL names another store"
    )
