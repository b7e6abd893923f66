"""Many session files at once, over processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from foldline.errors import FoldlineError, InputError
from foldline.lab.report import SessionReport
from foldline.lab.run import Wanted, replay_file

SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


class Failed(msgspec.Struct, frozen=True):
    """A file that could not be replayed, and why."""

    session: str
    error: str


def session_files(names: Sequence[str]) -> list[str]:
    """Return the session files that paths name; a folder stands for all files in it that can be sessions.

    Raises InputError for a folder without any.
    """
    found: list[str] = []
    for name in names:
        folder = Path(name)
        if not folder.is_dir():
            found.append(name)
            continue
        inside = sorted(
            str(path) for path in folder.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file()
        )
        if not inside:
            raise InputError(f"{name}: no session file in this folder ({', '.join(SUFFIXES)})")
        found += inside
    return found


def replay_many(
    files: Sequence[str], wanted: Wanted, jobs: int | None, tick: Callable[[int], None] = lambda _: None
) -> list[SessionReport | Failed]:
    """Replay files over `jobs` processes (default: one a core), and return what came of each, in their order.

    `tick` is told how many are done; of a single file, how many of its messages. A single file that cannot be
    replayed raises its error.
    """
    if len(files) == 1:
        return [replay_file(files[0], wanted, tick)]
    found: dict[int, SessionReport | Failed] = {}
    for index, report in _spread(files, wanted, jobs or os.cpu_count() or 1):
        found[index] = report
        tick(len(found))
    return [found[index] for index in range(len(files))]


def _spread(files: Sequence[str], wanted: Wanted, jobs: int) -> Iterator[tuple[int, SessionReport | Failed]]:
    """Yield what comes of each file as it is done, the largest begun first."""
    if jobs == 1:
        yield from ((index, one(file, wanted)) for index, file in enumerate(files))
        return
    order = sorted(range(len(files)), key=lambda index: -_size(files[index]))
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(one, files[index], wanted): index for index in order}
        try:
            for future in as_completed(running):
                yield running[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def one(file: str, wanted: Wanted) -> SessionReport | Failed:
    """Replay one of several files; what cannot be replayed does not stop the others."""
    try:
        return replay_file(file, wanted)
    except FoldlineError as error:
        return Failed(file, str(error))


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0
