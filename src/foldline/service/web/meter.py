"""The context meter and its course, as shapes: the templates draw them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from foldline.core.compact.receipt import in_window_order
from foldline.service.api.boundaries import TimePoint
from foldline.service.api.history import ShownMessage, StatsResult
from foldline.service.web.shown import who
from foldline.session.recall import HIDDEN
from foldline.session.view import Stats

KINDS: Final = {  # the category and the name of its colour
    "system prompt and tools": "system",
    "system": "system",
    "checkpoint": "checkpoint",
    "user": "user",
    "assistant": "assistant",
    "tool results": "results",
    "unanswered": "other",
}
PROMPT, TOOLS = "system prompt", "tools"  # given apart from the messages
APART: Final = {PROMPT: "system", TOOLS: "toolset"}
WIDTH, HEIGHT = 1_000.0, 220.0  # of the plot, in its own units
WARM, HOT, FULL = 0.70, 0.85, 0.95  # of what may be used


class Segment(msgspec.Struct, frozen=True):
    """A part of the window: its category, colour, tokens, and place in percent."""

    name: str
    colour: str
    tokens: int
    start: float
    width: float


class WindowMeter(msgspec.Struct, frozen=True):
    """How much of the window the next request takes; `limit` is the place of what may be used, in percent.

    What is larger than the window fills the whole meter, and the limit stands further left. `free` may still
    be used, `reserve` is left to the reply. `turns` is after how many it is folded by itself, about; None: it
    never is, or that cannot be told.
    """

    used: int
    usable: int
    window: int
    share: float
    level: str
    limit: float
    segments: list[Segment]
    free: int
    reserve: int
    turns: int | None


def meter(figures: StatsResult, newest: Sequence[ShownMessage]) -> WindowMeter:
    """Return the meter of a session; by its `newest` messages it is told how fast it grows."""
    stats = figures.stats
    window = max(stats.window.context, 1)
    whole = max(window, stats.context_tokens)
    usable = max(stats.usable, 1)
    apart = {PROMPT: figures.system_tokens, TOOLS: figures.tool_tokens}
    sizes = {**apart, **{name: stats.by_category[name] for name in in_window_order(stats.by_category)}}
    scale = stats.context_tokens / max(sum(sizes.values()), 1)  # usage counts, categories estimate
    share = stats.context_tokens / usable
    levels = ((FULL, "full"), (HOT, "hot"), (WARM, "warm"))
    return WindowMeter(
        used=stats.context_tokens,
        usable=stats.usable,
        window=window,
        share=share,
        level=next((name for least, name in levels if share >= least), "cool"),
        limit=min(100.0, 100 * usable / whole),
        segments=segmented({name: size * scale for name, size in sizes.items()}, whole),
        free=max(0, usable - stats.context_tokens),
        reserve=max(0, window - max(usable, stats.context_tokens)),
        turns=turns_left(stats.context_tokens, figures.folds_at, newest),
    )


def segmented(sizes: Mapping[str, float], whole: int) -> list[Segment]:
    """Return sizes as parts of a bar that stands for the `whole`, one behind the other."""
    found: list[Segment] = []
    place = 0.0
    for name, size in sizes.items():
        if name in APART and not size:
            continue
        width = max(0.0, min(100 * size / max(whole, 1), 100 - place))
        found.append(Segment(name, APART.get(name) or KINDS.get(name, "other"), round(size), place, width))
        place += width
    return found


def turns_left(used: int, folds_at: int | None, newest: Sequence[ShownMessage]) -> int | None:
    """Return after how many turns of the size of the newest ones it is folded; None where none is known."""
    sent = [one for one in newest if one.how not in HIDDEN]
    turns = sum(who(one) == "user" for one in sent)
    growth = sum(one.tokens for one in sent)
    if folds_at is None or not turns or not growth:
        return None
    return max(0, math.ceil((folds_at - used) * turns / growth))


class Area(msgspec.Struct, frozen=True):
    """One category over time: the outline of its area."""

    name: str
    colour: str
    points: str


class Course(msgspec.Struct, frozen=True):
    """The view's size over the messages: stacked areas, folds, and a line at what may be used.

    `folds` are their places, `most` is the height of the plot in tokens, `highest` the largest size, `now`
    the newest one.
    """

    areas: list[Area]
    folds: list[float]
    usable: float
    most: int
    highest: int
    now: int
    messages: int


def course(points: Sequence[TimePoint], stats: Stats) -> Course:
    """Return the plot of a timeline: each size as it was counted, the newest as the meter shows it."""
    totals = [point.tokens for point in points[:-1]] + [stats.context_tokens] * bool(points)
    sizes = [_of_total(point.by_category, total) for point, total in zip(points, totals, strict=True)]
    highest = max((round(sum(size.values())) for size in sizes), default=0)
    most = max(highest, stats.usable, 1)
    last = max(len(points) - 1, 1)
    places = [WIDTH * number / last for number in range(len(points))]
    floor = [0.0] * len(points)
    areas: list[Area] = []
    known = {name for size in sizes for name in size}
    for name in in_window_order(known):
        top = [low + size.get(name, 0) for low, size in zip(floor, sizes, strict=True)]
        outline = [*zip(places, top, strict=True), *reversed(list(zip(places, floor, strict=True)))]
        drawn = " ".join(f"{x:.1f},{_y(size, most):.1f}" for x, size in outline)
        areas.append(Area(name, KINDS.get(name, "other"), drawn))
        floor = top
    folds = [x for x, point in zip(places, points, strict=True) if point.boundary]
    now = round(sum(sizes[-1].values())) if sizes else 0
    messages = points[-1].message if points else 0
    return Course(areas, folds, _y(stats.usable, most), most, highest, now, messages)


class Slice(msgspec.Struct, frozen=True):
    """A part of the plot that leads to a message: where it begins, and how long it is."""

    entry: str
    message: int
    tokens: int
    start: float
    length: float


def slices(points: Sequence[TimePoint], most: int = 40) -> list[Slice]:
    """Return the plot in so many parts of one length, each with the message in its middle."""
    count = min(most, len(points))
    found: list[Slice] = []
    for number in range(count):
        point = points[(2 * number + 1) * len(points) // (2 * count)]
        start = WIDTH * number / count
        found.append(Slice(point.entry, point.message, point.tokens, start, WIDTH / count))
    return found


def _of_total(by_category: dict[str, int], total: int) -> dict[str, float]:
    """Return estimated sizes so that together they are what was counted."""
    scale = total / max(sum(by_category.values()), 1)
    return {kind: size * scale for kind, size in by_category.items()}


def _y(size: float, most: float) -> float:
    return HEIGHT - HEIGHT * size / most
