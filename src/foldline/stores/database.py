"""The interface of a database for the log: named queries and transactions.

Each database has a folder in `sql/` with numbered migrations and named queries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, Protocol

Dialect = Literal["sqlite", "postgres"]
_SQL: Final = Path(__file__).parent / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT: Final = re.compile(r"--[^\n]*")


class Contended(Exception):
    """Another writer came between a read and the write based on it: repeat the whole work."""


class Database(Protocol):
    """One connection to a database, used by one thread at a time.

    Queries are named as in `sql/<database>/queries.sql`. Values are passed by name; a list is a set of them.
    """

    @property
    def read_only(self) -> bool:
        """Whether the database cannot be written."""
        ...

    def rows(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        ...

    def row(self, query: str, /, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a query; None without rows."""
        ...

    def change(self, query: str, /, **values: Any) -> int:
        """Write; return how many rows were changed."""
        ...

    def insert(self, query: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert many rows."""
        ...

    def append(self, session: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
        """Move a session's leaf and write rows in one commit; False if the session has changed since.

        `session` has the values of the query `begin_session` (if its key is None) or `advance_leaf`; a row
        has `id`, `parent`, `kind`, `payload` and the fields of a `Place`. Raises StoreError for values that
        are too large.
        """
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Open a block that reads and then calls `append`, which fails if the data read have changed."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit everything done inside, or nothing."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything inside as it was at one moment."""
        ...


@cache
def named_queries(dialect: Dialect) -> dict[str, str]:
    """Return the queries of a database by name; their values are written `:name`."""
    text = (_SQL / dialect / "queries.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return {
        name: " ".join(_COMMENT.sub("", query).split())
        for name, query in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def migrations(dialect: Dialect) -> list[str]:
    """Return the migration scripts in order; the first n were applied to a database of version n."""
    return [script.read_text(encoding="utf-8") for script in sorted((_SQL / dialect).glob("[0-9]*.sql"))]
