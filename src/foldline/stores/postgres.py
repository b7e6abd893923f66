"""Sessions in a PostgreSQL database, or one that speaks its language: for many workers on many machines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from foldline.core.log.entries import Entry
from foldline.errors import SessionNotFound, StoreError
from foldline.stores import postgres_index as index
from foldline.stores import search
from foldline.stores.audit import audit_session, audit_sessions
from foldline.stores.base import FEW, MARKS, Hit, Mark, SessionInfo, Store
from foldline.stores.database_key_values import DatabaseKeyValues
from foldline.stores.postgres_connection import read_url
from foldline.stores.postgres_database import PIECE, PostgresDatabase
from foldline.stores.postgres_pool import Pool
from foldline.stores.postgres_text import escaped
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans, title_in

_PAGE = 256  # entries read in one step
_LONGEST_ID = 2_500  # bytes: PostgreSQL indexes up to 2,700

T = TypeVar("T")


class PostgresStore:
    """A store in one schema of a database, which is made or migrated at the first use.

    Any number of processes and machines may use one database; a store may be used from several event loops
    and threads, and keeps up to `connections` connections (in the URL), closed when idle for a minute.
    `timeout` is how many seconds to wait for a server that is away, for a lock, and for other writers.
    """

    def __init__(self, url: str, *, timeout: float = 10.0) -> None:
        self.target = read_url(url)
        self.key_values = DatabaseKeyValues(self._run)
        self._pool = Pool(self.target, timeout)

    async def append(self, session: str, entries: Sequence[Entry], *, seen: str | None) -> None:
        """Append a chain of entries: see `Store.append`."""
        batch = tuple(entries)
        _check_sizes(session, batch)
        await self._run(lambda tables: tables.append(session, batch, seen), writes=True)

    async def leaf(self, session: str) -> str | None:
        """Return the id of the leaf."""
        known = await self._run(lambda tables: tables.session(session))
        return known.leaf if known else None

    async def move(self, session: str, leaf: str | None, *, seen: str | None) -> None:
        """Move the leaf: see `Store.move`."""
        await self._run(lambda tables: tables.move(session, leaf, seen), writes=True)

    async def active(self, session: str, leaf: str | None = None) -> list[Entry]:
        """Return what a view needs: see `Store.active`."""
        return await self._run(lambda tables: tables.active(session, leaf))

    async def path(self, session: str, leaf: str | None = None) -> AsyncIterator[Entry]:
        """Yield the entries of the path, root first."""
        key, spans = await self._run(lambda tables: tables.spans_of(session, leaf))
        async for entry in self._pages(key, spans):
            yield entry

    async def tail(
        self, session: str, limit: int, *, leaf: str | None = None, before: str | None = None
    ) -> list[Entry]:
        """Return the last entries of a path: see `Store.tail`."""
        return await self._run(lambda tables: tables.tail(session, limit, leaf, before))

    async def marks(
        self, session: str, leaf: str | None = None, *, kinds: Collection[Mark] = MARKS
    ) -> list[Entry]:
        """Return the entries of the path that are no messages: see `Store.marks`."""
        return await self._run(lambda tables: tables.marks(session, leaf, kinds))

    async def all(self, session: str, *, after: int = 0) -> AsyncIterator[Entry]:
        """Yield every entry in append order."""
        known = await self._run(lambda tables: tables.session(session))
        if known is not None and known.entries > after:
            async for entry in self._pages(known.key, [(after + 1, known.entries)]):
                yield entry

    async def _pages(self, key: Any, spans: Spans) -> AsyncIterator[Entry]:
        for first, last in spans:
            for start in range(first, last + 1, _PAGE):
                end = min(last, start + _PAGE - 1)
                for entry in await self._run(partial(Tables.page, session=key, start=start, end=end)):
                    yield entry

    async def entry(self, session: str, entry: str) -> Entry | None:
        """Return one entry; None if there is none."""
        return await self._run(lambda tables: tables.entry(session, entry))

    async def entries(self, session: str, ids: Sequence[str]) -> list[Entry]:
        """Return the entries with these ids, in their order."""
        return await self._run(lambda tables: tables.entries(session, ids))

    async def sessions(self, *, limit: int | None = None, offset: int = 0) -> list[SessionInfo]:
        """Return sessions, the last updated first."""
        return await self._run(lambda tables: tables.sessions(limit, offset))

    async def info(self, session: str) -> SessionInfo | None:
        """Return what `sessions` tells of one session."""
        return await self._run(lambda tables: tables.info(session))

    async def ids(self, prefix: str, limit: int) -> list[str]:
        """Return the ids of the newest sessions that begin so."""
        return await self._run(lambda tables: tables.ids(prefix, limit))

    async def count(self) -> int:
        """Return how many sessions there are."""
        return await self._run(Tables.count)

    async def search(
        self, query: str, session: str | None = None, limit: int = 20, *, on_path: bool = False
    ) -> list[Hit]:
        """Return matching messages, those of the sessions last updated first: see `Store.search`."""
        if not search.words(query) or limit < 1:
            return []
        run = self._pool.run
        scope = await run(lambda database: index.scope(database, session, on_path=on_path))
        if scope is None:
            return []
        after: UUID | None = UUID(int=0)
        while after is not None:  # in steps, so that appends can run in between
            after = await run(partial(index.catch_up, scope=scope, after=after))
        hits = await run(lambda database: index.matches(database, query, scope, limit))
        for key in () if hits else await run(lambda database: index.sessions_in(database, scope)):
            before = 2**62
            while before and len(hits) < limit:
                step = partial(index.scan, query=query, session=key, scope=scope)
                more, before = await run(partial(step, before=before, limit=limit - len(hits)))
                hits += more
        if len(hits) < min(FEW, limit):
            known, room = tuple(hits), limit - len(hits)
            hits += await run(lambda database: index.some(database, query, scope, room, known))
        return hits

    async def verify(self, session: str | None = None) -> list[str]:
        """Return what is wrong: see `Store.verify`."""
        return await self._pool.run(lambda database: _audit(database, session))

    async def set_times(self, session: str, created: float, updated: float) -> None:
        """Set the times that `sessions` tells: a copy keeps those of the original."""
        await self._run(lambda tables: tables.set_times(session, created, updated))

    async def purge(self, session: str) -> None:
        """Delete a session permanently: its rows, its index, its values."""
        tried: list[str] = []

        def work(database: PostgresDatabase) -> None:
            tried.append(session)
            try:
                _purge(database, session)
            except SessionNotFound:
                if len(tried) == 1:  # otherwise it was purged, and the answer was lost
                    raise

        await self._pool.run(work)

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def _run(self, work: Callable[[Tables], T], *, writes: bool = False) -> T:
        return await self._pool.run(lambda database: work(Tables(database)), writes=writes)


def _check_sizes(session: str, entries: Sequence[Entry]) -> None:
    """Raise StoreError for what an index or a row of PostgreSQL cannot take."""
    if any(_stored_bytes(id_) > _LONGEST_ID for id_ in (session, *(entry.id for entry in entries))):
        raise StoreError(f"an id may have {_LONGEST_ID:,} bytes: nothing was written")
    if len(title_in(entries) or "") > PIECE // 4:
        raise StoreError(f"a title may have {PIECE // 4:,} characters: nothing was written")


def _stored_bytes(text: str) -> int:
    return len(escaped(text).encode())


def _purge(database: PostgresDatabase, session: str) -> None:
    with database.transaction():
        key = Tables(database).known_session(session).key
        # First, so that nobody appends or indexes meanwhile: they wait for the row, and then it is gone.
        database.change("delete_session", session=key)
        for query in ("delete_entries", "delete_pieces", "delete_index"):
            database.change(query, session=key)
        database.change("forget_values", id=session)


def _audit(database: PostgresDatabase, session: str | None) -> list[str]:
    tables = Tables(database)
    if session is not None:
        names = [session]
        problems = audit_session(tables, session)
    else:
        names = [info.id for info in tables.sessions()]
        rows = database.rows("ownerless")
        problems = [f"{count} rows of {table} belong to no session" for table, count in rows if count]
        problems += audit_sessions(tables)
    for name in names:
        known = tables.session(name)
        if known is not None:
            problems += [f"session {name}: {line}" for line in index.audit_index(database, known.key)]
    return problems


if TYPE_CHECKING:
    _: Store = PostgresStore("")
