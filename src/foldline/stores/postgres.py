"""Sessions in a PostgreSQL database, or one compatible with it: for many workers on many machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from foldline.errors import SessionNotFound
from foldline.stores.audit import audit_session, audit_sessions
from foldline.stores.base import Store
from foldline.stores.database_store import DatabaseStore
from foldline.stores.postgres_connection import read_url
from foldline.stores.postgres_database import PostgresDatabase
from foldline.stores.postgres_index import PostgresIndex
from foldline.stores.postgres_pool import Pool
from foldline.stores.tables import Tables

T = TypeVar("T")


class PostgresStore(DatabaseStore[PostgresDatabase]):
    """A store in one schema of a database, which is created or migrated at the first use.

    Any number of processes and machines may use one database. A store may be used from several event loops
    and threads; it opens at most as many connections as the URL says (`connections`), and closes those that
    are idle for a minute. `timeout` is how many seconds to wait for the server, a lock, or other writers.
    """

    def __init__(self, url: str, *, timeout: float = 10.0) -> None:
        self.target = read_url(url)
        super().__init__(f"{self.target.name},", PostgresIndex(), _audit)
        self._pool = Pool(self.target, timeout)

    async def purge(self, session: str) -> None:
        """Delete a session permanently: its rows, its index, its values."""
        attempts = 0

        def work(database: PostgresDatabase) -> None:
            nonlocal attempts
            attempts += 1
            try:
                _purge(database, session)
            except SessionNotFound:
                if attempts == 1:  # otherwise an earlier attempt has purged it, and its result was lost
                    raise

        await self.ask(work)

    async def close(self) -> None:
        """Close the connections once earlier work is done."""
        if not self._closed:
            self._closed = True
            if not self._forked:
                await self._pool.close()

    async def _run_on_connection(self, work: Callable[[PostgresDatabase], T], *, writes: bool = False) -> T:
        return await self._pool.run(work, writes=writes)


def _purge(database: PostgresDatabase, session: str) -> None:
    with database.transaction():
        key = Tables(database).known_session(session).key
        # First, so that no other writer appends or indexes: it waits for this row, and then finds it deleted.
        database.change("delete_session", session=key)
        for query in ("delete_entries", "delete_pieces", "delete_index"):
            database.change(query, session=key)
        database.change("forget_values", id=session)


def _audit(database: PostgresDatabase, session: str | None) -> list[str]:
    tables = Tables(database)
    if session is not None:
        return audit_session(tables, session)
    rows = database.rows("rows_without_session")
    problems = [f"{count} rows of {table} belong to no session" for table, count in rows if count]
    return [*problems, *audit_sessions(tables)]


if TYPE_CHECKING:
    _: Store = PostgresStore("")
