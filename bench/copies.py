"""Fill a store by having its database copy one session, for counts that appends would take hours to reach."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from foldline.core.log.log import digest
from foldline.stores import SqliteStore, Store

BATCH = 250  # sessions of one transaction
SQLITE_SESSION = """
INSERT INTO sessions (id, leaf, entries, title, created, updated, indexed)
SELECT ?, leaf, entries, title, created, updated + ?, indexed FROM sessions WHERE id = 's0'
"""
SQLITE_ENTRIES = """
INSERT INTO entries (key, session_no, seq, id, parent, kind, segment, joint, boundary, messages, tokens, compactions,
    payload)
SELECT n.no * 4294967296 + e.seq, n.no, e.seq, e.id, e.parent, e.kind, e.segment, e.joint, e.boundary, e.messages,
    e.tokens, e.compactions, e.payload
FROM sessions n, entries e, sessions t
WHERE n.id = ? AND t.id = 's0' AND e.session_no = t.no ORDER BY e.seq
"""
POSTGRES_SESSIONS = """
INSERT INTO sessions (session_id, id, begun, leaf, entries, title, created, updated, indexed)
SELECT k.key, k.id, begun, leaf, entries, title, created, updated + k.number, indexed
FROM sessions t, unnest(%(keys)s::uuid[], %(ids)s::text[], %(numbers)s::int[]) k(key, id, number)
WHERE t.id = 's0'
"""
POSTGRES_ENTRIES = """
INSERT INTO entries
SELECT k.key, e.seq, e.id, e.kind, e.segment, e.joint, e.boundary, e.messages, e.tokens, e.compactions, e.pieces,
    e.payload
FROM unnest(%(keys)s::uuid[]) k(key), entries e WHERE e.session_id = %(template)s ORDER BY 1, 2
"""


def fill_by_copies(store: Store, start: int, end: int) -> None:
    """Make the sessions `s<start>` up to `s<end>` of `s0`, which is there."""
    if isinstance(store, SqliteStore):
        _fill_sqlite(store, start, end)
    else:
        _fill_postgres(store, start, end)


def _batches(start: int, end: int) -> Iterator[range]:
    for first in range(start, end, BATCH):
        yield range(first, min(end, first + BATCH))


def _fill_sqlite(store: SqliteStore, start: int, end: int) -> None:
    database = sqlite3.connect(store.file, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    for numbers in _batches(start, end):
        database.execute("BEGIN IMMEDIATE")
        for number in numbers:
            database.execute(SQLITE_SESSION, (f"s{number}", number))
            database.execute(SQLITE_ENTRIES, (f"s{number}",))
        database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def _fill_postgres(store: Store, start: int, end: int) -> None:
    import psycopg  # noqa: PLC0415 - only where it is measured

    target = store.target  # type: ignore[attr-defined]
    options = f'-c search_path="{target.schema}" -c synchronous_commit=off'
    with psycopg.connect(**{**target.parameters, "options": options}, autocommit=True) as database:
        for numbers in _batches(start, end):
            ids = [f"s{number}" for number in numbers]
            given = {"ids": ids, "keys": [digest(id_.encode()) for id_ in ids], "numbers": list(numbers)}
            with database.transaction():
                database.execute(POSTGRES_SESSIONS, given)
                database.execute(POSTGRES_ENTRIES, {**given, "template": digest(b"s0")})
        for table in ("sessions", "entries"):
            database.execute(f"VACUUM ANALYZE {table}")
