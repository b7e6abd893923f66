"""The meter of the context: what fills it, what is free, and when it is folded."""

from __future__ import annotations

import pytest
from tests.service.api.client import FILLER

from foldline.agent.spending import Spending
from foldline.core.measure.window import Window
from foldline.lab.panels import colours
from foldline.service.api.boundaries import TimePoint
from foldline.service.api.history import ShownMessage, ShownPart, StatsResult
from foldline.service.web.meter import KINDS, meter, slices
from foldline.session.view import Stats


def figures(used=50_000, folds_at=90_000, **more):
    stats = Stats(
        total_messages=4,
        active_messages=4,
        summaries=0,
        compression_ratio=1.0,
        view_tokens=used,
        context_tokens=used,
        usable=100_000,
        window=Window(120_000),
        by_category={"user": 10_000, "assistant": 20_000},
    )
    return StatsResult(stats, Spending(), None, None, folds_at=folds_at, **more)


def said(role, tokens, how="kept"):
    return ShownMessage("e", role, how, FILLER, [], tokens, None, False, [ShownPart("text", FILLER)])


TURN = [said("user", 1_000), said("assistant", 4_000)]


def test_system_prompt_and_tools_are_named_beside_what_was_said():
    found = meter(figures(system_tokens=8_000, tool_tokens=12_000), TURN)
    assert [(one.name, one.tokens) for one in found.segments] == [
        ("system prompt", 8_000),
        ("tools", 12_000),
        ("user", 10_000),
        ("assistant", 20_000),
    ]
    assert sum(one.width for one in found.segments) == pytest.approx(100 * 50 / 120)
    assert (found.free, found.reserve) == (50_000, 20_000)
    assert [one.name for one in meter(figures(), TURN).segments] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("used", "folds_at", "newest", "turns"),
    [
        (50_000, 90_000, TURN, 8),
        (50_000, 90_000, [*TURN * 3, said("user", 90_000, "folded")], 8),
        (88_000, 90_000, TURN, 1),
        (95_000, 90_000, TURN, 0),
        (50_000, None, TURN, None),
        (0, 90_000, [], None),
    ],
)
def test_turns_until_a_fold_are_told_by_the_size_of_the_newest_ones(used, folds_at, newest, turns):
    assert meter(figures(used, folds_at), newest).turns == turns


def test_a_map_has_parts_of_one_length_that_lead_to_all_of_a_session():
    points = [TimePoint(f"e{number}", number + 1, {}, tokens=number) for number in range(95)]
    found = slices(points)
    assert len(found) == 40
    assert {one.length for one in found} == {25.0}
    assert found[0].entry in ("e0", "e1")
    assert found[-1].message in (94, 95)
    assert [one.entry for one in slices(points[:2])] == ["e0", "e1"]
    assert slices([]) == []


def test_the_page_and_the_drawings_of_the_lab_share_their_colours(browser):
    style = browser.http.get("/web/static/page.css").text
    known = colours([])
    for category, name in KINDS.items():
        assert f"--{name}: {known[category]};" in style
