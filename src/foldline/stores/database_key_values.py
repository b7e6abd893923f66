"""Values with an expiry in the tables of a database: see `KeyValues`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from foldline.stores.database import Contended, Database
from foldline.stores.key_values import KeyValues, check_size
from foldline.stores.tables import Tables

T = TypeVar("T")


class DatabaseKeyValues:
    """The values of one store; `run` does work where the store does its own."""

    def __init__(self, run: Callable[[Callable[[Tables], Any]], Awaitable[Any]]) -> None:
        self._run = run

    async def add(
        self, space: str, key: str, value: bytes, *, seconds: float, session: str | None = None
    ) -> bytes | None:
        """Put a value where none is."""
        check_size(value)

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
        """Return a value."""

        def work(tables: Tables) -> bytes | None:
            found = tables.database.row("value", space=space, key=key, now=time.time())
            return None if found is None else found[0]

        return await self._run(work)

    async def replace(self, space: str, key: str, old: bytes, new: bytes, *, seconds: float) -> bool:
        """Compare and swap."""
        check_size(new)

        def work(database: Database, now: float) -> bool:
            values = {"space": space, "key": key, "old": old, "new": new}
            if database.change("replace_value", **values, now=now, seconds=seconds):
                return True
            there = database.row("value", space=space, key=key, now=now)
            return there is not None and there[0] == new  # it was done, and the answer was lost

        return await self._change(work)

    async def delete(self, space: str, key: str, old: bytes | None = None) -> bool:
        """Delete a value."""

        def work(database: Database, now: float) -> bool:
            return database.change("delete_value", space=space, key=key, old=old, now=now) > 0

        return await self._change(work)

    async def keys(self, space: str) -> list[str]:
        """Return the keys of a space."""

        def work(tables: Tables) -> list[str]:
            return [key for (key,) in tables.database.rows("value_keys", space=space, now=time.time())]

        return await self._run(work)

    async def trim(self, space: str, most: int) -> None:
        """Keep the newest of a space."""
        await self._change(lambda database, _: database.change("trim_values", space=space, most=most))

    async def _change(self, work: Callable[[Database, float], T]) -> T:
        """Do work in a transaction, in which what has expired is removed too."""

        def change(tables: Tables) -> T:
            with tables.database.transaction():
                now = time.time()
                tables.database.change("expire_values", now=now)
                return work(tables.database, now)

        return await self._run(change)


if TYPE_CHECKING:
    _: KeyValues = DatabaseKeyValues(lambda work: work)  # pyright: ignore
