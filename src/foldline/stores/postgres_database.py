"""A PostgreSQL connection as the `Database` of the log, and its schema: made, or brought up to date."""

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
_VALUE: Final = re.compile(r"(?<!:):([a-z_]+)")
# Another process made the same thing at the same moment: look again.
_RACED: Final = (
    errors.UniqueViolation,
    errors.DuplicateTable,
    errors.DuplicateObject,  # the type of the same name
    errors.DuplicateSchema,
    errors.InternalError_,  # "tuple concurrently updated"
)


class PostgresDatabase:
    """Named queries and transactions over one connection, which commits each statement of its own accord."""

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

        Rows are inserted only where the leaf was moved. If the same rows are there by then, another process
        made the same append: that is a reason to look again, too.
        """
        _check_sizes(session, rows)
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
            if not isinstance(error, errors.UniqueViolation):
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


def _check_sizes(session: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Raise StoreError for what an index or a row cannot take."""
    if any(len(escaped(id_).encode()) > _LONGEST_ID for id_ in (session["id"], *(row["id"] for row in rows))):
        raise StoreError(f"an id may have {_LONGEST_ID:,} bytes: nothing was written")
    if len(session["title"] or "") > PIECE // 4:
        raise StoreError(f"a title may have {PIECE // 4:,} characters: nothing was written")


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


# ---- the schema


def prepare(connection: Connection, target: Target) -> None:
    """Bring the schema up to date; raises StoreVersion where a newer Foldline made it.

    Each migration is one transaction, which begins with the row that says it was applied: of several
    processes at once one inserts it, and the others find it there. No lock is needed beside that.
    """
    while True:
        try:
            version, newest = _version(connection), len(migrations("postgres"))
            if version > newest:
                raise StoreVersion(
                    f"{target.name}, was written by a newer Foldline (schema {version}, this one knows "
                    f"{newest}). Upgrade with `pip install --upgrade foldline`, or choose another database; "
                    "nothing was changed."
                )
            if version == 0:
                _make_schema(connection, target)
            _check_schema(connection, target)
            if version == newest:
                return
            if version == 0:
                connection.execute("CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY)")
            _migrate(connection, version + 1)
        except _RACED:
            continue


def _check_schema(connection: Connection, target: Target) -> None:
    """Raise StoreError where the tables that are found are not those of the target's schema."""
    row = connection.execute("SELECT current_schema()").fetchone()
    if row is None or row[0] != target.schema:
        raise StoreError(
            f"{target.name}: the schema is {row and row[0]}, and not {target.schema}. Something between here "
            "and the server, such as a pooler, drops the options of a connection: connect without it."
        )


def _version(connection: Connection) -> int:
    """Return the number of the newest migration; 0 where there is none."""
    try:
        row = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return 0
    return row[0] if row else 0


def _make_schema(connection: Connection, target: Target) -> None:
    known = "SELECT 1 FROM information_schema.schemata WHERE schema_name = %s"
    if connection.execute(known, (target.schema,)).fetchone() is None:
        connection.execute(cast("Any", f'CREATE SCHEMA IF NOT EXISTS "{target.schema}"'))


def _migrate(connection: Connection, number: int) -> None:
    connection.execute("BEGIN")
    try:
        connection.execute("INSERT INTO migrations (number) VALUES (%s)", (number,))
        connection.execute(cast("Any", migrations("postgres")[number - 1]))
        connection.execute("COMMIT")
    except BaseException:
        if not connection.broken:
            connection.rollback()
        raise


if TYPE_CHECKING:
    _: Database = PostgresDatabase(Connection(...))  # pyright: ignore
