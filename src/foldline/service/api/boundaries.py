"""What folding did to a session: its boundaries, the newest ledger, and the size of the view over time."""

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
from foldline.core.view import ViewState
from foldline.core.view_items import category, sizes_of
from foldline.service.api.history import ShownBoundary, shown_boundary
from foldline.service.api.operation import ApiCall, operation
from foldline.service.api.sessions import AT
from foldline.waiting import MESSAGE_BYTES, run_off_loop

POINTS: Final = 400  # of a timeline; a longer one is sampled
COUNTED: Final = 20  # the newest boundaries without sizes in a receipt: the view after them is counted
Sizes = dict[str, int]


class BoundaryList(msgspec.Struct, frozen=True):
    """The boundaries of the path, oldest first."""

    boundaries: list[ShownBoundary]


class LedgerResult(msgspec.Struct, frozen=True):
    """The newest checkpoint that was not undone: its summary, and the facts that code extracted, by kind."""

    entry: str | None
    summary: str
    ledger: dict[str, Any]


class TimePoint(msgspec.Struct, frozen=True):
    """The size of the view after a message, in tokens by category; `boundary` is the id of a boundary.

    `tokens` is what the provider counted for the newest reply since a boundary, plus estimates of what came
    after; the categories are estimates.
    """

    entry: str
    message: int
    by_category: dict[str, int]
    boundary: str | None = None
    tokens: int = 0


class Timeline(msgspec.Struct, frozen=True):
    """How the view grew and was folded, without system prompt and tools."""

    points: list[TimePoint]


@operation("GET", f"{AT}/boundaries")
async def list_boundaries(call: ApiCall) -> BoundaryList:
    """List the compactions and prunes of a session, with their receipts."""
    kinds = ("compacted", "pruned", "lifted")
    marks = await call.session.store.marks(call.session.id, kinds=kinds)
    lifted = undone(marks)
    entries = [entry for entry in marks if isinstance(entry, Compacted | Pruned)]
    return BoundaryList([shown_boundary(entry, lifted) for entry in entries])


@operation("GET", f"{AT}/ledger")
async def read_ledger(call: ApiCall) -> LedgerResult:
    """Show the facts in the newest checkpoint."""
    marks = await call.session.store.marks(call.session.id, kinds=("compacted", "lifted"))
    lifted = undone(marks)
    for entry in reversed(marks):
        if isinstance(entry, Compacted) and entry.id not in lifted:
            return LedgerResult(entry.id, entry.checkpoint.summary, entry.ledger)
    return LedgerResult(None, "", {})


@operation("GET", f"{AT}/timeline")
async def read_timeline(call: ApiCall) -> Timeline:
    """Show how the view grew and was folded, in tokens by category."""
    path = [entry async for entry in call.session.store.path(call.session.id)]
    points = await run_off_loop(MESSAGE_BYTES * len(path), partial(sizes, path, call.session.setup.window))
    step = max(1, len(points) // POINTS)
    last = len(points) - 1
    sample = [point for n, point in enumerate(points) if n % step == 0 or point.boundary or n == last]
    return Timeline(sample)


def sizes(path: list[Entry], window: Window) -> list[TimePoint]:
    """Return the size of the view after each message, boundary and undo of a path."""
    points: list[TimePoint] = []
    now: Sizes = {}
    around: dict[str, tuple[Sizes, Sizes]] = {}  # before and after each boundary
    without_sizes = _without_sizes(path)
    messages = 0
    counted: int | None = None  # tokens of the current view by the provider's count
    for place, entry in enumerate(path):
        boundary = None
        if isinstance(entry, Said):
            messages += 1
            kind = category(entry.message)
            usage, sent = real_usage(entry.message), sum(now.values())
            now = {**now, kind: now.get(kind, 0) + entry.tokens}
            if usage is not None and is_credible(usage, sent, window):
                counted = usage.total
            elif counted is not None:
                counted += entry.tokens
        elif isinstance(entry, Compacted | Pruned):
            after = _sizes_in(entry) or (_count(path[: place + 1]) if entry.id in without_sizes else now)
            around[entry.id] = now, after
            now, counted, boundary = after, None, entry.id
        elif isinstance(entry, Lifted):
            if entry.target in around:
                before, after = around[entry.target]
                now = _exchange(now, after, before) if entry.lifted else _exchange(now, before, after)
            elif entry.id in without_sizes:
                now = _count(path[: place + 1])
            counted = None
        else:
            continue
        points.append(TimePoint(entry.id, messages, now, boundary, counted or sum(now.values())))
    return points


def _without_sizes(path: list[Entry]) -> set[str]:
    """Return the newest boundaries and undos of a path after which the view has to be counted."""
    boundaries = {entry.id: entry for entry in path if isinstance(entry, Compacted | Pruned)}
    ids = [
        entry.id
        for entry in path
        if (entry.id in boundaries and not _sizes_in(boundaries[entry.id]))
        or (isinstance(entry, Lifted) and entry.target not in boundaries)
    ]
    return set(ids[-COUNTED:])


def _sizes_in(boundary: Compacted | Pruned) -> Sizes:
    """Return the sizes after a boundary from its receipt; a boundary of another agent has none."""
    sizes = boundary.receipt.by_category
    return {kind: size for kind, (_, size) in sizes.items() if size and kind != APART}


def _exchange(now: Sizes, old: Sizes, new: Sizes) -> Sizes:
    """Return sizes with one part replaced by another; later messages stay counted."""
    sizes = {kind: now.get(kind, 0) - old.get(kind, 0) + new.get(kind, 0) for kind in {**now, **new}}
    return {kind: size for kind, size in sizes.items() if size > 0}


def _count(path: list[Entry]) -> Sizes:
    """Return the sizes of the view at the end of a path."""
    return sizes_of(ViewState(path, counter=OFFLINE).items())
