"""What the log needs of a database, so that its code is written once: named queries and transactions.

The SQL is in one folder of `sql/` for each database: numbered migrations, and queries by name.
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
    """Another writer was faster between a read and the write that relied on it: do the whole work again."""


class Database(Protocol):
    """One connection to a database, used by one thread at a time.

    Queries are named as in `sql/<database>/queries.sql`. Values are passed by name; a list stands for a set.
    """

    @property
    def read_only(self) -> bool:
        """Whether nothing can be written."""
        ...

    def rows(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        ...

    def row(self, query: str, /, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a query; None where there is none."""
        ...

    def change(self, query: str, /, **values: Any) -> int:
        """Write; return how many rows were changed."""
        ...

    def insert(self, query: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert many rows."""
        ...

    def append(self, session: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
        """Move a session's leaf and write rows behind it in one commit; False if it is not as it was read.

        `session` has the values of the queries `begin_session` (where its key is None) and `advance_leaf`; a
        row has `id`, `parent`, `kind`, `payload` and a `Place`. Raises StoreError for what no row can hold.
        """
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Read, then `append`: what was read holds until then, or `append` finds that it does not."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit everything done inside, or nothing."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything inside as it was at one moment."""
        ...


@cache
def named_queries(dialect: Dialect) -> dict[str, str]:
    """Return the queries of a database by name; each takes its values as `:name`."""
    text = (_SQL / dialect / "queries.sql").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return {
        name: " ".join(_COMMENT.sub("", query).split())
        for name, query in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def migrations(dialect: Dialect) -> list[str]:
    """Return the migration scripts in order; a database of version n has had the first n."""
    return [script.read_text(encoding="utf-8") for script in sorted((_SQL / dialect).glob("[0-9]*.sql"))]
