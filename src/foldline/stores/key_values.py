"""Small values by key, each with an expiry: what processes over one store tell each other.

Leases, idempotency keys and previews are such values. They are no part of a session's log; a value that
belongs to a session goes when that is purged.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from foldline.errors import StoreError
from foldline.stores.database import Contended, Database
from foldline.stores.tables import Tables

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")
LARGEST: Final = 950_000  # bytes of a value: distributed databases want rows under 1 MB


class KeyValues:
    """The values of one store, by key in a space of their own.

    Each call is one atomic step, durable on return. `seconds` is how long a value is kept from its last write
    on, by the store's clock; an expired one is not there, and is removed with the next write. Any method may
    raise StoreError. `run` does work where the store does its own.
    """

    def __init__(self, run: Callable[[Callable[[Tables], Any]], Awaitable[Any]]) -> None:
        self._run = run

    async def add(
        self, space: str, key: str, value: bytes, *, seconds: float, session: str | None = None
    ) -> bytes | None:
        """Put a value where none is; return the one that is there instead, None where this one was put.

        `session` is the session that it belongs to. Raises StoreError for one over `LARGEST`.
        """
        _check_size(value)

        def work(database: Database, now: float) -> bytes | None:
            values = {"space": space, "key": key, "value": value, "session": session}
            if database.change("add_value", **values, now=now, seconds=seconds):
                return None
            there = database.row("value", space=space, key=key, now=now)
            if there is None:
                raise Contended
            return there[0]

        return await self._change(work)

    async def get(self, space: str, key: str) -> bytes | None:
        """Return the value of a key; None where none is."""
        now = time.time()
        found = await self._run(lambda tables: tables.database.row("value", space=space, key=key, now=now))
        return None if found is None else found[0]

    async def put_all(self, space: str, values: Mapping[str, bytes], *, seconds: float) -> None:
        """Put values of sessions, by their ids, whatever is there. Raises StoreError for a large one."""
        for value in values.values():
            _check_size(value)

        def work(database: Database, now: float) -> None:
            for key, value in values.items():
                database.change("delete_value", space=space, key=key, old=None, now=now)
                given = {"space": space, "key": key, "value": value, "session": key}
                if not database.change("add_value", **given, now=now, seconds=seconds):
                    raise Contended

        await self._change(work)

    async def values(self, space: str) -> dict[str, bytes]:
        """Return all values of a space by their keys."""
        now = time.time()
        return dict(
            await self._run(lambda tables: tables.database.rows("space_values", space=space, now=now))
        )

    async def replace(self, space: str, key: str, old: bytes, new: bytes, *, seconds: float) -> bool:
        """Put a value in the place of an old one, if that is still there; return whether the new one is.

        It is also where it was put before: a step whose answer was lost can be made again.
        """
        _check_size(new)

        def work(database: Database, now: float) -> bool:
            values = {"space": space, "key": key, "old": old, "new": new}
            if database.change("replace_value", **values, now=now, seconds=seconds):
                return True
            there = database.row("value", space=space, key=key, now=now)
            return there is not None and there[0] == new  # it was done, and the answer was lost

        return await self._change(work)

    async def delete(self, space: str, key: str, old: bytes | None = None) -> bool:
        """Delete a value (if it is still the `old` one); return whether it was there."""
        given = {"space": space, "key": key, "old": old}
        return await self._change(lambda database, now: database.change("delete_value", **given, now=now) > 0)

    async def keys(self, space: str) -> list[str]:
        """Return the keys of a space that have a value, in any order."""
        now = time.time()
        rows = await self._run(lambda tables: tables.database.rows("value_keys", space=space, now=now))
        return [key for (key,) in rows]

    async def trim(self, space: str, most: int) -> None:
        """Delete all but the `most` values of a space that were written last."""
        await self._change(lambda database, _: database.change("trim_values", space=space, most=most))

    async def _change(self, work: Callable[[Database, float], T]) -> T:
        """Do work in a transaction, in which what has expired is removed too."""

        def change(tables: Tables) -> T:
            with tables.database.transaction():
                now = time.time()
                tables.database.change("expire_values", now=now)
                return work(tables.database, now)

        return await self._run(change)


def _check_size(value: bytes) -> None:
    if len(value) > LARGEST:
        raise StoreError(f"a value of {len(value):,} bytes is too large: {LARGEST:,} may be kept")


def pack(value: msgspec.Struct) -> bytes:
    """Return a struct as a value."""
    return zlib.compress(msgspec.msgpack.encode(value), 1)


def unpack(raw: bytes, kind: type[S]) -> S | None:
    """Return the struct that a value holds; None for one that another version has written."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(raw), type=kind)
    except (msgspec.DecodeError, zlib.error):
        return None
