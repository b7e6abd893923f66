"""The content of drawings: panels of lines, stacked areas or bars, and their colours.

The first six colours are distinguishable for colour-blind people (Okabe and Ito, 2008).
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
CUT_OFF = 1.5  # times the limit: higher values are cut off
FILLED_MOST = 3  # policies for which the parts of the window are drawn
GREY = "#8a8f98"  # for `none`, the policy without compactions
_PALETTE = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#7a5cff", "#a0522d", "#b5a700", "#334155", "#e11d48", "#64748b"),
)
_CATEGORY_COLOURS = {  # the web page has the same
    "system prompt and tools": GREY,
    "system": GREY,
    "checkpoint": "#cc79a7",
    "user": "#0072b2",
    "assistant": "#009e73",
    "tool results": "#e69f00",
    "unanswered": "#a0522d",
}


class PlotLine(msgspec.Struct, frozen=True):
    """Named values; `marks` are the indices of boundaries."""

    name: str
    values: tuple[float, ...]
    marks: tuple[int, ...] = ()


class Panel(msgspec.Struct, frozen=True):
    """One drawing: lines over `x`, areas stacked over `x`, or a bar for each of `x`.

    `limit` is drawn as a level that must not be exceeded; a missing value is nan. Lines with the same name
    have the same colour in all panels.
    """

    title: str
    unit: str
    kind: Literal["lines", "areas", "bars"]
    x: tuple[str, ...]
    lines: tuple[PlotLine, ...]
    x_title: str = ""
    limit: float | None = None


def replay_panels(report: SessionReport) -> list[Panel]:
    """Return the panels of a session's replays: context, tokens, price, and the parts of the window."""
    turns = sorted({turn["turn"] for policy in report.policies for turn in policy.turns})
    x = tuple(str(turn) for turn in turns)
    panels = [
        _contexts(report),
        _panel("Input tokens, cumulative", "tokens", x=x, report=report, values=_sum_of("input_tokens")),
    ]
    if all(policy.totals["price"] is not None for policy in report.policies):
        panels += [
            _panel("Price, cumulative", "USD", x=x, report=report, values=_sum_of("price")),
            _panel(
                "Price with prompt caching, cumulative",
                "USD",
                x=x,
                report=report,
                values=_sum_of("price_cached"),
            ),
        ]
    # a policy whose requests were too large has no `fills`
    filled = [
        policy
        for policy in report.policies
        if policy.turns and all(turn.get("fills") for turn in policy.turns)
    ]
    drawn = filled[-FILLED_MOST:]
    kinds = _kinds(drawn)
    return [*panels, *(_fills(policy, kinds, turns, report.window) for policy in drawn)]


def top_of(panel: Panel) -> float | None:
    """Return the highest value to draw, or None; lines far above the limit would flatten the others."""
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
        PlotLine(
            policy.policy,
            values(policy),
            tuple(i for i, turn in enumerate(policy.turns) if turn["boundaries"]),
        )
        for policy in report.policies
    )
    return Panel(title, unit, "lines", x, lines, "turn")


def _contexts(report: SessionReport) -> Panel:
    """Return the panel with the size of every request, with a mark at each call after a boundary."""
    calls: dict[int, int] = {}  # of each turn, under the policy with the most calls
    for policy in report.policies:
        for turn in policy.turns:
            calls[turn["turn"]] = max(calls.get(turn["turn"], 0), len(turn.get("contexts", ())))
    places = [(turn, call) for turn in sorted(calls) for call in range(1, calls[turn] + 1)]
    lines = tuple(_calls(policy, places) for policy in report.policies)
    x = tuple(f"{turn}.{call}" for turn, call in places)
    return Panel("Context of every call", "tokens", "lines", x, lines, "turn.call", report.window)


def _calls(report: PolicyReport, places: Sequence[tuple[int, int]]) -> PlotLine:
    sizes = {
        (turn["turn"], call): float(size)
        for turn in report.turns
        for call, size in enumerate(turn.get("contexts", ()), start=1)
    }
    boundaries = {(turn["turn"], mark["call"]) for turn in report.turns for mark in turn["boundaries"]}
    marks = tuple(index for index, place in enumerate(places) if place in sizes and place in boundaries)
    return PlotLine(report.policy, tuple(sizes.get(place, nan) for place in places), marks)


def _sum_of(name: str) -> _Values:
    return lambda report: tuple(accumulate(float(turn[name]) for turn in report.turns))


def _kinds(reports: Sequence[PolicyReport]) -> list[str]:
    """Return the kinds of parts in a window, in the order of the window."""
    filled = {
        kind
        for report in reports
        for turn in report.turns
        for kind, tokens in turn["fills"].items()
        if tokens
    }
    return in_window_order(filled)


def _fills(report: PolicyReport, kinds: Sequence[str], turns: Sequence[int], window: int) -> Panel:
    filled = [_scaled(turn["fills"], turn["baseline"]) for turn in report.turns]
    lines = tuple(PlotLine(kind, tuple(fills.get(kind, 0.0) for fills in filled)) for kind in kinds)
    title = f"Parts of the window under {report.policy}"
    return Panel(title, "tokens", "areas", tuple(str(turn) for turn in turns), lines, "turn", window)


def _scaled(fills: dict[str, int], whole: int) -> dict[str, float]:
    """Scale our counts to the request's size in the model's tokens; the part `APART` keeps its size."""
    apart = min(fills.get(APART, 0), whole)
    rate = (whole - apart) / max(1, sum(fills.values()) - fills.get(APART, 0))
    return {kind: apart if kind == APART else tokens * rate for kind, tokens in fills.items()}


def composition_panels(composition: Composition) -> list[Panel]:
    """Return the panels of a session's composition."""
    turns = composition.by_turn
    growth = PlotLine("tokens so far", tuple(accumulate(float(turn.tokens) for turn in turns)))
    x = tuple(str(turn.index) for turn in turns)
    total = Panel("Tokens, cumulative", "tokens", "lines", x, (growth,), "turn at message")
    shares = (
        ("by role", composition.by_role),
        ("by kind", composition.by_kind),
        ("by tool", composition.by_tool),
        ("by file", composition.by_file),
    )
    return [*(_bars(title, rows) for title, rows in shares if rows), total]


def _bars(title: str, rows: Sequence[Share]) -> Panel:
    shown = rows[:MOST_BARS]
    values = tuple(float(row.tokens) for row in shown)
    return Panel(
        f"Tokens {title}", "tokens", "bars", tuple(row.name for row in shown), (PlotLine("tokens", values),)
    )


def colours(panels: Iterable[Panel]) -> dict[str, str]:
    """Return a colour for every line name; categories have the same colour in all drawings."""
    fixed = {"none": GREY, **_CATEGORY_COLOURS}
    names = dict.fromkeys(line.name for panel in panels for line in panel.lines if line.name not in fixed)
    return {**{name: _PALETTE[index % len(_PALETTE)] for index, name in enumerate(names)}, **fixed}
