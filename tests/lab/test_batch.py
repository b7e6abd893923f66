from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.cli.calling import talk, write_lines

import foldline
from foldline.errors import InputError
from foldline.lab.batch import MANIFEST, BatchFolder
from foldline.lab.runner import LocalPool
from foldline.lab.sources import SessionSource, sources


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
    marks, out = tmp_path / "marks", tmp_path / "out"

    def doing(force=False, **more):
        marks.write_text("")
        wish = {"marks": str(marks), **more}
        with BatchFolder(out, wish, force=force) as batch:
            batch.add(sources([str(archive)]), ".txt")
            batch.run(upper, wish, runner=LocalPool(1))
            return {one.output: one.state for one in batch.results()}, sorted(marks.read_text().split())

    return doing


# ---- names of results


def names(named, folder, ending=".txt"):
    with BatchFolder(folder, {}) as batch:
        batch.add(sources([str(one) for one in named]), ending)
        return [task.output for task in batch.tasks]


def test_results_are_laid_out_as_the_folder_is(archive, tmp_path):
    assert names([archive], tmp_path / "out") == ["a.txt", "b.txt", "deep/a.txt", "deep/c.txt"]


def test_a_pattern_stands_for_the_files_that_match(archive, tmp_path):
    found = names([archive / "**" / "*.json*"], tmp_path / "out")
    assert [name.partition("-")[0].removesuffix(".txt") for name in found] == ["a", "b", "a", "c"]
    with pytest.raises(InputError, match="no file matches this pattern"):
        names([archive / "*.txt"], tmp_path / "other")


def test_each_file_counts_once_and_names_that_clash_are_told_apart(archive, tmp_path):
    both = [archive / "a.jsonl", archive / "deep" / "a.jsonl", archive / "a.jsonl"]
    found = names(both, tmp_path / "out")
    assert len(found) == len(set(found)) == 2
    assert all(name.startswith("a-") and name.endswith(".txt") for name in found)
    assert found == names(both, tmp_path / "out")


def test_the_result_of_a_session_with_a_long_name_can_be_written(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    for session in ("会议" * 60, "会议" * 61):
        with foldline.open_sync(url, session) as opened:
            opened.append({"role": "user", "content": "Hello"})
    found = names([url], tmp_path / "out")
    assert len(set(found)) == 2
    for name in found:
        (tmp_path / name).write_text("")


def test_names_that_differ_in_case_alone_are_told_apart(tmp_path):
    (tmp_path / "x").mkdir()
    files = [
        write_lines(tmp_path / "Log.jsonl", talk("a")),
        write_lines(tmp_path / "x" / "log.jsonl", talk("b")),
    ]
    found = names(files, tmp_path / "out")
    assert len({name.casefold() for name in found}) == 2


def test_results_are_never_taken_for_sessions(archive):
    assert names([archive], archive / "deep") == ["a.txt", "b.txt"]
    with pytest.raises(InputError, match="are results of this batch"):
        names([archive], archive)


def test_no_result_takes_a_name_of_the_batch_itself(tmp_path):
    files = [write_lines(tmp_path / name, talk("a")) for name in ("Results.jsonl", "manifest.json")]
    found = names(files, tmp_path / "out", ".jsonl")
    assert found[0].startswith("Results-")
    assert found[1] == "manifest.jsonl"


def test_a_name_that_is_no_text_is_a_name(tmp_path):
    folder = tmp_path / "archive"
    folder.mkdir()
    odd = os.fsdecode(b"caf\xe9.jsonl")
    write_lines(folder / odd, talk("a"))
    assert names([folder], tmp_path / "out") == [os.fsdecode(b"caf\xe9.txt")]


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
    with pytest.raises(InputError, match=r"out has a batch with other options \(louder\): use another"):
        do(louder=True)
    assert len(do(louder=True, force=True)[1]) == 4
    assert do(louder=True)[1] == []
    assert len(do(louder=True, force=True)[1]) == 4


def test_a_result_that_is_gone_or_cut_short_is_made_again(do, tmp_path):
    do()
    (tmp_path / "out" / "a.txt").unlink()
    (tmp_path / "out" / "deep" / "c.txt").write_bytes(b"half")
    assert do()[1] == ["a.jsonl", "c.jsonl.gz"]


def test_what_failed_is_tried_again(do):
    states, _ = do(refuse=["b.json"])
    assert states["b.txt"] == "failed"
    assert do(refuse=["b.json"])[1] == ["b.json"]


def test_a_manifest_that_is_damaged_is_told_with_its_remedy(do, tmp_path):
    do()
    (tmp_path / "out" / MANIFEST).write_bytes(b"this is no database" * 99)
    with pytest.raises(InputError, match=r"damaged .*: delete it"):
        do()


def test_two_batches_do_not_write_to_one_folder(do, tmp_path):
    with (
        BatchFolder(tmp_path / "out", {}),
        pytest.raises(InputError, match="another batch is writing to this folder"),
    ):
        do()
    (tmp_path / "out" / MANIFEST).unlink()
    assert set(do()[0].values()) == {"done"}


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write to this folder"):
        BatchFolder(tmp_path / "file" / "out", {})


def nothing(_wish: None, file: str, target: Path) -> dict[str, Any]:
    target.write_text("")
    return {}


def test_the_largest_are_begun_first_and_results_stand_in_the_order_of_the_sources(tmp_path):
    listed = [SessionSource(f"{n}", f"/{n}", f"{n}.jsonl", "", n % 4) for n in range(10)]
    begun = []
    with BatchFolder(tmp_path / "out", {}) as batch:
        batch.add(listed, ".txt")
        batch.run(nothing, None, runner=LocalPool(1), tick=lambda result: begun.append(int(result.file)))
        assert begun == [3, 7, 2, 6, 1, 5, 9, 0, 4, 8]
        assert [int(one.file) for one in batch.results()] == list(range(10))
