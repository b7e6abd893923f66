"""What the log needs of a database, so that its code is written once: named queries and transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Contended(Exception):
    """Another writer was faster between a read and the write that relied on it: do the whole work again."""


class Database(Protocol):
    """One connection to a database, used by one thread at a time.

    Queries are named as in `sql/<database>/queries.sql`. Values are passed by name; a list stands for a set.
    """

    def rows(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        ...

    def row(self, query: str, /, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a query; None where there is none."""
        ...

    def change(self, query: str, /, **values: Any) -> int:
        """Write; return how many rows were changed."""
        ...

    def append(self, session: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
        """Move a session's leaf and write rows behind it in one commit; False if it is not as it was read.

        `session` has the values of the queries `begin_session` (where its key is None) and `advance_leaf`; a
        row has `id`, `parent`, `kind`, `payload` and a `Place`.
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
