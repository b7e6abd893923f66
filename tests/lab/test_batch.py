from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.cli.calling import talk, write_lines

from foldline.errors import InputError
from foldline.lab.batch import Task, run, tasks
from foldline.lab.manifest import NAME, Manifest, key_of
from foldline.lab.pool import LocalPool


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    folder = tmp_path / "archive"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.jsonl", "b.json", "deep/a.jsonl", "deep/c.jsonl.gz"):
        write_lines(folder / name, talk("one"))
    return folder


def upper(wish: dict[str, Any], file: str, target: Path) -> dict[str, Any]:
    """Real work: writes the file in capitals, and leaves a mark for each time that it was asked."""
    with Path(wish["marks"]).open("a", encoding="utf-8") as marks:
        marks.write(f"{Path(file).name}\n")
    if Path(file).name in wish.get("refuse", ()):
        raise InputError("not today")
    target.write_bytes(Path(file).read_bytes().upper())
    return {"bytes": target.stat().st_size}


@pytest.fixture
def do(archive, tmp_path):
    """Run the batch with one process; return its states by name, and the names that were worked on."""
    marks = tmp_path / "marks"

    def doing(force=False, **wish):
        marks.write_text("")
        found = tasks([str(archive)], tmp_path / "out", ".txt")
        results = run(
            found, tmp_path / "out", {"marks": str(marks), **wish}, upper, runner=LocalPool(1), force=force
        )
        return {one.output: one.state for one in results}, sorted(marks.read_text().split())

    return doing


# ---- names of results


def names(found: list[Task]) -> list[str]:
    return [task.output for task in found]


def test_results_are_laid_out_as_the_folder_is(archive, tmp_path):
    found = tasks([str(archive)], tmp_path / "out", ".txt")
    assert names(found) == ["a.txt", "b.txt", "deep/a.txt", "deep/c.txt"]


def test_each_file_counts_once_and_names_that_clash_are_told_apart(archive, tmp_path):
    both = [str(archive / "a.jsonl"), str(archive / "deep" / "a.jsonl"), str(archive / "a.jsonl")]
    found = names(tasks(both, tmp_path / "out", ".txt"))
    assert len(found) == len(set(found)) == 2
    assert all(name.startswith("a-") and name.endswith(".txt") for name in found)
    assert found == names(tasks(both, tmp_path / "out", ".txt"))


def test_names_that_differ_in_case_alone_are_told_apart(tmp_path):
    (tmp_path / "x").mkdir()
    files = [
        write_lines(tmp_path / "Log.jsonl", talk("a")),
        write_lines(tmp_path / "x" / "log.jsonl", talk("b")),
    ]
    found = names(tasks([str(file) for file in files], tmp_path / "out", ".txt"))
    assert len({name.casefold() for name in found}) == 2


def test_results_are_never_taken_for_sessions(archive):
    assert names(tasks([str(archive)], archive / "deep", ".txt")) == ["a.txt", "b.txt"]
    with pytest.raises(InputError, match="no session file outside of"):
        tasks([str(archive)], archive, ".txt")


# ---- going on


def test_what_was_done_is_not_done_again(do):
    states, worked = do()
    assert set(states.values()) == {"done"}
    assert len(worked) == 4
    assert do() == (dict.fromkeys(states, "earlier"), [])


def test_a_file_that_changed_is_done_again(do, archive):
    do()
    write_lines(archive / "b.json", talk("one", "two"))
    assert do()[1] == ["b.json"]
    os.utime(archive / "a.jsonl", ns=(1, 1))
    assert do()[1] == ["a.jsonl"]


def test_a_new_file_is_all_that_is_done(do, archive):
    do()
    write_lines(archive / "new.jsonl", talk("one"))
    states, worked = do()
    assert worked == ["new.jsonl"]
    assert sorted(states.values()) == ["done", *["earlier"] * 4]


def test_another_wish_is_refused_by_name_and_forced(do):
    do()
    with pytest.raises(InputError, match=r"out holds a batch with other options \(louder\): name another"):
        do(louder=True)
    assert len(do(louder=True, force=True)[1]) == 4
    assert do(louder=True)[1] == []
    assert len(do(louder=True, force=True)[1]) == 4


def test_no_result_takes_a_name_of_the_batch_itself(tmp_path):
    files = [str(write_lines(tmp_path / name, talk("a"))) for name in ("Results.jsonl", "manifest.jsonl")]
    found = names(tasks(files, tmp_path / "out", ".jsonl"))
    assert {name.rpartition("-")[0] for name in found} == {"Results", "manifest"}


def test_a_result_that_is_gone_or_cut_short_is_made_again(do, tmp_path):
    do()
    (tmp_path / "out" / "a.txt").unlink()
    (tmp_path / "out" / "deep" / "c.txt").write_bytes(b"half")
    assert do()[1] == ["a.jsonl", "c.jsonl.gz"]


def test_what_failed_is_tried_again(do):
    states, _ = do(refuse=["b.json"])
    assert states["b.txt"] == "failed"
    assert do(refuse=["b.json"])[1] == ["b.json"]


def test_a_manifest_whose_last_line_was_cut_off_loses_that_line_alone(do, tmp_path):
    do()
    manifest = tmp_path / "out" / NAME
    manifest.write_bytes(manifest.read_bytes()[:-20])
    worked = do()[1]
    assert len(worked) == 1
    assert do()[1] == []
    assert Manifest(tmp_path / "out").done("nothing", "a.txt") is None


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written to"):
        Manifest(tmp_path / "file" / "out")


def test_the_key_is_of_the_file_as_it_is_and_of_the_wish(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", talk("one"))
    first = key_of(str(file), {"target": 5})
    assert key_of(str(file), {"target": 5}) == first
    assert key_of(str(file), {"target": 6}) != first
    write_lines(file, talk("one", "two"))
    assert key_of(str(file), {"target": 5}) != first
    assert key_of(str(tmp_path / "missing"), None) != key_of(str(tmp_path / "lost"), None)
