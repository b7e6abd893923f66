"""The content of drawings, without their form: panels of lines, stacked areas or bars, and their colours.

Colours are those that colour-blind people can tell apart too (Okabe and Ito, 2008), and greys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import isnan, nan
from typing import Literal

import msgspec

from foldline.core.compact.receipt import APART, in_window_order
from foldline.core.lab.composition import Composition, Share
from foldline.lab.report import PolicyReport, SessionReport

_Values = Callable[[PolicyReport], tuple[float, ...]]

MOST_BARS = 12
CUT_OFF = 1.5  # times the limit above which lines are not followed
FILLED_MOST = 3  # policies for which the drawing shows what fills the window
GREY = "#8a8f98"  # for `none`, the policy to compare with
_PALETTE = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#7a5cff", "#a0522d", "#b5a700", "#334155", "#e11d48", "#64748b"),
)
_OF_CATEGORY = {  # those of the web page, too
    "system prompt and tools": GREY,
    "system": GREY,
    "checkpoint": "#cc79a7",
    "user": "#0072b2",
    "assistant": "#009e73",
    "tool results": "#e69f00",
    "unanswered": "#a0522d",
}


class PlotLine(msgspec.Struct, frozen=True):
    """Named values; `marks` are the indices at which a boundary was made."""

    name: str
    values: tuple[float, ...]
    marks: tuple[int, ...] = ()


class Panel(msgspec.Struct, frozen=True):
    """One drawing: lines over `x`, areas stacked over `x`, or bars, one for each of `x`.

    `limit` is a level that must not be exceeded; a value that is missing is nan. Lines of one name have the
    same colour in all panels.
    """

    title: str
    unit: str
    kind: Literal["lines", "areas", "bars"]
    x: tuple[str, ...]
    lines: tuple[PlotLine, ...]
    x_title: str = ""
    limit: float | None = None


def replay_panels(report: SessionReport) -> list[Panel]:
    """Return the panels of a session's replays: context, tokens, price, and what fills the window."""
    turns = sorted({turn["turn"] for one in report.policies for turn in one.turns})
    x = tuple(str(turn) for turn in turns)
    panels = [
        _contexts(report),
        _panel("Input tokens, summed up", "tokens", x=x, report=report, values=_sum_of("input_tokens")),
    ]
    if all(one.totals["price"] is not None for one in report.policies):
        panels += [
            _panel("Price, summed up", "USD", x=x, report=report, values=_sum_of("price")),
            _panel(
                "Price with prompt caching, summed up",
                "USD",
                x=x,
                report=report,
                values=_sum_of("price_cached"),
            ),
        ]
    # it is unknown for a policy whose requests were too large
    filled = [one for one in report.policies if one.turns and all(turn.get("fills") for turn in one.turns)]
    drawn = filled[-FILLED_MOST:]  # those asked for last
    kinds = _kinds(drawn)
    return [*panels, *(_fills(one, kinds, turns, report.window) for one in drawn)]


def top_of(panel: Panel) -> float | None:
    """Return where the drawing ends: lines far above the limit would flatten the others; None: at the top."""
    values = [value for line in panel.lines for value in line.values if not isnan(value)]
    if panel.kind != "lines" or panel.limit is None or max(values, default=0.0) <= CUT_OFF * panel.limit:
        return None
    return CUT_OFF * panel.limit


def _panel(
    title: str,
    unit: str,
    *,
    x: tuple[str, ...],
    report: SessionReport,
    values: _Values,
) -> Panel:
    lines = tuple(
        PlotLine(one.policy, values(one), tuple(i for i, turn in enumerate(one.turns) if turn["boundaries"]))
        for one in report.policies
    )
    return Panel(title, unit, "lines", x, lines, "turn")


def _contexts(report: SessionReport) -> Panel:
    """Return the size of every call's request, with a mark at the call before which a boundary was made."""
    calls: dict[int, int] = {}  # of each turn, under the policy that made most
    for one in report.policies:
        for turn in one.turns:
            calls[turn["turn"]] = max(calls.get(turn["turn"], 0), len(turn.get("contexts", ())))
    places = [(turn, call) for turn in sorted(calls) for call in range(1, calls[turn] + 1)]
    lines = tuple(_calls(one, places) for one in report.policies)
    x = tuple(f"{turn}.{call}" for turn, call in places)
    return Panel("Context of every call", "tokens", "lines", x, lines, "turn.call", report.window)


def _calls(one: PolicyReport, places: Sequence[tuple[int, int]]) -> PlotLine:
    sizes = {
        (turn["turn"], call): float(size)
        for turn in one.turns
        for call, size in enumerate(turn.get("contexts", ()), start=1)
    }
    made = {(turn["turn"], mark["call"]) for turn in one.turns for mark in turn["boundaries"]}
    shown = tuple(index for index, place in enumerate(places) if place in sizes and place in made)
    return PlotLine(one.policy, tuple(sizes.get(place, nan) for place in places), shown)


def _sum_of(name: str) -> _Values:
    def summed(one: PolicyReport) -> tuple[float, ...]:
        return tuple(accumulate(float(turn[name]) for turn in one.turns))

    return summed


def _kinds(reports: Sequence[PolicyReport]) -> list[str]:
    """Return what fills a window, in the order in which it stands there."""
    filled = {
        kind for one in reports for turn in one.turns for kind, tokens in turn["fills"].items() if tokens
    }
    return in_window_order(filled)


def _fills(one: PolicyReport, kinds: Sequence[str], turns: Sequence[int], window: int) -> Panel:
    filled = [_scaled(turn["fills"], turn["baseline"]) for turn in one.turns]
    lines = tuple(PlotLine(kind, tuple(fills.get(kind, 0.0) for fills in filled)) for kind in kinds)
    title = f"What fills the window under {one.policy}"
    return Panel(title, "tokens", "areas", tuple(str(turn) for turn in turns), lines, "turn", window)


def _scaled(fills: dict[str, int], whole: int) -> dict[str, float]:
    """Scale our counts to the request's size in the model's tokens; the separate part keeps its size."""
    apart = min(fills.get(APART, 0), whole)
    rate = (whole - apart) / max(1, sum(fills.values()) - fills.get(APART, 0))
    return {kind: apart if kind == APART else tokens * rate for kind, tokens in fills.items()}


def composition_panels(found: Composition) -> list[Panel]:
    """Return the panels of where a session's tokens are."""
    turns = found.by_turn
    growth = tuple(accumulate(float(turn.tokens) for turn in turns))
    said = PlotLine("said so far", growth)
    over = Panel(
        "Tokens said, summed up",
        "tokens",
        "lines",
        tuple(str(t.index) for t in turns),
        (said,),
        "turn at message",
    )
    shares = (
        ("by role", found.by_role),
        ("by kind", found.by_kind),
        ("by tool", found.by_tool),
        ("by file", found.by_file),
    )
    return [*(_bars(title, rows) for title, rows in shares if rows), over]


def _bars(title: str, rows: Sequence[Share]) -> Panel:
    shown = rows[:MOST_BARS]
    values = tuple(float(row.tokens) for row in shown)
    return Panel(
        f"Tokens {title}", "tokens", "bars", tuple(row.name for row in shown), (PlotLine("tokens", values),)
    )


def colours(panels: Iterable[Panel]) -> dict[str, str]:
    """Return a colour for every line name, the same in all panels; a category has its own in all drawings."""
    known = {"none": GREY, **_OF_CATEGORY}
    names = dict.fromkeys(line.name for panel in panels for line in panel.lines if line.name not in known)
    found = {name: _PALETTE[index % len(_PALETTE)] for index, name in enumerate(names)}
    return {**found, **known}
