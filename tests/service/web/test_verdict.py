"""What a replay comes to, in words and as a drawing."""

from __future__ import annotations

import msgspec
import pytest

from foldline.service.jobs.replay_records import ComparedPolicy
from foldline.service.web.verdict import HEIGHT, LABEL, WIDTH, left_out, scatter, verdict


def row(policy, cost, kept, *, scored=2, folds=3, price=True):
    return ComparedPolicy(
        policy,
        int(cost * 1_000_000),
        None,
        {"price": 9.0, "price_cached": cost - 0.1, "price_summaries": 0.1}
        if price
        else {"price_cached": None},
        {"compactions": 0 if policy == "none" else folds, "prunes": 0},
        {"handle": 0.5, "steps": kept},
        scored,
        2,
    )


NONE = row("none", 4.0, 1.0)
NEEDED = "of what later steps needed"


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [NONE, row("foldline", 2.0, 0.9), row("pi", 1.0, 0.4)],
            (
                f"foldline keeps most, 0.90 {NEEDED}, for $2.00, 50% less than without folds. "
                f"pi costs $1.00, 75% less than without folds: the cheapest, and it keeps 0.40 {NEEDED}."
            ),
        ),
        (
            [NONE, row("foldline", 1.0, 0.9), row("pi", 5.0, 0.4)],
            (
                "foldline costs $1.00, 75% less than without folds: the cheapest, and it keeps most, "
                f"0.90 {NEEDED}."
            ),
        ),
        ([row("foldline", 1.0, 0.9)], f"foldline costs $1.00 and keeps 0.90 {NEEDED}."),
        ([NONE, row("pi", 5.0, None)], "pi costs $5.00, 25% more than without folds."),
        (
            [row("pi", 5.0, 0.9, scored=1), row("foldline", 6.0, 0.8, scored=1)],
            "pi costs $5.00: the cheapest. What it keeps was not measured at every place.",
        ),
        (
            [row("none", 4.0, 1.0, price=False), row("pi", 1.0, 0.5, price=False)],
            f"pi costs 1.0M input tokens, 75% less than without folds and keeps 0.50 {NEEDED}.",
        ),
        ([NONE, row("foldline", 4.0, 1.0, folds=0)], ""),
        ([], ""),
    ],
)
def test_the_verdict_says_who_keeps_most_and_who_is_cheapest(rows, told):
    assert verdict(rows) == told


def test_the_verdict_says_where_nothing_would_have_gone_on_without_folds():
    over = msgspec.structs.replace(NONE, counts={**NONE.counts, "overflows": 41})
    told = verdict([over, row("pi", 5.0, None)])
    assert told.endswith("than without folds. Without folds, 41 requests would not have fit.")


def test_the_drawing_has_each_policy_at_its_place_and_no_label_over_another():
    rows = [NONE, row("a", 2.0, 0.6), row("b", 2.01, 0.601), row("c", 3.0, 0.5), row("d", 1.0, 0.9, scored=1)]
    drawn = scatter(rows)
    points = {one.name: one for one in drawn.points}
    assert set(points) == {"none", "a", "b", "c"}
    assert left_out(rows) == "1 policy is not drawn: not measured at every place."
    assert points["none"].y == 0
    assert points["c"].y == pytest.approx(HEIGHT * 0.5 / 0.6, abs=0.1)
    assert points["a"].x < points["c"].x < points["none"].x < WIDTH
    assert {name for name, one in points.items() if one.best} == {"none", "a", "b"}
    assert abs(points["a"].label_y - points["b"].label_y) >= LABEL
    assert points["none"].leftwards
    assert scatter(rows[:1]) is None
    assert scatter([row("a", 1.0, 1.0), row("b", 1.0, 1.0)]).bottom == "0.9"
