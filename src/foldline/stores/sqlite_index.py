"""The full-text index of the SQLite store: FTS5, without a copy of the text; see `WordIndex`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from foldline.errors import StoreCorrupt
from foldline.stores import search
from foldline.stores.base import Hit
from foldline.stores.database import Database
from foldline.stores.index import Key, Scope, hit
from foldline.stores.rows import unpack
from foldline.stores.tables import Tables

_SESSION_KEYS: Final = 2**32  # the keys of one session: a session's rows stand side by side, in order
_LAST: Final = 2**63 - 1


class SqliteIndex:
    """The index of an SQLite file, which ranks by itself."""

    exact = True

    def indexed(self, payload: bytes) -> str | None:
        """Return the text of an entry as the index holds it."""
        return search.indexed(search.stored_text(payload))

    def candidates(
        self, tables: Tables, query: str, scope: Scope, limit: int, *, whole: bool
    ) -> Iterator[Key]:
        """Yield the entries with every word, the best first."""
        del limit
        return _found(tables, search.expression(query, whole=whole), scope)

    def some(self, tables: Tables, query: str, scope: Scope, limit: int, known: Sequence[Hit]) -> list[Hit]:
        """Return the best messages with any word of the query that are not `known`."""
        seen = {(hit.session, hit.seq) for hit in known}
        hits: list[Hit] = []
        for at in _found(tables, search.some_expression(query), scope):
            if len(hits) == limit:
                break
            if scope.holds(tables, *at):
                found = hit(tables, at, query, partial=True)
                hits += [found] if found is not None and (found.session, found.seq) not in seen else []
        return hits


def _found(tables: Tables, expression: str | None, scope: Scope) -> Iterator[Key]:
    """Yield the entries that the index finds, the best first."""
    if expression is None:
        return
    no = scope.session
    first, last = (0, _LAST) if no is None else (no * _SESSION_KEYS, (no + 1) * _SESSION_KEYS - 1)
    for (at,) in tables.database.rows("matches", expression=expression, first=first, last=last):
        yield divmod(at, _SESSION_KEYS)


def forget(database: Database, no: int) -> None:
    """Remove a session from the index before its entries go; the text must be the one that was indexed."""
    upto, _ = database.row("indexed_upto", session=no) or (0, 0)
    try:
        for seq, payload in database.rows("searched", session=no, first=1, last=upto):
            text = search.indexed(search.searchable(unpack(payload)))
            database.change("forget_message", session=no, seq=seq, text=text)
    except StoreCorrupt:  # nothing tells what was indexed of it
        clear(database)


def clear(database: Database) -> None:
    """Empty the index of all sessions; it is filled again before the next search."""
    database.change("empty_index")
    database.change("index_nothing")
