"""The full-text index of a store over a database, and the scan that finds what it cannot.

The index is derived from the log, and filled before a search rather than by the append. If it finds nothing,
the messages themselves are scanned for the words. A `WordIndex` is the part that differs between databases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from foldline.stores import search, tree
from foldline.stores.base import Hit
from foldline.stores.rows import searchable_bytes
from foldline.stores.tables import Tables
from foldline.stores.tree import Spans

_BATCH = 300  # messages indexed in one commit, which bounds how long another writer waits
_PAGE = 1_000  # messages, and sessions, read in one step of a scan

Key = tuple[Any, int]  # the key of a session, and the seq of an entry


class Scope(NamedTuple):
    """The entries that a search covers: of one session or all (None), of the path of each or every branch."""

    session: Any | None
    on_path: bool
    paths: dict[Any, Spans]  # a cache, by session

    def covers(self, tables: Tables, session: Any, seq: int) -> bool:
        """Return whether the scope covers this entry."""
        if not self.on_path:
            return True
        if session not in self.paths:
            (leaf,) = tables.database.row("leaf_seq", session=session) or (None,)
            self.paths[session] = tables.spans(session, leaf) if leaf else []
        return tree.is_on(self.paths[session], seq)


class ScanPlace(NamedTuple):
    """The position of a scan: in the session at `session_index`, before the entry at `before`."""

    sessions: list[Any]
    session_index: int = 0
    before: int = 2**62  # above every seq


class WordIndex(Protocol):
    """The index of one kind of database; if it is `exact`, every candidate matches."""

    exact: bool

    def indexed(self, payload: bytes) -> str | None:
        """Return the text that is indexed of an entry; None if it cannot be indexed."""
        ...

    def candidates(
        self, tables: Tables, query: str, scope: Scope, limit: int, *, whole: bool
    ) -> Iterable[Key]:
        """Yield the entries that have every word of a query, `whole` or as a beginning, the best first.

        Some may be outside the scope, and there may be more than `limit`.
        """
        ...

    def partial_hits(
        self, tables: Tables, query: str, scope: Scope, limit: int, known: Sequence[Hit]
    ) -> list[Hit]:
        """Return the best messages with any word of the query that are not `known`."""
        ...


def scope(tables: Tables, session: str | None, *, on_path: bool) -> Scope | None:
    """Return the scope of a search; None for an unknown session."""
    row = tables.session(session) if session is not None else None
    if session is not None and row is None:
        return None
    return Scope(row.key if row else None, on_path, {})


def sessions_behind(tables: Tables, scope: Scope) -> list[Any]:
    """Return the sessions in the scope that have messages not indexed yet."""
    return [key for (key,) in tables.database.rows("sessions_behind", session=scope.session)]


def index_more(tables: Tables, words: WordIndex, session: Any) -> bool:
    """Index the next messages of a session; return whether there are more."""
    database = tables.database
    indexed, entries, begun = database.row("indexed_upto", session=session) or (0, 0, None)
    if indexed >= entries:
        return False
    upto = min(indexed + _BATCH, entries)
    rows = [
        {"session": session, "seq": seq, "words": words.indexed(payload)}
        for seq, payload in database.rows("searched", session=session, first=indexed + 1, last=upto)
    ]
    with database.transaction():  # if several callers do this at once, one of them succeeds
        if database.change("set_indexed", session=session, before=indexed, upto=upto, begun=begun):
            database.insert("index_message", rows)
    return upto < entries


def full_hits(tables: Tables, words: WordIndex, query: str, scope: Scope, limit: int) -> list[Hit]:
    """Return the best messages with every word of the query: whole words first, then beginnings of words."""
    hits: dict[Key, Hit] = {}
    for whole in (True, False):
        for key in words.candidates(tables, query, scope, limit, whole=whole):
            if len(hits) == limit:
                break
            if key not in hits and scope.covers(tables, *key):
                found = hit(tables, key, query, whole=None if words.exact else whole)
                hits |= {key: found} if found is not None else {}
    return list(hits.values())


def start_of_scan(tables: Tables, scope: Scope) -> ScanPlace:
    """Return where a scan begins: at the newest message of the session that was last updated."""
    if scope.session is not None:
        return ScanPlace([scope.session])
    return ScanPlace([key for (key,) in tables.database.rows("newest_keys")])


def scan(
    tables: Tables, query: str, scope: Scope, place: ScanPlace, limit: int
) -> tuple[list[Hit], ScanPlace | None]:
    """Search one page of messages for the words anywhere in them, the newest of each session first.

    Returns the hits and the next place; None at the end.
    """
    patterns = search.byte_patterns(query)
    hits: list[Hit] = []
    remaining = _PAGE
    while place.session_index < len(place.sessions) and remaining > 0:
        session, count = place.sessions[place.session_index], remaining
        rows = tables.database.rows("searched_before", session=session, before=place.before, count=count)
        for seq, payload in rows:
            plain = searchable_bytes(payload)  # decoding a payload costs far more than searching its bytes
            if plain is not None and not all(pattern.search(plain) for pattern in patterns):
                continue
            if (
                len(hits) < limit
                and scope.covers(tables, session, seq)
                and search.contains(search.stored_text(payload), query)
            ):
                hits += [found] if (found := hit(tables, (session, seq), query)) else []
        remaining -= 1 + len(rows)
        if len(rows) == count:
            place = place._replace(before=rows[-1][0])
        else:
            place = ScanPlace(place.sessions, place.session_index + 1)
    return hits, place if place.session_index < len(place.sessions) else None


def hit(
    tables: Tables, key: Key, query: str, *, whole: bool | None = None, partial: bool = False
) -> Hit | None:
    """Return the hit for an entry; None if it was deleted, is damaged, or does not have the words.

    The words must be `whole` or may be beginnings of words; None: they are not checked again.
    """
    row = tables.database.row("found", session=key[0], seq=key[1])
    entry = search.readable(row[2]) if row is not None else None
    if row is None or entry is None:
        return None
    if whole is not None and not search.has_words(search.searchable(entry), query, whole=whole):
        return None
    return search.hit(row[0], row[1], entry, query, partial=partial)
