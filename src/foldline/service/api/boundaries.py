"""What folding has done to a session: its boundaries, the newest ledger, and the view's size as it grew."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from foldline.core.compact.receipt import APART
from foldline.core.log.entries import Compacted, Entry, Lifted, Pruned, Said
from foldline.core.log.log import undone
from foldline.core.measure.accounting import is_credible, real_usage
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState, category, sized
from foldline.service.api.history import ShownBoundary, shown_boundary
from foldline.service.api.operation import ApiCall, operation
from foldline.service.api.sessions import AT
from foldline.waiting import EACH, aside

POINTS: Final = 400  # of a timeline; of a longer one every so-and-so-many message is told
COUNTED: Final = 20  # boundaries that no receipt tells of, and that the view is counted behind: the newest
Sizes = dict[str, int]


class BoundaryList(msgspec.Struct, frozen=True):
    """The boundaries of the path, oldest first."""

    boundaries: list[ShownBoundary]


class LedgerResult(msgspec.Struct, frozen=True):
    """What the newest standing checkpoint says: its summary, and the facts that code took, by kind."""

    entry: str | None
    summary: str
    ledger: dict[str, Any]


class TimePoint(msgspec.Struct, frozen=True):
    """The size of the view behind a message, in tokens by category; `boundary` is one that stands there.

    `tokens` is the size as the provider counted it for the newest reply since a boundary, and estimates of
    what came after; the categories are estimates.
    """

    entry: str
    message: int
    by_category: dict[str, int]
    boundary: str | None = None
    tokens: int = 0


class Timeline(msgspec.Struct, frozen=True):
    """How the view grew and was folded; system prompt and tools are not in it."""

    points: list[TimePoint]


@operation("GET", f"{AT}/boundaries")
async def list_boundaries(call: ApiCall) -> BoundaryList:
    """List the compactions and prunes of a session, with their receipts."""
    kinds = ("compacted", "pruned", "lifted")
    marks = await call.session.store.marks(call.session.id, kinds=kinds)
    out = undone(marks)
    made = [entry for entry in marks if isinstance(entry, Compacted | Pruned)]
    return BoundaryList([shown_boundary(entry, out) for entry in made])


@operation("GET", f"{AT}/ledger")
async def read_ledger(call: ApiCall) -> LedgerResult:
    """Show the facts that the newest checkpoint holds."""
    marks = await call.session.store.marks(call.session.id, kinds=("compacted", "lifted"))
    out = undone(marks)
    for entry in reversed(marks):
        if isinstance(entry, Compacted) and entry.id not in out:
            return LedgerResult(entry.id, entry.checkpoint.summary, entry.ledger)
    return LedgerResult(None, "", {})


@operation("GET", f"{AT}/timeline")
async def read_timeline(call: ApiCall) -> Timeline:
    """Tell how the view grew and was folded, in tokens by category."""
    path = [entry async for entry in call.session.store.path(call.session.id)]
    points = await aside(EACH * len(path), partial(sizes, path, call.session.setup.window))
    step = max(1, len(points) // POINTS)
    last = len(points) - 1
    kept = [one for n, one in enumerate(points) if n % step == 0 or one.boundary or n == last]
    return Timeline(kept)


def sizes(path: list[Entry], window: Window) -> list[TimePoint]:
    """Return the size of the view behind each message and boundary of a path; an undo takes a fold back."""
    found: list[TimePoint] = []
    now: Sizes = {}
    around: dict[str, tuple[Sizes, Sizes]] = {}  # before and behind each boundary
    untold = _untold(path)
    messages = 0
    counted: int | None = None  # by the provider, of the view as it stands
    for place, entry in enumerate(path):
        boundary = None
        if isinstance(entry, Said):
            messages += 1
            kind = category(entry)
            usage, sent = real_usage(entry.message), sum(now.values())
            now = {**now, kind: now.get(kind, 0) + entry.tokens}
            if usage is not None and is_credible(usage, sent, window):
                counted = usage.total
            elif counted is not None:
                counted += entry.tokens
        elif isinstance(entry, Compacted | Pruned):
            after = _told(entry) or (_counted(path[: place + 1]) if entry.id in untold else now)
            around[entry.id] = now, after
            now, counted, boundary = after, None, entry.id
        elif isinstance(entry, Lifted):
            if entry.target in around:
                before, after = around[entry.target]
                now = _moved(now, after, before) if entry.lifted else _moved(now, before, after)
            elif entry.id in untold:
                now = _counted(path[: place + 1])
            counted = None
        else:
            continue
        found.append(TimePoint(entry.id, messages, now, boundary, counted or sum(now.values())))
    return found


def _untold(path: list[Entry]) -> set[str]:
    """Return the newest boundaries and undos of a path behind which the view has to be counted."""
    made = {entry.id: entry for entry in path if isinstance(entry, Compacted | Pruned)}
    found = [
        entry.id
        for entry in path
        if (entry.id in made and not _told(made[entry.id]))
        or (isinstance(entry, Lifted) and entry.target not in made)
    ]
    return set(found[-COUNTED:])


def _told(boundary: Compacted | Pruned) -> Sizes:
    """Return the sizes behind a boundary by its receipt; that of another agent tells none."""
    told = boundary.receipt.by_category
    return {kind: size for kind, (_, size) in told.items() if size and kind != APART}


def _moved(now: Sizes, old: Sizes, new: Sizes) -> Sizes:
    """Return sizes in which one part is another one; what was said since stays."""
    moved = {kind: now.get(kind, 0) - old.get(kind, 0) + new.get(kind, 0) for kind in {**now, **new}}
    return {kind: size for kind, size in moved.items() if size > 0}


def _counted(path: list[Entry]) -> Sizes:
    """Return the sizes of the view at the end of a path."""
    found: Sizes = {}
    for kind, size in sized(ViewState(path, counter=OFFLINE).view()):
        found[kind] = found.get(kind, 0) + size
    return found
