"""The full-text index of the SQLite store: updated before a search, queried, and cleaned by a purge."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from foldline.errors import StoreCorrupt
from foldline.stores import search, tree
from foldline.stores.base import Hit
from foldline.stores.read_only import is_read_only
from foldline.stores.rows import searchable_bytes, unpack
from foldline.stores.sqlite_database import SqliteDatabase
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans

SESSION_KEYS = 2**32  # the keys of one session: a session's rows stand side by side, in order
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
    return Scope(key(known.key, 0), key(known.key, SESSION_KEYS - 1), paths)


def catch_up(database: SqliteDatabase, scope: Scope) -> bool:
    """Index the next messages of one session in the scope; returns False when all that can be are indexed."""
    if is_read_only(database.connection):
        return False
    numbers = {"first": scope.first // SESSION_KEYS, "last": scope.last // SESSION_KEYS}
    if database.row("session_behind", **numbers) is None:
        return False
    with database.transaction():
        row = database.row("session_behind", **numbers)
        if row is None:
            return False
        no, indexed, entries = row
        upto = min(indexed + _BATCH, entries)
        for seq, payload, kind in database.rows("searched", session=no, first=indexed + 1, last=upto):
            text = search.indexed(search.stored_text(payload, kind))
            database.change("index_message", session=no, seq=seq, text=text)
        database.change("set_indexed", session=no, upto=upto)
    return True


def forget(database: SqliteDatabase, no: int) -> None:
    """Remove a session from the index before its entries go; the text must be the one that was indexed."""
    (upto,) = database.row("indexed_upto", session=no) or (0,)
    try:
        for seq, payload, _ in database.rows("searched", session=no, first=1, last=upto):
            text = search.indexed(search.searchable(unpack(payload)))
            database.change("forget_message", session=no, seq=seq, text=text)
    except StoreCorrupt:  # nothing tells what was indexed of it
        clear(database)


def clear(database: SqliteDatabase) -> None:
    """Empty the index of all sessions; it is filled again before the next search."""
    database.change("empty_index")
    database.change("index_nothing")


def matches(database: SqliteDatabase, query: str, scope: Scope, limit: int) -> list[Hit]:
    """Return the best messages with every word: those that hold it as it stands, then those that begin so."""
    found: dict[int, None] = {}
    for whole in (True, False):
        found |= dict.fromkeys(_found(database, search.expression(query, whole=whole), scope, limit))
    return [hit for at in list(found)[:limit] if (hit := _hit(database, at, query)) is not None]


def some(database: SqliteDatabase, query: str, scope: Scope, limit: int, known: Sequence[Hit]) -> list[Hit]:
    """Return the best messages with any word of the query that are not `known`."""
    seen = {(hit.session, hit.seq) for hit in known}
    keys = _found(database, search.some_expression(query), scope, limit + len(known))
    hits = [hit for at in keys if (hit := _hit(database, at, query, partial=True)) is not None]
    return [hit for hit in hits if (hit.session, hit.seq) not in seen][:limit]


def _found(database: SqliteDatabase, expression: str | None, scope: Scope, limit: int) -> list[int]:
    """Return the keys that the index finds in the scope, the best first."""
    if expression is None:
        return []
    rows = database.rows("matches", expression=expression, first=scope.first, last=scope.last)
    return list(itertools.islice((at for (at,) in rows if scope.holds(at)), limit))


def scan(
    database: SqliteDatabase, query: str, scope: Scope, before: int, limit: int
) -> tuple[list[Hit], int]:
    """Look for the words anywhere in the messages of one page before the key `before`, the newest first.

    Returns the hits and the key before which to continue; 0 at the end.
    """
    rows = database.rows("searched_before", first=scope.first, last=before - 1, count=_PAGE)
    rough = search.rough_patterns(query)
    hits: list[Hit] = []
    for at, payload, kind in rows:
        plain = searchable_bytes(payload)  # to decode a payload costs far more than to search its bytes
        if plain is not None and not all(pattern.search(plain) for pattern in rough):
            continue
        if len(hits) < limit and scope.holds(at) and search.holds(search.stored_text(payload, kind), query):
            hits += [hit] if (hit := _hit(database, at, query)) else []
    return hits, rows[-1][0] if len(rows) == _PAGE else 0


def key(no: int, seq: int) -> int:
    """Return the key of a row of the log, which is the row's in the index too."""
    return no * SESSION_KEYS + seq


def _hit(database: SqliteDatabase, at: int, query: str, *, partial: bool = False) -> Hit | None:
    row = database.row("found", key=at)
    return search.hit(row[0], row[1], unpack(row[2]), query, partial=partial) if row else None
