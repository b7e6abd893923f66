"""An SQLite connection as the `Database` of the log."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from foldline.stores.connection import transaction
from foldline.stores.database import Database
from foldline.stores.queries import named_queries


class SqliteDatabase:
    """Named queries and transactions over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self._queries = named_queries("sqlite")

    def rows(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        return self._execute(query, values).fetchall()

    def row(self, query: str, /, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a query."""
        found: tuple[Any, ...] | None = self._execute(query, values).fetchone()
        return found

    def change(self, query: str, /, **values: Any) -> int:
        """Write; return how many rows were changed."""
        return self._execute(query, values).rowcount

    def append(self, session: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
        """Move the leaf and write rows behind it, in the transaction of `writing`."""
        key = session["session"]
        if key is None:
            key = self._execute("begin_session", dict(session)).lastrowid
        elif not self._execute("advance_leaf", dict(session)).rowcount:
            return False
        for row in rows:
            row["session"] = key
        self.connection.executemany(self._queries["insert_entry"], rows)
        return True

    def writing(self) -> AbstractContextManager[None]:
        """Take the write lock before the first read, so that nobody comes between."""
        return self.transaction()

    def transaction(self) -> AbstractContextManager[None]:
        """Take the write lock, and commit everything done inside, or nothing."""
        return transaction(self.connection)

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything inside as it was at one moment."""
        return transaction(self.connection, "DEFERRED")

    def _execute(self, query: str, values: dict[str, Any]) -> sqlite3.Cursor:
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = json.dumps(value)
        return self.connection.execute(self._queries[query], values)


if TYPE_CHECKING:
    _: Database = SqliteDatabase(sqlite3.connect(""))
