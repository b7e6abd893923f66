"""The context meter and the plot of the view's size, as shapes for the templates."""

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

KINDS: Final = {  # the CSS class of each category
    "system prompt and tools": "system",
    "system": "system",
    "checkpoint": "checkpoint",
    "user": "user",
    "assistant": "assistant",
    "tool results": "results",
    "unanswered": "other",
}
PROMPT, TOOLS = "system prompt", "tools"  # sent apart from the messages
APART: Final = {PROMPT: "system", TOOLS: "toolset"}
WIDTH, HEIGHT = 1_000.0, 220.0  # of the plot
SLICES: Final = 40  # parts of it that can be clicked, at most
WARM, HOT, FULL = 0.70, 0.85, 0.95  # shares of the usable tokens


class Segment(msgspec.Struct, frozen=True):
    """A part of the window: its category, CSS class, tokens, and place in percent."""

    name: str
    colour: str
    tokens: int
    start: float
    width: float


class WindowMeter(msgspec.Struct, frozen=True):
    """How much of the window the next request takes; `limit` is the place of the usable tokens, in percent.

    A request larger than the window fills the whole meter, and the limit moves left. `free` tokens can still
    be used, `reserve` is for the reply. `turns` estimates the turns until an automatic fold (None: unknown).
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
    """Return the meter of a session; its `newest` messages show how fast it grows."""
    stats = figures.stats
    window = max(stats.window.context, 1)
    whole = max(window, stats.context_tokens)
    usable = max(stats.usable, 1)
    sizes = {PROMPT: figures.system_tokens, TOOLS: figures.tool_tokens}
    sizes |= {name: stats.by_category[name] for name in in_window_order(stats.by_category)}
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
    """Return sizes as consecutive parts of a bar of `whole` tokens."""
    segments: list[Segment] = []
    place = 0.0
    for name, size in sizes.items():
        if name in APART and not size:
            continue
        width = max(0.0, min(100 * size / max(whole, 1), 100 - place))
        segments.append(Segment(name, APART.get(name) or KINDS.get(name, "other"), round(size), place, width))
        place += width
    return segments


def turns_left(used: int, folds_at: int | None, newest: Sequence[ShownMessage]) -> int | None:
    """Return after how many turns like the newest ones the session folds; None if that is unknown."""
    sent = [message for message in newest if message.how not in HIDDEN]
    turns = sum(who(message) == "user" for message in sent)
    growth = sum(message.tokens for message in sent)
    if folds_at is None or not turns or not growth:
        return None
    return max(0, math.ceil((folds_at - used) * turns / growth))


class Area(msgspec.Struct, frozen=True):
    """The outline of one category's area in the plot."""

    name: str
    colour: str
    points: str


class Course(msgspec.Struct, frozen=True):
    """The view's size over the messages: stacked areas, the x of folds, and a line at the usable tokens.

    `most` is the height of the plot in tokens, `highest` the largest size, `now` the current one.
    """

    areas: list[Area]
    folds: list[float]
    usable: float
    most: int
    highest: int
    now: int
    messages: int


def course(points: Sequence[TimePoint], stats: Stats) -> Course:
    """Return the plot of a timeline; its last size is that of the meter."""
    totals = [point.tokens for point in points[:-1]] + [stats.context_tokens] * bool(points)
    sizes = [_scale(point.by_category, total) for point, total in zip(points, totals, strict=True)]
    highest = max((round(sum(size.values())) for size in sizes), default=0)
    most = max(highest, stats.usable, 1)
    last = max(len(points) - 1, 1)
    places = [WIDTH * number / last for number in range(len(points))]
    floor = [0.0] * len(points)
    areas: list[Area] = []
    for name in in_window_order({name for size in sizes for name in size}):
        top = [low + size.get(name, 0) for low, size in zip(floor, sizes, strict=True)]
        outline = [*zip(places, top, strict=True), *reversed(list(zip(places, floor, strict=True)))]
        corners = " ".join(f"{x:.1f},{_y(size, most):.1f}" for x, size in outline)
        areas.append(Area(name, KINDS.get(name, "other"), corners))
        floor = top
    folds = [x for x, point in zip(places, points, strict=True) if point.boundary]
    now = round(sum(sizes[-1].values())) if sizes else 0
    messages = points[-1].message if points else 0
    return Course(areas, folds, _y(stats.usable, most), most, highest, now, messages)


class Slice(msgspec.Struct, frozen=True):
    """A clickable part of the plot that leads to a message."""

    entry: str
    message: int
    tokens: int
    start: float
    length: float


def slices(points: Sequence[TimePoint]) -> list[Slice]:
    """Divide the plot into equal parts, each with the message in its middle."""
    count = min(SLICES, len(points))
    parts: list[Slice] = []
    for number in range(count):
        point = points[(2 * number + 1) * len(points) // (2 * count)]
        start = WIDTH * number / count
        parts.append(Slice(point.entry, point.message, point.tokens, start, WIDTH / count))
    return parts


def _scale(by_category: dict[str, int], total: int) -> dict[str, float]:
    """Scale estimated sizes to the counted total."""
    scale = total / max(sum(by_category.values()), 1)
    return {kind: size * scale for kind, size in by_category.items()}


def _y(size: float, most: float) -> float:
    return HEIGHT - HEIGHT * size / most
