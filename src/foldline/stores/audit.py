"""Check that a database holds exactly what was appended: the checks common to all databases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from foldline.core.log.entries import Entry
from foldline.core.log.log import verify as verify_chain
from foldline.errors import SessionNotFound, StoreCorrupt
from foldline.stores import tree
from foldline.stores.rows import unpack
from foldline.stores.tables import Tables
from foldline.stores.tree import Place

_PAGE: Final = 1_000  # rows read in one step


def audit_sessions(tables: Tables) -> Iterator[str]:
    """Yield a line for each problem of every session."""
    for info in tables.sessions():
        try:
            yield from audit_session(tables, info.id)
        except SessionNotFound:
            if all(info.id != other.id for other in tables.sessions()):
                continue  # it was purged meanwhile
            yield f"session {info.id}: its id is not as it was stored"


def audit_session(tables: Tables, session: str) -> list[str]:
    """Return a line for each problem of one session; raises SessionNotFound."""
    with tables.database.snapshot():
        row = tables.known_session(session)
        problems: list[str] = []
        if row.leaf is not None and row.place is None:
            problems.append(f"its leaf {row.leaf} is missing")
        count, last = tables.database.row("count_entries", session=row.key) or (0, 0)
        if (count, last) != (row.entries, row.entries):
            problems.append(f"it has {count} entries, the last one number {last}, not {row.entries}")
        upto = max(number for number in (count, last, row.entries) if isinstance(number, int))
        chain = verify_chain(_entries(tables, row.key, upto, problems))
    return [f"session {session}: {line}" for line in (*problems, *chain)]


def _entries(tables: Tables, session: Any, upto: int, problems: list[str]) -> Iterator[Entry]:
    """Yield the entries in append order, and add the problems of their rows to `problems`."""
    for id_, parent, kind, payload, *numbers in _rows(tables, session, upto):
        stored, parent_place = Place(*numbers[:7]), Place(*numbers[7:])
        try:
            entry = unpack(payload)
        except StoreCorrupt as error:
            problems.append(f"{id_}: {error}")
            continue
        if (entry.id, entry.parent, tree.kind(entry)) != (id_, parent, kind):
            problems.append(f"{id_}: its row does not match the entry")
        problems += _check_place(tables, session, entry, parent_place, stored)
        yield entry


def _rows(tables: Tables, session: Any, upto: int) -> Iterator[tuple[Any, ...]]:
    for first in range(1, upto + 1, _PAGE):
        yield from tables.database.rows(
            "rows_to_verify", session=session, first=first, last=first + _PAGE - 1
        )


def _check_place(tables: Tables, session: Any, entry: Entry, parent_place: Place, stored: Place) -> list[str]:
    """Return the problems of an entry's place; `parent_place` is all None without a parent."""
    numbers: list[object] = [
        parent_place.seq or 0,
        stored.seq,
        stored.segment,
        stored.messages,
        stored.tokens,
        stored.compactions,
    ]  # SQLite allows text in an INTEGER column
    if not all(isinstance(number, int) for number in numbers):
        return [f"{entry.id}: its row, or its parent's, has a value that is not a number"]
    parent = parent_place if parent_place.seq else None
    if parent is not None and parent.seq >= stored.seq:
        return [f"{entry.id}: its parent comes later"]
    try:
        expected = tree.place(entry, stored.seq, parent, partial(tables.events, session, parent))
    except (StoreCorrupt, TypeError) as error:  # a parent's row may hold text in place of a number
        return [f"{entry.id}: {error}"]
    wrong = [name for name in Place._fields if getattr(expected, name) != getattr(stored, name)]
    return [f"{entry.id}: wrong {', '.join(wrong)} in its row"] if wrong else []
