"""Make the tables of the PostgreSQL store, and bring older ones up to date."""

from __future__ import annotations

from typing import Any, Final, cast

import psycopg

from foldline.errors import StoreError, StoreVersion
from foldline.stores.postgres_connection import Connection, Target
from foldline.stores.queries import migrations

# Another process made the same thing at the same moment: look again.
_RACED: Final = (
    psycopg.errors.UniqueViolation,
    psycopg.errors.DuplicateTable,
    psycopg.errors.DuplicateSchema,
    psycopg.errors.InternalError_,  # "tuple concurrently updated"
)


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
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
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
