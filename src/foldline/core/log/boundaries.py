"""The boundaries of a path: which of them hold, and which are undone."""

from __future__ import annotations

from collections.abc import Iterable

from foldline.core.log.entries import Entry, Lifted


def undone(path: Iterable[Entry]) -> set[str]:
    """Return the ids of the boundaries of a path that are lifted: undone, and not redone."""
    state = {entry.target: entry.lifted for entry in path if isinstance(entry, Lifted)}
    return {target for target, lifted in state.items() if lifted}
