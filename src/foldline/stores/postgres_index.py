"""The full-text index of the PostgreSQL store: updated before a search, queried, and checked.

Words are taken out of the text here, not by PostgreSQL, whose parser knows hosts, files and numbers of its
own: so a query finds the same in every store. The index holds each word of a message once, without places;
what it finds is looked at again, which is exact for phrases and for words that were cut.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from foldline.errors import StoreCorrupt
from foldline.stores import search, tree
from foldline.stores.base import Hit
from foldline.stores.postgres_database import PostgresDatabase
from foldline.stores.rows import searchable_bytes, unpack
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans

_BATCH: Final = 200  # messages indexed in one commit, which bounds how long an append to the session waits
_RANKED: Final = 200  # messages with some of the words that are ranked
_PAGE: Final = 500  # messages read in one step of a scan
_LONGEST: Final = 255  # characters of a word; PostgreSQL takes up to 2 KB
_MOST: Final = 400_000  # bytes of all words of a message; a tsvector takes 1 MB


class Covered(NamedTuple):
    """What a search covers: one session or all (None), and only the path of each, or every branch."""

    session: UUID | None
    on_path: bool
    paths: dict[UUID, Spans]  # those that were looked at

    def holds(self, database: PostgresDatabase, session: UUID, seq: int) -> bool:
        """Return whether the scope covers this entry."""
        if not self.on_path:
            return True
        if session not in self.paths:
            (leaf,) = database.row("leaf_seq", session=session) or (None,)
            self.paths[session] = Tables(database).spans(session, leaf) if leaf else []
        return tree.on(self.paths[session], seq)


def scope(database: PostgresDatabase, session: str | None, *, on_path: bool) -> Covered | None:
    """Return the scope of a search; None if there is no such session."""
    known = Tables(database).session(session) if session is not None else None
    if session is not None and known is None:
        return None
    return Covered(known.key if known else None, on_path, {})


def catch_up(database: PostgresDatabase, scope: Covered, after: UUID) -> UUID | None:
    """Index the next messages of the first session from the key `after` on that is behind.

    Returns the key from which to go on; None at the end.
    """
    last = scope.session or UUID(int=2**128 - 1)
    row = database.row("session_behind", first=scope.session or after, last=last)
    if row is None:
        return None
    session, indexed, entries = row
    upto = min(indexed + _BATCH, entries)
    rows = [
        {"session": session, "seq": seq, "words": vector(_words(payload, kind))}
        for seq, payload, kind in database.rows("searched", session=session, first=indexed + 1, last=upto)
    ]
    with database.transaction():
        if database.change("set_indexed", session=session, before=indexed, upto=upto):
            database.insert("index_message", rows)
    return session if upto < entries else following(session)


def following(session: UUID) -> UUID | None:
    """Return the key after this one."""
    return UUID(int=session.int + 1) if session.int < 2**128 - 1 else None


def matches(database: PostgresDatabase, query: str, scope: Covered, limit: int) -> list[Hit]:
    """Return messages with every word: those that hold it as it stands, then those that begin so.

    Each the newest sessions first.
    """
    hits: list[Hit] = []
    for whole in (True, False):
        expression = _expression(query, whole=whole)
        known = {(hit.session, hit.seq) for hit in hits}
        for at in _candidates(database, expression, scope, limit) if expression else ():
            if len(hits) == limit:
                break
            hit = _hit(database, *at, query, whole=whole) if scope.holds(database, *at) else None
            if hit and (hit.session, hit.seq) not in known:
                hits.append(hit)
    return hits


def some(
    database: PostgresDatabase, query: str, scope: Covered, limit: int, known: Sequence[Hit]
) -> list[Hit]:
    """Return the best messages with any word of the query that are not `known`.

    They are taken from the newest messages with each word, the rarest word first, and ranked by their texts.
    """
    one = {} if scope.session is None else {"session": scope.session}
    asked = [f"({' & '.join(_quoted(word))})" for word in search.different_words(query)]
    if len(asked) < 2:
        return []
    counts = {
        each: database.row(f"count_{'of_session' if one else 'all'}", expression=each, **one)
        for each in asked
    }
    found: dict[tuple[UUID, int], None] = {}
    for expression in sorted(asked, key=lambda each: counts[each] or (0,)):
        keys = _candidates(database, expression, scope, limit)
        found |= dict.fromkeys(itertools.islice((at for at in keys if scope.holds(database, *at)), _RANKED))
        if len(found) >= _RANKED:
            break
    seen = {(hit.session, hit.seq) for hit in known}
    rows = [database.row("found", session=session, seq=seq) for session, seq in found]
    others = [(row[0], row[1], unpack(row[2])) for row in rows if row and (row[0], row[1]) not in seen]
    places = search.ranked([search.searchable(entry) for *_, entry in others], query)
    return [search.hit(*others[place], query, partial=True) for place in places[:limit]]


def scan(
    database: PostgresDatabase, query: str, scope: Covered, *, session: UUID, before: int, limit: int
) -> tuple[list[Hit], int]:
    """Look for the words anywhere in one page of a session's messages before seq `before`, the newest first.

    Returns the hits and the seq before which to continue; 0 at the end.
    """
    rows = database.rows("searched_before", session=session, before=before, count=_PAGE)
    rough = search.rough_patterns(query)
    hits: list[Hit] = []
    for seq, payload, kind in rows:
        plain = searchable_bytes(payload)  # to decode a payload costs far more than to search its bytes
        if plain is not None and not all(pattern.search(plain) for pattern in rough):
            continue
        if (
            len(hits) < limit
            and scope.holds(database, session, seq)
            and search.holds(search.stored_text(payload, kind), query)
        ):
            hits += [hit] if (hit := _hit(database, session, seq, query, whole=None)) else []
    return hits, rows[-1][0] if len(rows) == _PAGE else 0


def sessions_in(database: PostgresDatabase, scope: Covered) -> list[UUID]:
    """Return the keys of the sessions that a scan goes through, the last updated first."""
    if scope.session is not None:
        return [scope.session]
    return [key for (key,) in database.rows("newest_keys")]


def audit_index(database: PostgresDatabase, session: UUID) -> Iterator[str]:
    """Yield a line for each message of which the index holds other words than it has."""
    (upto,) = database.row("indexed_upto", session=session) or (0,)
    for first in range(1, upto + 1, _PAGE):
        last = min(upto, first + _PAGE - 1)
        stored = dict(database.rows("index_rows", session=session, first=first, last=last))  # pyright: ignore[reportArgumentType, reportUnknownVariableType]
        for seq, payload, kind in database.rows("searched", session=session, first=first, last=last):
            with contextlib.suppress(StoreCorrupt):  # which the log's audit tells
                held: Any = stored.get(seq, "")
                if seq not in stored or (None if held is None else _read(held)) != _words(payload, kind):
                    yield f"search index: entry {seq} is not indexed as it reads"


def vector(words: frozenset[str] | None) -> str | None:
    """Return words in the text form of a tsvector; None for too many."""
    return None if words is None else " ".join(f"'{word}'" for word in sorted(words))


def _read(stored: str) -> frozenset[str]:
    return frozenset(stored[1:-1].split("' '")) if stored else frozenset()


def _words(payload: bytes, kind: str) -> frozenset[str] | None:
    """Return the words of an entry as the index holds them; None if there are too many."""
    words = frozenset(_cut(search.terms(search.stored_text(payload, kind))))
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


def _candidates(
    database: PostgresDatabase, expression: str, scope: Covered, limit: int
) -> Iterator[tuple[UUID, int]]:
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


def _hit(
    database: PostgresDatabase, session: UUID, seq: int, query: str, *, whole: bool | None
) -> Hit | None:
    """Return the hit for a candidate; None where its text does not match after all.

    `whole` is how the words must stand; None where that was seen already.
    """
    row = database.row("found", session=session, seq=seq)
    if row is None:
        return None
    entry = unpack(row[2])
    if whole is not None and not search.begins(search.searchable(entry), query, whole=whole):
        return None
    return search.hit(row[0], row[1], entry, query)
