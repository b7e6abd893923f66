from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from foldline.errors import InputError
from foldline.lab import runner
from foldline.lab.runner import Failed, LocalPool

pytestmark = pytest.mark.slow


def length(file: str) -> int:
    return len(Path(file).read_bytes())


def picky(file: str) -> int:
    if file.endswith("bad"):
        raise InputError("this is no session")
    if file.endswith("bug"):
        raise ZeroDivisionError("by nothing")
    return length(file)


def deadly(file: str) -> int:
    if file.endswith("bad"):
        os.kill(os.getpid(), signal.SIGKILL)
    return length(file)


def slow(file: str) -> int:
    time.sleep(1_000)
    return length(file)


@pytest.fixture
def files(tmp_path):
    made = [tmp_path / f"{n}" for n in range(6)]
    for n, file in enumerate(made):
        file.write_bytes(b"x" * n)
    return [str(file) for file in made]


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_result_comes_with_the_place_of_its_file(files, jobs):
    assert dict(LocalPool(jobs).each(files, length)) == {file: n for n, file in enumerate(files)}


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_fails_is_named_with_its_file_and_the_others_go_on(tmp_path, files, jobs):
    missing, bad, bug = (str(tmp_path / name) for name in ("missing", "bad", "bug"))
    found = dict(LocalPool(jobs).each([missing, bad, bug, *files], picky))
    assert [found[file] for file in files] == list(range(6))
    assert all(isinstance(found[file], Failed) for file in (missing, bad, bug))
    assert found[missing].error.count(missing) == 1
    assert found[bad].error == f"{bad}: this is no session"
    assert found[bug].error.startswith(f"{bug}: ZeroDivisionError: by nothing")


def test_a_process_that_dies_is_blamed_on_its_file_alone(tmp_path, files):
    bad = tmp_path / "bad"
    bad.write_bytes(b"x" * 99)
    found = dict(LocalPool(2).each([files[0], str(bad), *files[1:]], deadly))
    assert [found[file] for file in files] == list(range(6))
    assert found[str(bad)] == Failed(str(bad), f"{bad}: its process died (out of memory?)")


def test_a_process_that_dies_while_it_is_idle_takes_no_file_with_it(files):
    found = {}
    for file, result in LocalPool(2).each(files, length):
        if not found:  # the one that did this is idle now
            for child in multiprocessing.active_children():
                child.kill()
                child.join()
        found[file] = result
    assert set(found) == set(files)


def test_an_interrupt_while_a_file_is_handed_over_leaves_no_process(files, monkeypatch):
    class Interrupted(ProcessPoolExecutor):
        def submit(self, *words, **named):
            super().submit(*words, **named)
            raise KeyboardInterrupt

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(LocalPool(2).each(files, slow))
    wait_until(lambda: not multiprocessing.active_children())


def test_nothing_to_do_is_done(files):
    assert list(LocalPool(2).each([], length)) == []
    assert list(LocalPool(8).each(files[:1], length)) == [(files[0], 0)]


def test_items_are_taken_as_there_is_room(files):
    taken = []

    def items():
        for file in files * 10:
            taken.append(file)
            yield file

    results = LocalPool(2).each(items(), length)
    next(results)
    assert len(taken) <= 8
    assert len(list(results)) == 59


class SlowToGo:
    def __del__(self):
        time.sleep(0.5)


def slow_to_go(file: str) -> int:
    gone = SlowToGo()
    del gone  # the first alarm rings in there, where Python drops every exception
    return slow(file)


def test_the_time_limit_holds_where_an_exception_is_dropped(files):
    [(_, found)] = LocalPool(1, 0.2).each(files[:1], slow_to_go)
    assert found == Failed(files[0], f"{files[0]}: stopped after 0.2 seconds: allow more with --timeout")
