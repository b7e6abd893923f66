"""The full-text index of the SQLite store: updated before a search, queried, and cleaned by a purge."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from foldline.core.log.entries import Said
from foldline.stores import search, tree
from foldline.stores.base import Hit
from foldline.stores.connection import transaction
from foldline.stores.read_only import is_read_only
from foldline.stores.rows import is_escaped, unpack
from foldline.stores.tables import SESSION_KEYS, Tables, key
from foldline.stores.tree import Spans

_BATCH = 500  # messages indexed in one commit, which bounds how long another writer waits
_PAGE = 2_000  # messages read in one step of a scan


class Scope(NamedTuple):
    """What a search covers: keys from `first` to `last`, and the path of each session number (None: all)."""

    first: int
    last: int
    paths: dict[int, Spans] | None

    def holds(self, at: int) -> bool:
        """Return whether the scope covers the entry with this key."""
        no, seq = divmod(at, SESSION_KEYS)
        return self.paths is None or tree.on(self.paths.get(no, []), seq)


def scope(tables: Tables, session: str | None, *, on_path: bool) -> Scope | None:
    """Return the scope of a search; None if there is no such session."""
    known = tables.session(session) if session is not None else None
    if session is not None and known is None:
        return None
    paths: dict[int, Spans] | None = None
    if on_path:
        names = [session] if session is not None else [info.id for info in tables.sessions()]
        paths = dict(tables.spans_of(name, None) for name in names)
    if known is None:
        return Scope(0, 2**63 - 1, paths)
    return Scope(key(known.no, 0), key(known.no, SESSION_KEYS - 1), paths)


def catch_up(database: sqlite3.Connection, scope: Scope) -> bool:
    """Index the next messages of one session in the scope; returns False when all that can be are indexed."""
    if is_read_only(database):
        return False
    behind = (
        "SELECT no, indexed, entries FROM sessions WHERE indexed < entries AND no BETWEEN ? AND ? LIMIT 1"
    )
    numbers = (scope.first // SESSION_KEYS, scope.last // SESSION_KEYS)
    if database.execute(behind, numbers).fetchone() is None:
        return False
    with transaction(database):
        row = database.execute(behind, numbers).fetchone()
        if row is None:
            return False
        no, indexed, entries = row
        upto = min(indexed + _BATCH, entries)
        for at, text in _texts(database, key(no, indexed + 1), key(no, upto)):
            database.execute("INSERT INTO search (rowid, body) VALUES (?, ?)", (at, text))
        database.execute("UPDATE sessions SET indexed = ? WHERE no = ?", (upto, no))
    return True


def forget(database: sqlite3.Connection, no: int) -> None:
    """Remove a session from the index before its entries go; the text must be the one that was indexed."""
    upto: int = database.execute("SELECT indexed FROM sessions WHERE no = ?", (no,)).fetchone()[0]
    for at, text in _texts(database, key(no, 1), key(no, upto)):
        database.execute("INSERT INTO search (search, rowid, body) VALUES ('delete', ?, ?)", (at, text))


def clear(database: sqlite3.Connection) -> None:
    """Empty the index of all sessions; it is filled again before the next search."""
    database.execute("INSERT INTO search (search) VALUES ('delete-all')")
    database.execute("UPDATE sessions SET indexed = 0")


def matches(database: sqlite3.Connection, query: str, scope: Scope, limit: int) -> list[Hit]:
    """Return the index's best matches."""
    expression = search.expression(query)
    if expression is None:
        return []
    rows = database.execute(
        "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank, rowid DESC",
        (expression, scope.first, scope.last),
    )
    found: list[int] = []
    for (at,) in rows:
        if len(found) == limit:
            break
        if scope.holds(at):
            found.append(at)
    return [hit for at in found if (hit := _hit(database, at, query)) is not None]


def scan(
    database: sqlite3.Connection, query: str, scope: Scope, before: int, limit: int
) -> tuple[list[Hit], int]:
    """Look for the words anywhere in the messages of one page before the key `before`, the newest first.

    Returns the hits and the key before which to continue; 0 at the end.
    """
    rows = database.execute(
        "SELECT key, payload FROM entries WHERE key BETWEEN ? AND ? AND kind = 'said'"
        " ORDER BY key DESC LIMIT ?",
        (scope.first, before - 1, _PAGE),
    ).fetchall()
    rough = [
        re.compile(re.escape(word.encode()), re.IGNORECASE) for word in search.words(query) if word.isascii()
    ]
    hits: list[Hit] = []
    for at, payload in rows:
        # Decoding a payload costs far more than searching its bytes.
        if not is_escaped(payload) and not all(pattern.search(payload) for pattern in rough):
            continue
        if len(hits) < limit and scope.holds(at) and search.holds(search.said_text(unpack(payload)), query):
            hits += [hit] if (hit := _hit(database, at, query)) else []
    return hits, rows[-1][0] if len(rows) == _PAGE else 0


def _hit(database: sqlite3.Connection, at: int, query: str) -> Hit | None:
    row = database.execute(
        "SELECT s.id, e.seq, e.payload FROM entries e JOIN sessions s ON s.no = e.session_no WHERE e.key = ?",
        (at,),
    ).fetchone()
    entry = unpack(row[2]) if row else None
    if not isinstance(entry, Said):
        return None
    return search.hit(row[0], row[1], entry, query)


def _texts(database: sqlite3.Connection, first: int, last: int) -> Iterator[tuple[int, str]]:
    rows = database.execute(
        "SELECT key, payload FROM entries WHERE key BETWEEN ? AND ? AND kind = 'said' ORDER BY key",
        (first, last),
    )
    for at, payload in rows:
        yield at, search.indexed(search.said_text(unpack(payload)))
