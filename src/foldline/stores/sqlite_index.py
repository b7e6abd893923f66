"""The full-text index of the SQLite store, a `WordIndex`: FTS5, without a copy of the text."""

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

_SESSION_KEYS: Final = 2**32  # row keys reserved for each session, so that its rows are stored together
_LAST: Final = 2**63 - 1


class SqliteIndex:
    """The index of an SQLite file; FTS5 ranks its matches."""

    exact = True

    def indexed(self, payload: bytes) -> str | None:
        """Return the searchable text of an entry as the index stores it."""
        return search.indexed(search.stored_text(payload))

    def candidates(
        self, tables: Tables, query: str, scope: Scope, limit: int, *, whole: bool
    ) -> Iterator[Key]:
        """Yield the entries that have every word, the best first."""
        del limit
        return _ranked_matches(tables, _expression(query, whole=whole), scope)

    def partial_hits(
        self, tables: Tables, query: str, scope: Scope, limit: int, known: Sequence[Hit]
    ) -> list[Hit]:
        """Return the best messages with any word of the query that are not `known`."""
        words = search.unique_words(query)
        expression = " OR ".join(_quoted(search.indexed(word)) for word in words) if len(words) > 1 else None
        known_places = {(hit.session, hit.seq) for hit in known}
        hits: list[Hit] = []
        for key in _ranked_matches(tables, expression, scope):
            if len(hits) == limit:
                break
            if scope.covers(tables, *key):
                found = hit(tables, key, query, partial=True)
                if found is not None and (found.session, found.seq) not in known_places:
                    hits.append(found)
        return hits


def _expression(query: str, *, whole: bool) -> str | None:
    """Return the FTS5 expression for a query: each word a phrase, its last term a prefix unless `whole`.

    None if a word has no letter or digit, and so is not in the index. Source of the quoting rule:
    https://www.sqlite.org/fts5.html#full_text_query_syntax.
    """
    phrases = [search.indexed(word) for word in search.words(query)]
    if not phrases or not all(any(ch.isalnum() for ch in phrase) for phrase in phrases):
        return None
    return " AND ".join(_quoted(phrase) + ("" if whole else "*") for phrase in phrases)


def _quoted(phrase: str) -> str:
    return '"' + phrase.replace('"', '""') + '"'


def _ranked_matches(tables: Tables, expression: str | None, scope: Scope) -> Iterator[Key]:
    """Yield the entries that match an FTS5 expression, the best first."""
    if expression is None:
        return
    session = scope.session
    first, last = (0, _LAST)
    if session is not None:
        first, last = session * _SESSION_KEYS, (session + 1) * _SESSION_KEYS - 1
    for (row_key,) in tables.database.rows("matches", expression=expression, first=first, last=last):
        yield divmod(row_key, _SESSION_KEYS)


def forget(database: Database, session: int) -> None:
    """Remove a session's text from the index; call it before the session's entries are deleted."""
    upto, *_ = database.row("indexed_upto", session=session) or (0,)
    try:
        for seq, payload in database.rows("searched", session=session, first=1, last=upto):
            text = search.indexed(search.searchable(unpack(payload)))
            database.change("forget_message", session=session, seq=seq, text=text)
    except StoreCorrupt:  # the text that was indexed is unknown, and FTS5 needs it
        clear(database)


def clear(database: Database) -> None:
    """Empty the index of all sessions; it is filled again before the next search."""
    database.change("empty_index")
    database.change("index_nothing")
