from __future__ import annotations

import json

import pytest
from tests.cli.calling import EXAMPLES, coding_session, talk, write_lines

from foldline.core.decide.presets import PRESETS

COOP = EXAMPLES / "coop-trace.jsonl"


@pytest.fixture
def session(tmp_path):
    return write_lines(tmp_path / "session.jsonl", coding_session())


def policies(done):
    return [one["policy"] for one in done.json["sessions"][0]["policies"]]


def test_json_holds_what_the_contract_names(foldline, session):
    done = foldline("replay", session, "--policy", "none,pi,foldline", "--window", 6000, "--json")
    assert done.code == 0
    only = done.json["sessions"][0]
    assert set(only) == {"session", "window", "policies"}
    assert (only["session"], only["window"]) == (str(session), 6000)
    assert policies(done) == ["none", "pi", "foldline"]
    assert all(set(one) == {"policy", "turns", "totals", "retention"} for one in only["policies"])
    assert only["policies"][2]["totals"]["input_tokens"] < only["policies"][0]["totals"]["input_tokens"]


def test_all_is_every_system_once(foldline, session):
    done = foldline("replay", session, "--policy", "none,all", "--no-retention", "--json")
    assert policies(done) == ["none", *(name for name in PRESETS if ":" not in name)]
    assert all(one["retention"] is None for one in done.json["sessions"][0]["policies"])


def test_the_usual_policies_are_none_and_that_of_the_settings(foldline, session, monkeypatch):
    assert policies(foldline("replay", session, "--json")) == ["none", "foldline"]
    monkeypatch.setenv("FOLDLINE_POLICY", "pi")
    assert policies(foldline("replay", session, "--json")) == ["none", "pi"]


def test_a_policy_of_ones_own(foldline, session, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('[policies.tight]\nbase = "foldline"\nkeep = 500\n')
    done = foldline("replay", session, "--policies", mine, "--policy", "tight", "--json")
    assert policies(done) == ["tight"]


def test_text_has_a_row_for_each_policy_and_turn(foldline):
    done = foldline("replay", COOP, "--policy", "none,coop,foldline")
    assert done.code == 0
    for words in ("window 52,500", "4,249", "58,884", "coop", "foldline", "1.1 M", "far-bound"):
        assert words in done.out
    assert "v! " not in done.out.split("none")[0]


def test_several_files_are_summed_up(foldline, tmp_path):
    files = [write_lines(tmp_path / f"s{n}.jsonl", coding_session(3)) for n in range(2)]
    done = foldline("replay", *files, "--policy", "none", "--jobs", 1)
    assert done.code == 0
    assert "2 sessions" in done.out
    folder = foldline("replay", tmp_path, "--policy", "none", "--jobs", 1, "--json")
    assert len(folder.json["sessions"]) == 2


def test_a_bad_file_among_several_is_left_out_and_told(foldline, tmp_path, session):
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"\x00\x01")
    done = foldline("replay", session, bad, "--jobs", 1, "--policy", "none")
    assert done.code == 1
    assert "left out" in done.err
    assert "1 of 2 files" in done.err
    assert "none" in done.out
    found = foldline("replay", session, bad, "--jobs", 1, "--policy", "none", "--json")
    assert found.code == 1
    assert [one["session"] for one in found.json["sessions"]] == [str(session)]
    assert [one["session"] for one in found.json["failed"]] == [str(bad)]


def test_rounds_are_shown(foldline):
    done = foldline("replay", EXAMPLES / "session.jsonl", "--policy", "foldline", "--rounds", 3)
    assert done.code == 0
    assert "folded repeatedly" in done.out
    assert "6/6" in done.out


def test_a_plot_is_written(foldline, tmp_path):
    out = tmp_path / "trace.png"
    done = foldline("replay", COOP, "--policy", "none,foldline", "--plot", out, "--no-retention", "--json")
    assert done.code == 0
    assert out.read_bytes()[1:4] == b"PNG"
    assert "fills" in done.json["sessions"][0]["policies"][1]["turns"][0]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["missing.jsonl"], "no such file"),
        (["SESSION", "--policy", "nobody"], "no policy 'nobody'"),
        (["SESSION", "--policy", ","], "no policy named"),
        (["SESSION", "--cuts", "half"], "shares between 0 and 1"),
        (["SESSION", "--cuts", "0,1"], "shares between 0 and 1"),
        (["SESSION", "--plot", "out.pdf"], ".html, .png or .svg"),
        (["SESSION", "SESSION", "--plot", "out.png"], "one session"),
        (["-"], "standard input"),
        (["SESSION", "--rounds", "40"], "too short for 40 rounds"),
    ],
)
def test_what_is_wrong_is_told(foldline, session, args, words):
    done = foldline("replay", *(session if arg == "SESSION" else arg for arg in args))
    assert done.code == 2
    assert words in done.err


def test_a_file_without_messages_is_told(foldline, tmp_path):
    empty = write_lines(tmp_path / "empty.jsonl", [{"title": "nothing", "model": "gpt-5"}])
    done = foldline("replay", empty)
    assert done.code == 2
    assert str(empty) in done.err


def test_a_session_of_our_own_is_replayed_as_the_file_that_it_came_from(foldline, tmp_path):
    came, store = EXAMPLES / "session.jsonl", ("--store", f"sqlite:///{tmp_path / 's.db'}")
    name = foldline("import", came, *store, "--json").json["session"]
    own = tmp_path / "own.jsonl"
    foldline("export", name, "-o", own, *store)
    runs = [
        foldline("replay", file, "--policy", "foldline", "--window", 30_000, "--json").json["sessions"][0][
            "policies"
        ][0]
        for file in (came, own)
    ]
    # a log holds no system prompt and no tools, so that its views are smaller and folded a little later
    told = [[(turn["calls"], turn["output_tokens"]) for turn in run["turns"]] for run in runs]
    assert told[0] == told[1]
    assert all(run["totals"]["compactions"] for run in runs)


def test_progress_is_told_in_lines(foldline, session, tmp_path):
    def told(*files):
        done = foldline("replay", *files, "--progress", "--no-retention", "--json")
        assert done.json["sessions"]
        return [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]

    lines = told(EXAMPLES / "session.jsonl")
    assert {one["total"] for one in lines} == {173}
    counts = [one["done"] for one in lines]
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, 173)
    assert {20, 40, 160} <= set(counts)
    assert told(session, session)[-1] == {"done": 2, "total": 2}


def test_a_short_session_has_no_retention(foldline, tmp_path):
    short = write_lines(tmp_path / "short.jsonl", talk("one", "two", "three", "four"))
    done = foldline("replay", short, "--json")
    assert done.json["sessions"][0]["policies"][0]["retention"] is None


def test_inspect_draws_where_the_tokens_are(foldline, tmp_path):
    page, picture = tmp_path / "session.html", tmp_path / "session.png"
    done = foldline("inspect", EXAMPLES / "session.jsonl", "--plot", page, "--plot", picture)
    assert done.code == 0
    assert f"wrote {page}" in done.err
    assert "Tokens by tool" in page.read_text(encoding="utf-8")
    assert picture.read_bytes()[1:4] == b"PNG"
    assert foldline("inspect", EXAMPLES / "session.jsonl", "--plot", tmp_path / "x.gif").code == 2


def test_where_nothing_was_folded_the_text_says_so_and_what_to_try(foldline):
    example = EXAMPLES / "session.jsonl"
    whole = foldline("replay", example, "--policy", "none,foldline", "--window", 200_000)
    small = foldline("replay", example, "--policy", "none,foldline", "--window", 40_000)

    assert "nothing was folded" in whole.out
    assert "--window N" in whole.out
    assert "nothing was folded" not in small.out
    assert "handle to steps:" in small.out


@pytest.mark.parametrize("columns", [60, 80, 110])
def test_no_figure_is_cut_on_a_narrow_terminal(foldline, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    text = foldline("replay", EXAMPLES / "session.jsonl", "--policy", "none,foldline", "--window", 16_000).out
    rows = [line for line in text.splitlines() if line.startswith(("policy ", "none ", "foldline "))]
    assert len(rows) >= 6
    assert max(map(len, rows)) <= columns
    assert "…" not in text
