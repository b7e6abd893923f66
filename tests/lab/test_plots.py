from __future__ import annotations

import sys
from math import isnan
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
from tests.cli.calling import EXAMPLES, SESSION

from foldline.core.compact.receipt import APART
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import preset
from foldline.errors import FoldlineError, InputError
from foldline.lab.panels import GREY, _scaled, colours, replay_panels, top_of
from foldline.lab.plots import _shorten, draw
from foldline.lab.run import ReplaySetup, replay_file

pytestmark = pytest.mark.slow

NONE = Policy(name="none", enabled=False)
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def report():
    policies = (NONE, preset("coop"), preset("foldline"))
    return replay_file(str(EXAMPLES / "coop-trace.jsonl"), ReplaySetup(policies, fills=True))


def test_the_panels_hold_the_figures_of_the_report(report):
    panels = {panel.title: panel for panel in replay_panels(report)}
    context = panels["Context of every call"]
    assert [line.name for line in context.lines] == ["none", "coop", "foldline"]
    third = context.x.index("3.1")
    assert context.lines[0].values[third] == 58_884
    assert context.lines[1].marks[0] == third
    assert context.limit == 52_500
    assert len(context.x) == report.policies[0].totals["calls"], "no call is left out"
    for line, one in zip(context.lines, report.policies, strict=True):
        assert max(line.values) == one.totals["peak"]
        assert sum(line.values) == one.totals["input_tokens"]
    assert panels["Input tokens, cumulative"].lines[0].values[-1] == report.policies[0].totals["input_tokens"]
    assert panels["Price, cumulative"].lines[0].values[-1] == pytest.approx(
        report.policies[0].totals["price"], abs=0.01
    )
    filled = panels["Parts of the window under foldline"]
    baselines = [turn["baseline"] for turn in report.policies[2].turns]
    assert [
        sum(values) for values in zip(*(line.values for line in filled.lines), strict=True)
    ] == pytest.approx(baselines)


def test_of_a_context_that_never_fits_again_it_is_not_drawn_what_fills_it():
    """It was drawn as nothing: a window that empties where it overflows."""
    traced = str(EXAMPLES / "coop-trace.jsonl")
    small = replay_file(traced, ReplaySetup((NONE, preset("foldline")), window=30_000, fills=True))
    assert small.policies[0].totals["overflows"]
    titles = [panel.title for panel in replay_panels(small)]
    assert "Parts of the window under foldline" in titles
    assert "Parts of the window under none" not in titles


def test_what_fills_a_window_adds_up_to_the_request_in_the_models_own_tokens():
    turn = {
        "turn": 1,
        "baseline": 1_000,
        "boundaries": [],
        "fills": {APART: 400, "user": 100, "assistant": 200},
    }
    assert _scaled(turn["fills"], turn["baseline"]) == {APART: 400, "user": 200, "assistant": 400}
    assert _scaled({APART: 400}, 300) == {APART: 300}


def test_without_prices_none_are_drawn():
    bare = replay_file(str(SESSION), ReplaySetup((NONE,), model="a-model-nobody-knows"))
    assert not [panel for panel in replay_panels(bare) if panel.unit == "USD"]


def test_a_page_is_whole_and_a_picture_is_one(report, tmp_path):
    page, picture = tmp_path / "out.html", tmp_path / "out.png"
    draw(report, page)
    draw(report, picture)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert text.count("<svg") == text.count("</svg>") == 1
    assert "Parts of the window under foldline" in text
    assert picture.read_bytes().startswith(SIGNATURE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "out.png"]


def test_an_svg_is_text_and_the_same_each_time(report, tmp_path):
    for name in ("one.svg", "two.svg"):
        draw(report, tmp_path / name)
    one, two = ((tmp_path / name).read_text(encoding="utf-8") for name in ("one.svg", "two.svg"))
    assert ET.fromstring(one).tag.endswith("}svg")
    assert ">Context of every call<" in one
    assert one == two


def test_what_fills_a_window_is_stacked_in_one_order_in_every_panel(report):
    stacked = [
        [line.name for line in panel.lines] for panel in replay_panels(report) if panel.kind == "areas"
    ]
    assert len(stacked) >= 2
    assert all(names == stacked[0] for names in stacked)


def test_a_call_that_another_policy_did_not_make_leaves_a_gap(report):
    none, coop, _ = report.policies
    shorter = [{**turn, "contexts": turn["contexts"][:1]} for turn in coop.turns]
    fewer = msgspec.structs.replace(coop, turns=tuple(shorter))
    panel = replay_panels(msgspec.structs.replace(report, policies=(none, fewer)))[0]
    assert len(panel.lines[1].values) == len(panel.lines[0].values) == len(panel.x)
    given = [value for value in panel.lines[1].values if not isnan(value)]
    assert given == [turn["baseline"] for turn in fewer.turns]


def test_every_boundary_is_marked_at_the_call_that_it_is_before(report):
    one = msgspec.structs.replace(report, policies=report.policies[-1:])
    (policy,) = one.policies
    places = [(turn["turn"], call) for turn in policy.turns for call in range(1, len(turn["contexts"]) + 1)]
    made = [(turn["turn"], mark["call"]) for turn in policy.turns for mark in turn["boundaries"]]
    (line,) = replay_panels(one)[0].lines
    assert made
    assert [places[mark] for mark in line.marks] == [place for place in made if place in places]


def test_a_line_far_above_the_window_does_not_flatten_the_others(report):
    context, summed = replay_panels(report)[:2]
    assert max(context.lines[0].values) > 1.5 * 52_500
    assert top_of(context) == 1.5 * 52_500
    low = msgspec.structs.replace(context, lines=context.lines[1:])
    assert (top_of(low), top_of(summed)) == (None, None)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/home/somebody/workspaces/project/src/core/session.ts", "…/project/src/core/session.ts"),
        ("a_file_in_no_folder_that_has_a_very_long_name.py", "…lder_that_has_a_very_long_name.py"),
    ],
)
def test_a_long_path_is_shortened_at_a_folder(name, shown):
    assert _shorten(name) == shown


def test_what_cannot_be_drawn_is_told(report, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"\.html, \.png or \.svg"):
        draw(report, tmp_path / "out.pdf")
    with pytest.raises(FoldlineError, match="cannot be written"):
        draw(report, __file__ / Path("out.png"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(FoldlineError, match=r"foldline\[plots\]"):
        draw(report, tmp_path / "out.png")


def test_a_line_has_its_colour_in_every_panel(report):
    known = colours(replay_panels(report))
    assert known["none"] == GREY
    assert len({known[name] for name in ("none", "coop", "foldline")}) == 3
