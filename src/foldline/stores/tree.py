"""The path of an entry: what its row stores about it, and how a path is read from rows.

A *segment* is a run of entries with consecutive `seq`, each the child of the one before. A path is a chain
of segments, so that any part of it is read in a few ranges of `seq`, however long the history.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeGuard

from foldline.core.log.entries import Compacted, Entry, Lifted, Said
from foldline.errors import StoreCorrupt

SERVED: Final = "served"  # kind of the service's note on how it opens a session and who owns it
USER: Final = r"^[!-~]{1,256}$(?!\n)"  # a user's name
Spans = list[tuple[int, int]]  # ranges of seq, both ends included, in path order


class Place(NamedTuple):
    """Where an entry is stored, and totals of the path up to and including it.

    `seq` counts from 1 in a session; `segment` is the seq at which its segment starts, `joint` the seq of the
    parent of its first entry; `boundary` is the id of the newest effective `Compacted`.
    """

    seq: int
    segment: int
    joint: int | None
    boundary: str | None
    messages: int
    tokens: int
    compactions: int


def place(entry: Entry, seq: int, parent: Place | None, events: Callable[[], Iterable[Entry]]) -> Place:
    """Return the place of an entry appended under `parent`.

    `events` returns the Compacted and Lifted entries on the path up to the parent, in path order; it is
    called only if a boundary is lifted or restored.
    """
    continues = parent is not None and parent.seq == seq - 1
    boundary = parent.boundary if parent else None
    if isinstance(entry, Compacted):
        boundary = entry.id
    elif isinstance(entry, Lifted):
        boundary = effective([*events(), entry])
    return Place(
        seq=seq,
        segment=parent.segment if parent and continues else seq,
        joint=parent.joint if parent and continues else parent.seq if parent else None,
        boundary=boundary,
        messages=(parent.messages if parent else 0) + isinstance(entry, Said),
        tokens=(parent.tokens if parent else 0) + (entry.tokens if isinstance(entry, Said) else 0),
        compactions=(parent.compactions if parent else 0) + isinstance(entry, Compacted),
    )


def effective(events: Iterable[Entry]) -> str | None:
    """Return the id of the newest Compacted that is not lifted, from a path's events in path order."""
    compacted: list[str] = []
    lifted: dict[str, bool] = {}
    for event in events:
        if isinstance(event, Compacted):
            compacted.append(event.id)
        elif isinstance(event, Lifted):
            lifted[event.target] = event.lifted
    return next((id_ for id_ in reversed(compacted) if not lifted.get(id_, False)), None)


def spans(
    place_at: Callable[[int], Place], seq: int | None, first: int = 1, most: int | None = None
) -> Spans:
    """Return the ranges of seq of the path to `seq`, none before `first`; of its last `most` entries."""
    found: Spans = []
    while seq is not None and seq >= first and (most is None or most > 0):
        current = place_at(seq)
        start = max(current.segment, first, 1 if most is None else seq - most + 1)
        found.append((start, seq))
        most = most if most is None else most - (seq - start + 1)
        if current.joint is not None and current.joint >= current.segment:
            raise StoreCorrupt(
                f"entry {seq} follows {current.joint}, which comes later: run `foldline verify`"
            )
        seq = current.joint
    found.reverse()
    return found


def is_on(path: Spans, seq: int) -> bool:
    """Return whether the entry at `seq` is on the path."""
    return any(start <= seq <= end for start, end in path)


def kind(entry: Entry) -> str:
    """Return the kind of an entry: said, compacted, pruned, lifted, pinned or noted."""
    return str(entry.__struct_config__.tag)


def is_user(name: object) -> TypeGuard[str]:
    """Return whether a value is a valid user name."""
    return isinstance(name, str) and re.search(USER, name) is not None
