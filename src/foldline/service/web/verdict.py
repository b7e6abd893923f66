"""The verdict of a replay in a sentence, and its plot of price against retention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from foldline.service.jobs.replay_records import NONE, ComparedPolicy
from foldline.service.web.rendering import money, plural, short

MEASURE: Final = "steps"  # the measure of retention that is compared
WIDTH, HEIGHT = 640.0, 300.0  # of the drawing, without its margins
LABEL: Final = 15.0  # between two labels
ENOUGH: Final = 0.005  # the smallest difference of retention that shows in the table


class Judged(msgspec.Struct, frozen=True):
    """The cost of a policy, and the share that it keeps of what later steps needed.

    `cost` is in USD (cached prices and summaries), or in input tokens if a price is unknown. `kept` is None
    if it was not measured at every cut, because it would look too good. `less` is the share of cost saved.
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
    """Return the figures of each policy, including the one without folds."""
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
    """Return the conclusion of a replay; "" if nothing folded."""
    conclusion = _compared(rows)
    over = sum(row.counts.get("overflows", 0) for row in rows if row.policy == NONE)
    if not conclusion or not over:
        return conclusion
    return f"{conclusion} Without folds, {plural(over, 'request')} would not have fit."


def _compared(rows: Sequence[ComparedPolicy]) -> str:
    folded = {row.policy for row in rows if row.counts["compactions"] or row.counts["prunes"]}
    policies = [policy for policy in judged(rows) if policy.name in folded]
    if not policies:
        return ""
    cost = money if priced(rows) else _tokens
    cheapest = min(policies, key=lambda policy: policy.cost)
    measured = [policy for policy in policies if policy.kept is not None]
    most = max((policy.kept or 0.0 for policy in measured), default=0.0)
    enough = [policy for policy in measured if (policy.kept or 0.0) > most - ENOUGH]
    best = min(enough, key=lambda policy: policy.cost, default=None)
    if len(policies) == 1:
        return f"{_costs(cheapest, cost)}{_keeps(cheapest, ' and')}."
    if best is None:
        return f"{_costs(cheapest, cost)}: the cheapest. What it keeps was not measured at every place."
    if best.name == cheapest.name:
        return f"{_costs(best, cost)}: the cheapest, and it keeps most, {_kept(best)}."
    dearer = f"{best.name} keeps most, {_kept(best)}, for {cost(best.cost)}{_less(best)}."
    return f"{dearer} {_costs(cheapest, cost)}: the cheapest{_keeps(cheapest, ', and it')}."


def _tokens(count: float) -> str:
    return f"{short(count)} input tokens"


def _costs(policy: Judged, cost: Callable[[float], str]) -> str:
    return f"{policy.name} costs {cost(policy.cost)}{_less(policy)}"


def _less(policy: Judged) -> str:
    if policy.less is None:
        return ""
    return f", {abs(policy.less):.0%} {'less' if policy.less >= 0 else 'more'} than without folds"


def _keeps(policy: Judged, joined: str) -> str:
    return "" if policy.kept is None else f"{joined} keeps {_kept(policy)}"


def _kept(policy: Judged) -> str:
    return f"{policy.kept:.2f} of what later steps needed"


# ---- the plot


class Point(msgspec.Struct, frozen=True):
    """A policy in the plot; `best` if no other policy is as cheap and keeps as much."""

    name: str
    x: float
    y: float
    label_y: float
    leftwards: bool
    best: bool
    text: str


class Scatter(msgspec.Struct, frozen=True):
    """The plot of price against retention: its points, and the labels of both axes."""

    points: list[Point]
    low: str
    high: str
    bottom: str
    top: str
    axis: str


def scatter(rows: Sequence[ComparedPolicy]) -> Scatter | None:
    """Return the plot; None for fewer than two measured policies."""
    shown = [policy for policy in judged(rows) if policy.kept is not None]
    if len(shown) < 2:
        return None
    in_usd = priced(rows)
    cost = money if in_usd else short
    dearest = max(policy.cost for policy in shown) or 1.0
    least = min(policy.kept or 0.0 for policy in shown)
    bottom = max(0.0, (int(least * 10) - 1) / 10)
    points: list[Point] = []
    for policy in sorted(shown, key=lambda policy: -(policy.kept or 0.0)):
        x = WIDTH * policy.cost / (1.1 * dearest)
        y = HEIGHT * (1.0 - ((policy.kept or 0.0) - bottom) / (1.0 - bottom))
        others = [other.label_y for other in points if abs(other.x - x) < WIDTH / 4]
        label = max([y, *(other + LABEL for other in others if other > y - LABEL)])
        dominated = any(
            other is not policy and other.cost <= policy.cost and (other.kept or 0.0) >= (policy.kept or 0.0)
            for other in shown
        )
        text = f"{policy.name}: {cost(policy.cost)}, keeps {policy.kept:.2f}"
        points.append(
            Point(
                policy.name, round(x, 1), round(y, 1), round(label, 1), x > 0.7 * WIDTH, not dominated, text
            )
        )
    axis = "price in USD, cached, with summaries" if in_usd else "input tokens of all calls"
    return Scatter(points, cost(0.0), cost(1.1 * dearest), f"{bottom:.1f}", "1.0", axis)


def left_out(rows: Sequence[ComparedPolicy]) -> str:
    """Say how many policies are not in the plot; "" if all are."""
    count = sum(policy.kept is None for policy in judged(rows))
    verb = "is" if count == 1 else "are"
    return (
        f"{plural(count, 'policy', 'policies')} {verb} not drawn: not measured at every place."
        if count
        else ""
    )
