"""Check an SQLite file: what SQLite can say of it, its index, and every session."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from foldline.stores.audit import audit_session, audit_sessions
from foldline.stores.connection import is_busy, transaction
from foldline.stores.read_only import is_read_only
from foldline.stores.tables import Tables


def audit(database: sqlite3.Connection, tables: Tables, session: str | None) -> list[str]:
    """Return a line for each problem of the file, or of one session; raises SessionNotFound."""
    with _any_text(database):
        if session is not None:
            return audit_session(tables, session)
        return [*_file(database), *_index(database), *audit_sessions(tables)]


@contextmanager
def _any_text(database: sqlite3.Connection) -> Generator[None]:
    """Read invalid UTF-8 too: an audit must find the rows that cannot be read."""
    before = database.text_factory
    database.text_factory = _legible
    try:
        yield
    finally:
        database.text_factory = before


def _legible(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _file(database: sqlite3.Connection) -> list[str]:
    rows = database.execute("PRAGMA integrity_check(100)").fetchall()
    problems = [f"file: {line}" for (line,) in rows if line != "ok"]
    rows = database.execute("PRAGMA foreign_key_check").fetchall()
    return problems + [f"file: row {row[1]} of {row[0]} belongs to no session" for row in rows]


def _index(database: sqlite3.Connection) -> list[str]:
    """Check the full-text index (https://www.sqlite.org/fts5.html, integrity-check), where that can be."""
    if is_read_only(database):
        return []
    try:
        with transaction(database):
            database.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise
        return [f"search index: {error}; the messages themselves are safe: export the sessions to a new file"]
    return []
