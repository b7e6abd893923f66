"""The same work on an archive of sessions: a result for each, and an archive that was begun goes on.

A result is written whole by the process that made it, and then named in the manifest by the one that began
them all. So whatever is killed, what the manifest names is there; all else is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from foldline.errors import InputError
from foldline.lab.manifest import Found, Manifest, Result, Task
from foldline.lab.runner import Failed, Runner
from foldline.lab.sources import SessionSource

W = TypeVar("W")
Work = Callable[[W, str, Path], Found]  # (wish, session, where to write) -> what it came to


@contextmanager
def planned(
    sources: Iterable[SessionSource], folder: Path, wish: object, ending: str, *, force: bool = False
) -> Generator[tuple[Manifest, int]]:
    """List what is to do in a folder's manifest, and close it at the end; gives it, and how many sessions.

    `wish` says all that a result depends on; with `force` what was done before is done again. Raises
    InputError where no session is left, and where the folder cannot be written to, is in use, or holds a
    batch with other options.
    """
    manifest = Manifest(folder)
    try:
        manifest.ask(wish, force=force)
        count = manifest.fill(sources, ending)
        if not count:
            raise InputError(f"there is no session file outside of {folder}")
        yield manifest, count
    finally:
        manifest.close()


def run(
    manifest: Manifest,
    folder: Path,
    wish: W,
    work: Work[W],
    *,
    runner: Runner,
    tick: Callable[[Result], None] = lambda _: None,
) -> None:
    """Do the work on all that is left in a manifest, where `runner` does.

    `work` is a function of a module, called as work(wish, session, target); it writes the result whole and
    returns what the manifest keeps of it. `tick` is told each result as it is there.
    """
    for earlier in manifest.results("earlier"):
        tick(earlier)
    for task, found in runner.each(manifest.left(), partial(_one, work, wish, folder), file=_file):
        if isinstance(found, Failed):
            tick(manifest.failed(task, found.error))
        else:
            tick(manifest.done(task, found))


def _one(work: Work[W], wish: W, folder: Path, task: Task) -> Found:
    target = folder / task.output
    target.parent.mkdir(parents=True, exist_ok=True)
    return work(wish, task.file, target)


def _file(task: Task) -> str:
    return task.file
