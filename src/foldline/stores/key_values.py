"""Small values with a key and an expiry, shared by all processes that use a store.

They are leases, idempotency keys and previews, not part of a session's log. A session's values are deleted
with it.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from foldline.errors import StoreError
from foldline.stores.database import Contended, Database

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")
LARGEST: Final = 950_000  # bytes of a value: distributed databases want rows under 1 MB


class KeyValues:
    """The values of one store, by space and key.

    Each call is atomic and durable on return. `seconds` is the lifetime of a value from its last write, by
    the store's clock; expired values are ignored, and deleted with the next write. Any method may raise
    StoreError. The parameter `run` runs work on the store's database.
    """

    def __init__(self, run: Callable[[Callable[[Database], Any]], Awaitable[Any]]) -> None:
        self._run = run

    async def add(
        self, space: str, key: str, value: bytes, *, seconds: float, session: str | None = None
    ) -> bytes | None:
        """Store a value unless the key has one; return the existing value, or None if the new one was stored.

        `session` is the session that the value belongs to. Raises StoreError for a value over `LARGEST`.
        """
        _check_size(value)

        def work(database: Database, now: float) -> bytes | None:
            values = {"space": space, "key": key, "value": value, "session": session}
            if database.change("add_value", **values, now=now, seconds=seconds):
                return None
            existing = database.row("value", space=space, key=key, now=now)
            if existing is None:
                raise Contended
            return existing[0]

        return await self._change(work)

    async def get(self, space: str, key: str) -> bytes | None:
        """Return the value of a key; None without one."""
        now = time.time()
        row = await self._run(lambda database: database.row("value", space=space, key=key, now=now))
        return None if row is None else row[0]

    async def put_all(self, space: str, values: Mapping[str, bytes], *, seconds: float) -> None:
        """Store or overwrite values by session id. Raises StoreError for a value over `LARGEST`."""
        for value in values.values():
            _check_size(value)

        def work(database: Database, now: float) -> None:
            for key, value in values.items():
                database.change("delete_value", space=space, key=key, old=None, now=now)
                row = {"space": space, "key": key, "value": value, "session": key}
                if not database.change("add_value", **row, now=now, seconds=seconds):
                    raise Contended

        await self._change(work)

    async def values(self, space: str) -> dict[str, bytes]:
        """Return all values of a space by their keys."""
        now = time.time()
        return dict(await self._run(lambda database: database.rows("space_values", space=space, now=now)))

    async def replace(self, space: str, key: str, old: bytes, new: bytes, *, seconds: float) -> bool:
        """Replace the value if it is still `old`; return whether the `new` one is stored.

        Also True if it was stored before, so that a call whose result was lost can be retried.
        """
        _check_size(new)

        def work(database: Database, now: float) -> bool:
            values = {"space": space, "key": key, "old": old, "new": new}
            if database.change("replace_value", **values, now=now, seconds=seconds):
                return True
            existing = database.row("value", space=space, key=key, now=now)
            return existing is not None and existing[0] == new  # by an earlier call whose result was lost

        return await self._change(work)

    async def delete(self, space: str, key: str, old: bytes | None = None) -> bool:
        """Delete a value, with `old` only if it is still that; return whether a value was deleted."""
        values = {"space": space, "key": key, "old": old}
        return await self._change(
            lambda database, now: database.change("delete_value", **values, now=now) > 0
        )

    async def keys(self, space: str) -> list[str]:
        """Return the keys of a space, in any order."""
        now = time.time()
        rows = await self._run(lambda database: database.rows("value_keys", space=space, now=now))
        return [key for (key,) in rows]

    async def trim(self, space: str, most: int) -> None:
        """Delete all but the `most` newest values of a space."""
        await self._change(lambda database, _: database.change("trim_values", space=space, most=most))

    async def _change(self, work: Callable[[Database, float], T]) -> T:
        """Run work in a transaction that also deletes expired values."""

        def change(database: Database) -> T:
            with database.transaction():
                now = time.time()
                database.change("expire_values", now=now)
                return work(database, now)

        return await self._run(change)


def _check_size(value: bytes) -> None:
    if len(value) > LARGEST:
        raise StoreError(f"a value of {len(value):,} bytes is too large: the limit is {LARGEST:,}")


def pack(value: msgspec.Struct) -> bytes:
    """Encode a struct as a value."""
    return zlib.compress(msgspec.msgpack.encode(value), 1)


def unpack(raw: bytes, kind: type[S]) -> S | None:
    """Decode a value as a struct; None if another version wrote it."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(raw), type=kind)
    except (msgspec.DecodeError, zlib.error):
        return None
