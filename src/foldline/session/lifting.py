"""Which boundary an undo takes away, and which one a redo brings back."""

from __future__ import annotations

from foldline.core.compact.rebase import lifted
from foldline.core.log.entries import Lifted
from foldline.core.view import ViewState
from foldline.session.cursor import is_boundary


def to_undo(fold: ViewState) -> str | None:
    """Return the id of the newest boundary that counts; None without one."""
    path = fold.entries()
    out = lifted(path)
    return next((e.id for e in reversed(path) if is_boundary(e) and e.id not in out), None)


def to_redo(fold: ViewState) -> str | None:
    """Return the id of the boundary that was undone last; None where nothing is undone or a newer one counts."""
    path = fold.entries()
    out = lifted(path)
    undone = (e for e in reversed(path) if isinstance(e, Lifted) and e.lifted and e.target in out)
    found = next((e.target for e in undone), None)
    order = [entry.id for entry in path]
    effective = fold.boundary
    if found and effective is not None and order.index(found) < order.index(effective.id):
        return None
    return found
