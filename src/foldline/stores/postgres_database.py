"""A PostgreSQL connection as a `Database`, and the creation and migration of its schema."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from psycopg import errors

from foldline.errors import StoreError, StoreVersion
from foldline.stores.database import Database, migrations, named_queries
from foldline.stores.postgres_connection import Connection, Target, escaped

PIECE: Final = 500_000  # bytes of a payload in one row; distributed engines want rows under 1 MB
_LONGEST_ID: Final = 2_500  # bytes: PostgreSQL indexes up to 2,700
_PLACEHOLDER: Final = re.compile(r"(?<!:):([a-z_]+)")
# Another process created the same object at the same time: try again.
_RACED: Final = (
    errors.UniqueViolation,
    errors.DuplicateTable,
    errors.DuplicateObject,  # the type of the same name
    errors.DuplicateSchema,
    errors.InternalError_,  # "tuple concurrently updated"
)


class PostgresDatabase:
    """Named queries and transactions over one connection in autocommit mode."""

    read_only = False

    def __init__(self, connection: Connection) -> None:
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

        The queries insert rows only if the leaf was moved. Also returns False if another process has made the
        same append meanwhile.
        """
        _check_sizes(session, rows)
        key = session["session"] or session["key"]
        common = {"session": key, "leaf": session["leaf"], "entries": session["entries"]}
        first_pieces, more_pieces = _in_pieces(rows, common)
        query = "advance_leaf" if session["session"] else "begin_session"
        try:
            with self.connection.pipeline():
                self.connection.execute("BEGIN")
                moved = self.connection.execute(_sql(query), session)
                self.insert("insert_entry", first_pieces)
                self.insert("insert_piece", more_pieces)
                self.connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back()
            if not isinstance(error, errors.UniqueViolation):
                raise
            current = self.row("session", id=session["id"], key=session["key"])
            if current is not None and current[1:3] == (session["seen"], session["before"]):
                raise StoreError(
                    "an entry with this id is already in the session: nothing was written"
                ) from error
            return False
        return moved.rowcount > 0

    def writing(self) -> AbstractContextManager[None]:
        """Lock nothing: `append` checks whether the session has changed."""
        return nullcontext()

    def transaction(self) -> AbstractContextManager[None]:
        """Commit everything done inside, or nothing."""
        return self._committed("BEGIN")

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything inside as it was at one moment."""
        return self._committed("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    @contextmanager
    def _committed(self, begin: str) -> Generator[None]:
        self.connection.execute(cast("Any", begin))
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if not self.connection.closed:  # by us, or because it was cut off
            self.connection.rollback()


def _check_sizes(session: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise StoreError for an id or a title that is too long for an index or a row."""
    if any(len(escaped(id_).encode()) > _LONGEST_ID for id_ in (session["id"], *(row["id"] for row in rows))):
        raise StoreError(f"an id may have at most {_LONGEST_ID:,} bytes: nothing was written")
    if len(session["title"] or "") > PIECE // 4:
        raise StoreError(f"a title may have at most {PIECE // 4:,} characters: nothing was written")


def _in_pieces(
    rows: Sequence[dict[str, Any]], common: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows of the tables `entries` and `pieces`: a payload that is too large for a row is cut."""
    first_pieces: list[dict[str, Any]] = []
    more_pieces: list[dict[str, Any]] = []
    for row in rows:
        payload = row["payload"]
        first, *others = [payload[start : start + PIECE] for start in range(0, len(payload), PIECE)]
        first_pieces.append({**row, **common, "payload": first, "pieces": len(others)})
        more_pieces += [
            {**common, "seq": row["seq"], "piece": number, "payload": piece}
            for number, piece in enumerate(others, 1)
        ]
    return first_pieces, more_pieces


@cache
def _sql(query: str) -> Any:
    """Return a named query with psycopg's placeholders."""
    return _PLACEHOLDER.sub(r"%(\1)s", named_queries("postgres")[query].replace("%", "%%"))


# ---- the schema


def prepare(connection: Connection, target: Target) -> None:
    """Create or migrate the schema; raises StoreVersion for one of a newer Foldline.

    Each migration is one transaction, and begins by inserting its row: if several processes migrate at once,
    one of them succeeds, and the others try again and find the row. No other lock is needed.
    """
    while True:
        try:
            version, newest = _version(connection), len(migrations("postgres"))
            if version > newest:
                raise StoreVersion(
                    f"{target.name}, was written by a newer Foldline (schema {version}; this version "
                    f"supports up to {newest}). Nothing was changed. Upgrade with `pip install --upgrade "
                    "foldline`, or choose another database."
                )
            if version == 0:
                _create_schema(connection, target)
            _check_schema(connection, target)
            if version == newest:
                return
            if version == 0:
                connection.execute("CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY)")
            with PostgresDatabase(connection).transaction():
                connection.execute("INSERT INTO migrations (number) VALUES (%s)", (version + 1,))
                connection.execute(cast("Any", migrations("postgres")[version]))
        except _RACED:
            continue


def _check_schema(connection: Connection, target: Target) -> None:
    """Raise StoreError if the connection does not use the target's schema."""
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] != target.schema:
        raise StoreError(
            f"{target.name}: the schema is {row and row[0]}, not {target.schema}. Something on the way to "
            "the server, such as a connection pooler, drops the connection's options: connect directly."
        )


def _version(connection: Connection) -> int:
    """Return the number of the newest migration; 0 for a new schema."""
    try:
        row = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    return row[0] if row else 0


def _create_schema(connection: Connection, target: Target) -> None:
    query = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"
    if connection.execute(query, (target.schema,)).fetchone() is None:
        connection.execute(cast("Any", f'CREATE SCHEMA IF NOT EXISTS "{target.schema}"'))


if TYPE_CHECKING:
    _: Database = PostgresDatabase(Connection(...))  # pyright: ignore
