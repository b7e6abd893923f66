"""The full-text index of the PostgreSQL store: a tsvector for each message; see `WordIndex`.

Words are taken out of the text here, not by PostgreSQL, whose parser knows hosts, files and numbers of its
own: so a query finds the same in every store. The index holds each word of a message once, without places;
what it finds is looked at again, which is exact for phrases and for words that were cut.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from foldline.stores import search
from foldline.stores.base import Hit
from foldline.stores.database import Database
from foldline.stores.index import Key, Scope
from foldline.stores.tables import Tables

_RANKED: Final = 200  # messages with some of the words that are ranked
_LONGEST: Final = 255  # characters of a word; PostgreSQL takes up to 2 KB
_MOST: Final = 400_000  # bytes of all words of a message; a tsvector takes 1 MB


class PostgresIndex:
    """The index of a PostgreSQL database, whose candidates are looked at again."""

    exact = False

    def indexed(self, payload: bytes) -> str | None:
        """Return the words of an entry in the text form of a tsvector; None for too many."""
        return vector(_words(payload))

    def candidates(
        self, tables: Tables, query: str, scope: Scope, limit: int, *, whole: bool
    ) -> Iterator[Key]:
        """Yield the entries with every word, those of the newest sessions first."""
        expression = _expression(query, whole=whole)
        return _candidates(tables.database, expression, scope, limit) if expression else iter(())

    def some(self, tables: Tables, query: str, scope: Scope, limit: int, known: Sequence[Hit]) -> list[Hit]:
        """Return the best messages with any word of the query that are not `known`.

        They are taken from the newest messages with each word, the rarest word first, and ranked by their
        texts.
        """
        database = tables.database
        asked = [f"({' & '.join(_quoted(word))})" for word in search.different_words(query)]
        if len(asked) < 2:
            return []
        counts = {each: database.row("count", expression=each, session=scope.session) for each in asked}
        found: dict[Key, None] = {}
        for expression in sorted(asked, key=lambda each: counts[each] or (0,)):
            keys = _candidates(database, expression, scope, limit)
            found |= dict.fromkeys(itertools.islice((at for at in keys if scope.holds(tables, *at)), _RANKED))
            if len(found) >= _RANKED:
                break
        seen = {(hit.session, hit.seq) for hit in known}
        rows = [database.row("found", session=session, seq=seq) for session, seq in found]
        others = [
            (row[0], row[1], entry)
            for row in rows
            if row and (row[0], row[1]) not in seen and (entry := search.readable(row[2])) is not None
        ]
        places = search.ranked([search.searchable(entry) for *_, entry in others], query)
        return [search.hit(*others[place], query, partial=True) for place in places[:limit]]


def vector(words: frozenset[str] | None) -> str | None:
    """Return words in the text form of a tsvector; None for too many."""
    return None if words is None else " ".join(f"'{word}'" for word in sorted(words))


def _words(payload: bytes) -> frozenset[str] | None:
    """Return the words of an entry as the index holds them; None if there are too many."""
    words = frozenset(_cut(search.terms(search.stored_text(payload))))
    return words if sum(len(word.encode()) + 8 for word in words) < _MOST else None


def _cut(terms: Iterable[str]) -> Iterator[str]:
    return (term[:_LONGEST] for term in terms)


def _expression(query: str, *, whole: bool) -> str | None:
    """Return the tsquery for a query: of each word the parts, of which the last may go on unless `whole`.

    None if a word has no letter or digit, which an index of words cannot answer.
    """
    asked = [_quoted(word) for word in search.words(query)]
    if not asked or not all(asked):
        return None
    more = "" if whole else ":*"
    parts = {part for word in asked for part in word[:-1]} | {f"{word[-1]}{more}" for word in asked}
    return " & ".join(sorted(parts))


def _quoted(word: str) -> list[str]:
    return [f"'{part}'" for part in _cut(search.terms(word))]


def _candidates(database: Database, expression: str, scope: Scope, limit: int) -> Iterator[Key]:
    """Yield what the index finds, page by page."""
    one = {} if scope.session is None else {"session": scope.session}
    query, count, offset = "matches_of_session" if one else "matches", max(2 * limit, 50), 0
    while True:
        rows = database.rows(query, expression=expression, count=count, offset=offset, **one)
        yield from ((session, seq) for session, seq in rows)
        if len(rows) < count:
            return
        offset += count
        count *= 4
