from __future__ import annotations

import sys

import pytest
from tests.cli.calling import EXAMPLES, SESSION

from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import preset
from foldline.core.lab.tally import APART
from foldline.errors import FoldlineError, InputError
from foldline.lab.colours import GREY, colours
from foldline.lab.panels import _scaled, replay_panels
from foldline.lab.plots import draw
from foldline.lab.run import Wanted, replay_file

NONE = Policy(name="none", enabled=False)
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def report():
    policies = (NONE, preset("coop"), preset("foldline"))
    return replay_file(str(EXAMPLES / "coop-trace.jsonl"), Wanted(policies, fills=True))


def test_the_panels_hold_the_figures_of_the_report(report):
    panels = {panel.title: panel for panel in replay_panels(report)}
    context = panels["Context at the first call of a turn"]
    assert [line.name for line in context.lines] == ["none", "coop", "foldline"]
    assert context.lines[0].values[2] == 58_884
    assert context.lines[1].marks[0] == 2
    assert context.limit == 52_500
    assert panels["Input tokens, summed up"].lines[0].values[-1] == report.policies[0].totals["input_tokens"]
    assert panels["Price, summed up"].lines[0].values[-1] == pytest.approx(
        report.policies[0].totals["price"], abs=0.01
    )
    filled = panels["What fills the window under foldline"]
    baselines = [turn["baseline"] for turn in report.policies[2].turns]
    assert [
        sum(values) for values in zip(*(line.values for line in filled.lines), strict=True)
    ] == pytest.approx(baselines)


def test_of_a_context_that_never_fits_again_it_is_not_drawn_what_fills_it():
    """It was drawn as nothing: a window that empties where it overflows."""
    traced = str(EXAMPLES / "coop-trace.jsonl")
    small = replay_file(traced, Wanted((NONE, preset("foldline")), window=30_000, fills=True))
    assert small.policies[0].totals["overflows"]
    titles = [panel.title for panel in replay_panels(small)]
    assert "What fills the window under foldline" in titles
    assert "What fills the window under none" not in titles


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
    bare = replay_file(str(SESSION), Wanted((NONE,), model="a-model-nobody-knows"))
    assert not [panel for panel in replay_panels(bare) if panel.unit == "USD"]


def test_a_page_is_whole_and_a_picture_is_one(report, tmp_path):
    page, picture = tmp_path / "out.html", tmp_path / "out.png"
    draw(report, page)
    draw(report, picture)
    text = page.read_text(encoding="utf-8")
    assert "Plotly.newPlot" in text
    assert "<script src=" not in text.replace('<script src="data:', "")
    assert "What fills the window under foldline" in text
    assert picture.read_bytes().startswith(SIGNATURE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "out.png"]


def test_what_cannot_be_drawn_is_told(report, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"\.html or \.png"):
        draw(report, tmp_path / "out.svg")
    with pytest.raises(FoldlineError, match="cannot be written"):
        draw(report, tmp_path / "missing" / "out.png")
    monkeypatch.setitem(sys.modules, "foldline.lab.png", None)
    with pytest.raises(FoldlineError, match=r"foldline\[plots\]"):
        draw(report, tmp_path / "out.png")


def test_a_line_has_its_colour_in_every_panel(report):
    known = colours(replay_panels(report))
    assert known["none"] == GREY
    assert len({known[name] for name in ("none", "coop", "foldline")}) == 3
