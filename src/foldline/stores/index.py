"""The full-text index of a store over a database: filled before a search, queried, and passed by.

It is derived from the log and filled outside the append. Where it finds nothing, messages are searched for
the words anywhere in them, without it. What differs between databases is a `WordIndex`.
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
    """What a search covers: one session or all (None), and only the path of each, or every branch."""

    session: Any | None
    on_path: bool
    paths: dict[Any, Spans]  # those that were looked at

    def holds(self, tables: Tables, session: Any, seq: int) -> bool:
        """Return whether the scope covers this entry."""
        if not self.on_path:
            return True
        if session not in self.paths:
            (leaf,) = tables.database.row("leaf_seq", session=session) or (None,)
            self.paths[session] = tables.spans(session, leaf) if leaf else []
        return tree.on(self.paths[session], seq)


class ScanPlace(NamedTuple):
    """Where a scan goes on: in the session at this index, before this seq."""

    sessions: list[Any]
    at: int = 0
    before: int = 2**62  # behind every seq


class WordIndex(Protocol):
    """The index of one kind of database; `exact` says that whatever it finds matches."""

    exact: bool

    def indexed(self, payload: bytes) -> str | None:
        """Return what the index holds of an entry."""
        ...

    def candidates(
        self, tables: Tables, query: str, scope: Scope, limit: int, *, whole: bool
    ) -> Iterable[Key]:
        """Yield the entries with every word of a query, whole or as a beginning, the best first.

        Some may lie outside the scope, and more than `limit` may come.
        """
        ...

    def some(self, tables: Tables, query: str, scope: Scope, limit: int, known: Sequence[Hit]) -> list[Hit]:
        """Return the best messages with any word of the query that are not `known`."""
        ...


def scope(tables: Tables, session: str | None, *, on_path: bool) -> Scope | None:
    """Return the scope of a search; None if there is no such session."""
    known = tables.session(session) if session is not None else None
    if session is not None and known is None:
        return None
    return Scope(known.key if known else None, on_path, {})


def behind(tables: Tables, scope: Scope) -> list[Any]:
    """Return the sessions in the scope of which not every message is indexed."""
    return [key for (key,) in tables.database.rows("sessions_behind", session=scope.session)]


def catch_up(tables: Tables, words: WordIndex, session: Any) -> bool:
    """Index the next messages of a session; return whether there are more."""
    database = tables.database
    indexed, entries = database.row("indexed_upto", session=session) or (0, 0)
    if indexed >= entries:
        return False
    upto = min(indexed + _BATCH, entries)
    rows = [
        {"session": session, "seq": seq, "words": words.indexed(payload)}
        for seq, payload in database.rows("searched", session=session, first=indexed + 1, last=upto)
    ]
    with database.transaction():  # of several at once one does it
        if database.change("set_indexed", session=session, before=indexed, upto=upto):
            database.insert("index_message", rows)
    return upto < entries


def matches(tables: Tables, words: WordIndex, query: str, scope: Scope, limit: int) -> list[Hit]:
    """Return the best messages with every word: those that hold it as it stands, then those that begin so."""
    hits: dict[Key, Hit] = {}
    for whole in (True, False):
        for at in words.candidates(tables, query, scope, limit, whole=whole):
            if len(hits) == limit:
                break
            if at not in hits and scope.holds(tables, *at):
                found = hit(tables, at, query, whole=None if words.exact else whole)
                hits |= {at: found} if found is not None else {}
    return list(hits.values())


def first_place(tables: Tables, scope: Scope) -> ScanPlace:
    """Return where a scan begins: behind the newest message of the session that was last updated."""
    if scope.session is not None:
        return ScanPlace([scope.session])
    return ScanPlace([key for (key,) in tables.database.rows("newest_keys")])


def scan(
    tables: Tables, query: str, scope: Scope, place: ScanPlace, limit: int
) -> tuple[list[Hit], ScanPlace | None]:
    """Look for the words anywhere in the messages of one page, the newest of each session first.

    Returns the hits and where to go on; None at the end.
    """
    rough = search.rough_patterns(query)
    hits: list[Hit] = []
    left = _PAGE
    while place.at < len(place.sessions) and left > 0:
        session = place.sessions[place.at]
        asked, left = left, left - 1
        rows = tables.database.rows("searched_before", session=session, before=place.before, count=asked)
        for seq, payload in rows:
            plain = searchable_bytes(payload)  # to decode a payload costs far more than to search its bytes
            if plain is not None and not all(pattern.search(plain) for pattern in rough):
                continue
            if (
                len(hits) < limit
                and scope.holds(tables, session, seq)
                and search.holds(search.stored_text(payload), query)
            ):
                hits += [found] if (found := hit(tables, (session, seq), query)) else []
        left -= len(rows)
        if len(rows) == asked:
            place = place._replace(before=rows[-1][0])
        else:
            place = ScanPlace(place.sessions, place.at + 1)
    return hits, place if place.at < len(place.sessions) else None


def hit(
    tables: Tables, at: Key, query: str, *, whole: bool | None = None, partial: bool = False
) -> Hit | None:
    """Return the hit for an entry; None where it is gone or damaged, or its words are not there after all.

    `whole` is how they must stand; None where that was seen already.
    """
    row = tables.database.row("found", session=at[0], seq=at[1])
    entry = search.readable(row[2]) if row is not None else None
    if row is None or entry is None:
        return None
    if whole is not None and not search.begins(search.searchable(entry), query, whole=whole):
        return None
    return search.hit(row[0], row[1], entry, query, partial=partial)
