"""The boundaries of a path: which of them hold, and where the view changed last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from foldline.core.log.entries import Boundary, Compacted, Entry, Lifted, Pruned


class Boundaries(msgspec.Struct, frozen=True):
    """What the boundaries of a path say of its view; places are indices of entries.

    `ids` are those of all, undone ones and their liftings included. `fold` is the place of the newest fold
    that holds, None where everything is kept; `prunes` are those that hold and came after it. `newest` is the
    place of the newest boundary that holds, `changes` are the places at which the view changed last.
    """

    ids: tuple[str, ...]
    fold: int | None
    prunes: tuple[Pruned, ...]
    newest: int | None
    changes: frozenset[int]


def read_boundaries(path: Sequence[Entry]) -> Boundaries:
    """Read the boundaries of a path."""
    out = undone(path)
    holding = [
        (place, entry)
        for place, entry in enumerate(path)
        if isinstance(entry, Compacted | Pruned) and entry.id not in out
    ]
    fold = next((place for place, entry in reversed(holding) if isinstance(entry, Compacted)), None)
    newest = holding[-1][0] if holding else None
    lifting = next((i for i in range(len(path) - 1, -1, -1) if isinstance(path[i], Lifted)), None)
    return Boundaries(
        ids=tuple(entry.id for entry in path if isinstance(entry, Boundary)),
        fold=fold,
        prunes=tuple(
            entry for place, entry in holding if isinstance(entry, Pruned) and (fold is None or place > fold)
        ),
        newest=newest,
        changes=frozenset(place for place in (newest, lifting) if place is not None),
    )


def undone(path: Iterable[Entry]) -> set[str]:
    """Return the ids of the boundaries of a path that are lifted: undone, and not redone."""
    state = {entry.target: entry.lifted for entry in path if isinstance(entry, Lifted)}
    return {target for target, lifted in state.items() if lifted}
