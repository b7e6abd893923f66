"""Check that a database holds exactly what was appended."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial

from foldline.core.log.entries import Entry
from foldline.core.log.log import verify as verify_chain
from foldline.errors import SessionNotFound, StoreCorrupt
from foldline.stores import tree
from foldline.stores.connection import is_busy, transaction
from foldline.stores.read_only import is_read_only
from foldline.stores.rows import unpack
from foldline.stores.tables import Tables
from foldline.stores.tree import Place


def audit(tables: Tables, session: str | None) -> list[str]:
    """Return a line for each problem of the file, or of one session; raises SessionNotFound."""
    with _any_text(tables):
        return _session(tables, session) if session is not None else _file(tables)


@contextmanager
def _any_text(tables: Tables) -> Generator[None]:
    """Read invalid UTF-8 too: an audit must find the rows that cannot be read."""
    before = tables.database.text_factory
    tables.database.text_factory = _legible
    try:
        yield
    finally:
        tables.database.text_factory = before


def _legible(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _file(tables: Tables) -> list[str]:
    rows = tables.database.execute("PRAGMA integrity_check(100)").fetchall()
    problems = [f"file: {line}" for (line,) in rows if line != "ok"]
    rows = tables.database.execute("PRAGMA foreign_key_check").fetchall()
    problems += [f"file: row {row[1]} of {row[0]} belongs to no session" for row in rows]
    problems += _index(tables)
    for info in tables.sessions():
        try:
            problems += _session(tables, info.id)
        except SessionNotFound:
            problems.append(f"session {info.id}: its id is not the stored one")
    return problems


def _index(tables: Tables) -> list[str]:
    """Check the full-text index (https://www.sqlite.org/fts5.html, integrity-check), where that can be."""
    if is_read_only(tables.database):
        return []
    try:
        with transaction(tables.database):
            tables.database.execute("INSERT INTO search (search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        if is_busy(error):
            raise
        return [f"search index: {error}; the messages themselves are safe: export the sessions to a new file"]
    return []


def _session(tables: Tables, session: str) -> list[str]:
    known = tables.known_session(session)
    problems: list[str] = []
    if known.leaf is not None and tables.database.execute(
        "SELECT count(*) FROM entries WHERE session_no = ? AND id = ?", (known.no, known.leaf)
    ).fetchone() == (0,):
        problems.append(f"its leaf {known.leaf} is missing")
    counted = tables.database.execute(
        "SELECT count(*), coalesce(max(seq), 0) FROM entries WHERE session_no = ?", (known.no,)
    ).fetchone()
    if counted != (known.entries, known.entries):
        problems.append(f"it has {counted[0]} entries up to {counted[1]}, not {known.entries}")
    chain = verify_chain(_entries(tables, known.no, problems))
    return [f"session {session}: {line}" for line in (*problems, *chain)]


def _entries(tables: Tables, no: int, problems: list[str]) -> Iterator[Entry]:
    """Yield the entries in append order, and note what is wrong with their rows."""
    rows = tables.database.execute(
        "SELECT e.id, e.parent, e.kind, e.payload, p.seq, e.seq, e.segment, e.joint, e.boundary, e.messages,"
        " e.tokens, e.compactions FROM entries e"
        " LEFT JOIN entries p ON p.session_no = e.session_no AND p.id = e.parent"
        " WHERE e.session_no = ? ORDER BY e.key",
        (no,),
    )
    for id_, parent, kind, payload, parent_seq, *place in rows:
        try:
            entry = unpack(payload)
        except StoreCorrupt as error:
            problems.append(f"{id_}: {error}")
            continue
        if (entry.id, entry.parent, tree.kind(entry)) != (id_, parent, kind):
            problems.append(f"{id_}: its row does not match the entry")
        problems += _place(tables, no, entry, parent_seq, Place(*place))
        yield entry


def _place(tables: Tables, no: int, entry: Entry, parent_seq: int | None, stored: Place) -> list[str]:
    numbers: list[object] = [
        parent_seq or 0,
        stored.seq,
        stored.segment,
        stored.messages,
        stored.tokens,
        stored.compactions,
    ]  # SQLite allows text in an INTEGER column
    if not all(isinstance(number, int) for number in numbers):
        return [f"{entry.id}: its row, or its parent's, has something else in place of a number"]
    if parent_seq is not None and parent_seq >= stored.seq:
        return [f"{entry.id}: its parent comes later"]
    try:
        parent = tables.place_at(no, parent_seq) if parent_seq else None
        right = tree.place(entry, stored.seq, parent, partial(tables.events, no, parent))
    except (StoreCorrupt, TypeError) as error:  # a parent's row may hold text in place of a number
        return [f"{entry.id}: {error}"]
    wrong = [name for name in Place._fields if getattr(right, name) != getattr(stored, name)]
    return [f"{entry.id}: wrong {', '.join(wrong)} in its row"] if wrong else []
