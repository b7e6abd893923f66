"""The full-text index of the PostgreSQL store, a `WordIndex`: a tsvector for each message.

Words are found here, not by PostgreSQL's parser, which has its own rules for hosts, files and numbers: so a
query finds the same in every store. The index has each word of a message once, without positions. Its
candidates are therefore checked against the text, which is exact for phrases and for words that were cut.
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

_RANKED: Final = 200  # messages that are ranked to find partial hits
_WORD_CHARACTERS: Final = 255  # indexed of a word; PostgreSQL allows 2 KB
_MOST_BYTES: Final = 400_000  # of all words of a message; a tsvector can have 1 MB


class PostgresIndex:
    """The index of a PostgreSQL database; its candidates must be checked."""

    exact = False

    def indexed(self, payload: bytes) -> str | None:
        """Return the words of an entry in the text form of a tsvector; None if they are too many."""
        words = frozenset(_cut(search.terms(search.stored_text(payload))))
        if sum(len(word.encode()) + 8 for word in words) >= _MOST_BYTES:
            return None
        return " ".join(f"'{word}'" for word in sorted(words))

    def candidates(
        self, tables: Tables, query: str, scope: Scope, limit: int, *, whole: bool
    ) -> Iterator[Key]:
        """Yield the entries that have every word, those of the newest sessions first."""
        expression = _expression(query, whole=whole)
        return _candidates(tables.database, expression, scope, limit) if expression else iter(())

    def partial_hits(
        self, tables: Tables, query: str, scope: Scope, limit: int, known: Sequence[Hit]
    ) -> list[Hit]:
        """Return the best messages with any word of the query that are not `known`.

        The newest messages with each word are taken, the rarest word first, and ranked by their texts.
        """
        database = tables.database
        words = [f"({' & '.join(_quoted(word))})" for word in search.unique_words(query)]
        if len(words) < 2:
            return []
        counts = {word: database.row("count", expression=word, session=scope.session) for word in words}
        found: dict[Key, None] = {}
        for word in sorted(words, key=lambda word: counts[word] or (0,)):
            keys = (key for key in _candidates(database, word, scope, limit) if scope.covers(tables, *key))
            found |= dict.fromkeys(itertools.islice(keys, _RANKED))
            if len(found) >= _RANKED:
                break
        known_places = {(hit.session, hit.seq) for hit in known}
        rows = [database.row("found", session=session, seq=seq) for session, seq in found]
        others = [
            (row[0], row[1], entry)
            for row in rows
            if row and (row[0], row[1]) not in known_places and (entry := search.readable(row[2])) is not None
        ]
        ranking = search.ranked([search.searchable(entry) for *_, entry in others], query)
        return [search.hit(*others[index], query, partial=True) for index in ranking[:limit]]


def _cut(terms: Iterable[str]) -> Iterator[str]:
    return (term[:_WORD_CHARACTERS] for term in terms)


def _expression(query: str, *, whole: bool) -> str | None:
    """Return the tsquery for a query: the terms of each word, the last one as a prefix unless `whole`.

    None if a word has no letter or digit, and so is not in the index.
    """
    words = [_quoted(word) for word in search.words(query)]
    if not words or not all(words):
        return None
    suffix = "" if whole else ":*"
    terms = {term for word in words for term in word[:-1]} | {f"{word[-1]}{suffix}" for word in words}
    return " & ".join(sorted(terms))


def _quoted(word: str) -> list[str]:
    return [f"'{term}'" for term in _cut(search.terms(word))]


def _candidates(database: Database, expression: str, scope: Scope, limit: int) -> Iterator[Key]:
    """Yield the entries that match a tsquery, read page by page."""
    session = {} if scope.session is None else {"session": scope.session}
    query, count, offset = "matches_of_session" if session else "matches", max(2 * limit, 50), 0
    while True:
        rows = database.rows(query, expression=expression, count=count, offset=offset, **session)
        yield from ((session, seq) for session, seq in rows)
        if len(rows) < count:
            return
        offset += count
        count *= 4
