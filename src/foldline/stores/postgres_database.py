"""A PostgreSQL connection as the `Database` of the log."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from psycopg import Connection
from psycopg.errors import UniqueViolation
from psycopg.rows import TupleRow

from foldline.errors import StoreError
from foldline.stores.database import Database
from foldline.stores.queries import named_queries

PIECE: Final = 500_000  # bytes of a payload in one row; distributed engines want rows under 1 MB
_VALUE: Final = re.compile(r"(?<!:):([a-z_]+)")


class PostgresDatabase:
    """Named queries and transactions over one connection, which commits each statement of its own accord."""

    def __init__(self, connection: Connection[TupleRow]) -> None:
        self.connection = connection

    def rows(self, query: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return every row of a query."""
        return self.connection.execute(_sql(query), values).fetchall()

    def row(self, query: str, /, **values: Any) -> tuple[Any, ...] | None:
        """Return the first row of a query."""
        return self.connection.execute(_sql(query), values).fetchone()

    def change(self, query: str, /, **values: Any) -> int:
        """Write; return how many rows were changed."""
        return self.connection.execute(_sql(query), values).rowcount

    def insert(self, query: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert many rows in one round trip."""
        if rows:
            with self.connection.cursor() as cursor:
                cursor.executemany(_sql(query), rows)

    def append(self, session: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
        """Move the leaf and write rows behind it: one transaction, sent in one round trip.

        Rows are inserted only where the leaf was moved. If the same rows are there by then, another process
        made the same append: that is a reason to look again, too.
        """
        key = session["session"] or session["key"]
        same = {"session": key, "leaf": session["leaf"], "entries": session["entries"]}
        heads, rest = _in_pieces(rows, same)
        moves = "advance_leaf" if session["session"] else "begin_session"
        try:
            with self.connection.pipeline():
                self.connection.execute("BEGIN")
                moved = self.connection.execute(_sql(moves), session)
                self.insert("insert_entry", heads)
                self.insert("insert_piece", rest)
                self.connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back()
            if not isinstance(error, UniqueViolation):
                raise
            now = self.row("session", id=session["id"], key=session["key"])
            if now is not None and now[1:3] == (session["seen"], session["before"]):
                raise StoreError(
                    "an entry of this id is already in the session: nothing was written"
                ) from error
            return False
        return moved.rowcount > 0

    def writing(self) -> AbstractContextManager[None]:
        """Hold nothing: `append` finds out whether what was read has changed."""
        return nullcontext()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Commit everything done inside, or nothing."""
        with self._between("BEGIN"):
            yield

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """Read everything inside as it was at one moment."""
        with self._between("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    @contextmanager
    def _between(self, begin: str) -> Generator[None]:
        self.connection.execute(cast("Any", begin))
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if not self.connection.closed:  # as one that was cut off is, too
            self.connection.rollback()


def _in_pieces(
    rows: Sequence[dict[str, Any]], same: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of `entries` and `pieces`: a payload that is too large for one row is cut."""
    heads: list[dict[str, Any]] = []
    rest: list[dict[str, Any]] = []
    for row in rows:
        payload = row["payload"]
        head, *pieces = [payload[start : start + PIECE] for start in range(0, len(payload), PIECE)]
        heads.append({**row, **same, "payload": head, "pieces": len(pieces)})
        rest += [
            {**same, "seq": row["seq"], "piece": number, "payload": piece}
            for number, piece in enumerate(pieces, 1)
        ]
    return heads, rest


@cache
def _sql(query: str) -> Any:
    """Return a named query with psycopg's placeholders."""
    return _VALUE.sub(r"%(\1)s", named_queries("postgres")[query].replace("%", "%%"))


if TYPE_CHECKING:
    _: Database = PostgresDatabase(Connection(...))  # pyright: ignore
