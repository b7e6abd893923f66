"""What a replay comes to: a sentence, and price against retention as a drawing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from foldline.service.jobs.replay_records import NONE, ComparedPolicy
from foldline.service.web.rendering import money, plural, short

MEASURE: Final = "steps"  # of retention, by which policies are compared
WIDTH, HEIGHT = 640.0, 300.0  # of the drawing, without its margins
LABEL: Final = 15.0  # between two labels
ENOUGH: Final = 0.005  # a difference of retention that a reader sees in the table


class Judged(msgspec.Struct, frozen=True):
    """A policy with the two figures that are compared: what it costs, and what it keeps.

    `cost` is in USD, cached prices and summaries together, or in input tokens where no price is known.
    `kept` is None where it was not measured at every cut: it would look better than it is.
    """

    name: str
    cost: float
    kept: float | None
    less: float | None


def priced(rows: Sequence[ComparedPolicy]) -> bool:
    """Whether every policy has a price."""
    return bool(rows) and all(_price(row) is not None for row in rows)


def _price(row: ComparedPolicy) -> float | None:
    cached = row.prices.get("price_cached")
    return None if cached is None else cached + (row.prices.get("price_summaries") or 0.0)


def judged(rows: Sequence[ComparedPolicy]) -> list[Judged]:
    """Return what is compared of each policy, the one without folds included."""
    in_usd = priced(rows)
    costs = {row.policy: (_price(row) or 0.0) if in_usd else float(row.input_tokens) for row in rows}
    whole = costs.get(NONE)
    return [
        Judged(
            row.policy,
            costs[row.policy],
            row.retention.get(MEASURE) if row.cuts and row.scored == row.cuts else None,
            1 - costs[row.policy] / whole if whole and row.policy != NONE else None,
        )
        for row in rows
    ]


def verdict(rows: Sequence[ComparedPolicy]) -> str:
    """Return what a reader wants to know first; "" where nothing folded."""
    found = _compared(rows)
    over = sum(row.counts.get("overflows", 0) for row in rows if row.policy == NONE)
    if not found or not over:
        return found
    return f"{found} Without folds, {plural(over, 'request')} would not have fit."


def _compared(rows: Sequence[ComparedPolicy]) -> str:
    folded = {row.policy for row in rows if row.counts["compactions"] or row.counts["prunes"]}
    one_of = [one for one in judged(rows) if one.name in folded]
    if not one_of:
        return ""
    cost = money if priced(rows) else _tokens
    cheapest = min(one_of, key=lambda one: one.cost)
    measured = [one for one in one_of if one.kept is not None]
    most = max((one.kept or 0.0 for one in measured), default=0.0)
    best = min(
        (one for one in measured if (one.kept or 0.0) > most - ENOUGH), key=lambda one: one.cost, default=None
    )
    if len(one_of) == 1:
        return f"{_said(cheapest, cost)}{_keeps(cheapest, ' and')}."
    if best is None:
        return f"{_said(cheapest, cost)}: the cheapest. What it keeps was not measured at every place."
    if best.name == cheapest.name:
        return f"{_said(best, cost)}: the cheapest, and it keeps most, {_kept(best)}."
    dearer = f"{best.name} keeps most, {_kept(best)}, for {cost(best.cost)}{_less(best)}."
    return f"{dearer} {_said(cheapest, cost)}: the cheapest{_keeps(cheapest, ', and it')}."


def _tokens(count: float) -> str:
    return f"{short(count)} input tokens"


def _said(one: Judged, cost: Callable[[float], str]) -> str:
    return f"{one.name} costs {cost(one.cost)}{_less(one)}"


def _less(one: Judged) -> str:
    if one.less is None:
        return ""
    return f", {abs(one.less):.0%} {'less' if one.less >= 0 else 'more'} than without folds"


def _keeps(one: Judged, joined: str) -> str:
    return "" if one.kept is None else f"{joined} keeps {_kept(one)}"


def _kept(one: Judged) -> str:
    return f"{one.kept:.2f} of what later steps needed"


# ---- drawn


class Point(msgspec.Struct, frozen=True):
    """A policy as it is drawn; `best` says that no other one is cheaper and keeps as much."""

    name: str
    x: float
    y: float
    label_y: float
    leftwards: bool
    best: bool
    told: str


class Scatter(msgspec.Struct, frozen=True):
    """Price against retention: points, and the ends of both scales in words."""

    points: list[Point]
    low: str
    high: str
    bottom: str
    top: str
    axis: str


def scatter(rows: Sequence[ComparedPolicy]) -> Scatter | None:
    """Return the drawing; None for less than two policies that can be drawn."""
    shown = [one for one in judged(rows) if one.kept is not None]
    if len(shown) < 2:
        return None
    in_usd = priced(rows)
    cost = money if in_usd else short
    dearest = max(one.cost for one in shown) or 1.0
    least = min(one.kept or 0.0 for one in shown)
    bottom = max(0.0, (int(least * 10) - 1) / 10)
    placed: list[tuple[float, float, Judged]] = [
        (
            WIDTH * one.cost / (1.1 * dearest),
            HEIGHT * (1.0 - ((one.kept or 0.0) - bottom) / (1.0 - bottom)),
            one,
        )
        for one in shown
    ]
    points: list[Point] = []
    for x, y, one in sorted(placed, key=lambda place: place[1]):
        others = [other.label_y for other in points if abs(other.x - x) < WIDTH / 4]
        label = max([y, *(other + LABEL for other in others if other > y - LABEL)])
        dominated = any(
            other is not one and other.cost <= one.cost and (other.kept or 0.0) >= (one.kept or 0.0)
            for other in shown
        )
        told = f"{one.name}: {cost(one.cost)}, keeps {one.kept:.2f}"
        points.append(
            Point(one.name, round(x, 1), round(y, 1), round(label, 1), x > 0.7 * WIDTH, not dominated, told)
        )
    axis = "price in USD, cached, with summaries" if in_usd else "input tokens of all calls"
    return Scatter(points, cost(0.0), cost(1.1 * dearest), f"{bottom:.1f}", "1.0", axis)


def left_out(rows: Sequence[ComparedPolicy]) -> str:
    """Say how many policies are not drawn; "" where all are."""
    count = sum(1 for one in judged(rows) if one.kept is None)
    verb = "is" if count == 1 else "are"
    return (
        f"{plural(count, 'policy', 'policies')} {verb} not drawn: not measured at every place."
        if count
        else ""
    )
