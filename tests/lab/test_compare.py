"""The tool that compares the ten systems, on sessions of its own."""

from __future__ import annotations

from functools import partial

import pytest
from tests.cli.calling import coding_session, write_lines
from tools import compare, results

from foldline.cli.common import TEN
from foldline.lab.report import PolicyReport, SessionReport


@pytest.fixture
def sessions(tmp_path):
    folder = tmp_path / "sessions"
    folder.mkdir()
    for n in range(2):
        write_lines(folder / f"s{n}.jsonl", coding_session(16 + n))
    return folder


@pytest.mark.slow
def test_a_window_is_a_table_of_all_policies_and_its_replays_are_kept(
    sessions, tmp_path, monkeypatch, capsys
):
    store = tmp_path / "store"
    args = [str(sessions), "--windows", "9000", "--store", str(store), "--jobs", "1"]
    monkeypatch.setattr("sys.argv", ["compare.py", *args])
    compare.main()
    text = capsys.readouterr().out
    assert "**Window 9,000**" in text
    rows = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    assert list(rows) == ["none", *TEN]
    assert all(len(line.split("|")) == len(rows["none"].split("|")) for line in rows.values())
    assert "2 sessions; 2 are folded" in text
    assert "Without a known price: 2 sessions." in text
    stamps = {path: path.stat().st_mtime_ns for path in (store / "9000").glob("*.json")}
    compare.main()
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


@pytest.mark.slow
def test_what_is_saved_names_the_command_that_makes_it_again(sessions, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("<!-- table: comparison -->\n<!-- end -->\n")
    monkeypatch.setattr(compare, "save", partial(results.save, folder=tmp_path, page=page))
    args = [str(sessions), "--windows", "9000", "--store", str(tmp_path), "--jobs", "1", "--save"]
    monkeypatch.setattr("sys.argv", ["compare.py", *args])
    compare.main()
    text = page.read_text()
    assert "`python -m tools.compare SESSIONS --windows 9000 --save`" in text
    assert "**Window 9,000**" in text


def cut(folds, *, fits=True):
    return {"folds": folds, "fits": fits}


def report(**cuts):
    rows = (
        PolicyReport(name, (), {}, None if found is None else {"cuts": found}) for name, found in cuts.items()
    )
    return SessionReport("s", 9_000, tuple(rows))


def test_cuts_count_where_every_policy_that_acts_had_folded_and_fits():
    both = report(none=[cut(0), cut(0), cut(0)], pi=[cut(0), cut(1), cut(2)], coop=[cut(1), cut(1), cut(1)])
    assert compare.shared_cuts(both) == [1, 2]
    large = report(pi=[cut(1), cut(1)], coop=[cut(1), cut(1, fits=False)])
    assert compare.shared_cuts(large) == [0]
    assert compare.shared_cuts(report(none=[cut(0)], pi=None, coop=[cut(1)])) == []
