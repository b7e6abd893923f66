"""The same work on an archive of sessions: a result for each, and an archive that was begun goes on.

A result is written whole by the process that made it, and then named in the manifest by the one that began
them all. So whatever is killed, what the manifest names is there; all else is done again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from foldline.errors import InputError
from foldline.lab.archive import SUFFIXES, session_files
from foldline.lab.manifest import ASKED, NAME, Manifest, key_of
from foldline.lab.runner import Failed, Runner

W = TypeVar("W")
OWN = {
    NAME,
    "results.jsonl",
    "results.parquet",
    ASKED,
}  # names in the output folder that no session's result has
Found = dict[str, Any]
Work = Callable[[W, str, Path], Found]  # (wish, file, where to write) -> what it came to


class Task(msgspec.Struct, frozen=True):
    """A file of an archive, and the name of its result below the output folder."""

    file: str
    output: str


class Result(msgspec.Struct, frozen=True):
    """What came of a file: done now, done earlier, or failed and why."""

    file: str
    output: str
    state: Literal["done", "earlier", "failed"]
    found: Found = {}
    error: str = ""


def tasks(names: Sequence[str], folder: Path, ending: str) -> list[Task]:
    """Return the files that paths name, each once, and the names of their results, which end in `ending`.

    A folder stands for the session files in it, and results are laid out as it is; what stands in the output
    folder itself is none of them. Where two results would have the same name, a hash of the path is added.
    Raises InputError where no file is left.
    """
    found: dict[Path, Task] = {}
    own = folder.resolve()
    for name in names:
        top = Path(name)
        for file in session_files([name]):
            whole = Path(file).resolve()
            if whole.is_relative_to(own):
                continue
            inside = Path(file).relative_to(top) if top.is_dir() else Path(Path(file).name)
            found.setdefault(whole, Task(file, f"{_plain(inside.as_posix())}{ending}"))
    if not found:
        raise InputError(f"{', '.join(names)}: there is no session file outside of {folder}")
    same = Counter(task.output.casefold() for task in found.values())
    return [
        task
        if same[task.output.casefold()] == 1 and task.output.casefold() not in OWN
        else _told_apart(task, whole, ending)
        for whole, task in found.items()
    ]


def _plain(name: str) -> str:
    """Return a name without the ending that a session file has."""
    return next(
        (name[: -len(end)] for end in reversed(SUFFIXES) if name.endswith(end) and len(name) > len(end)),
        name,
    )


def _told_apart(task: Task, whole: Path, ending: str) -> Task:
    digest = hashlib.sha256(str(whole).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Task(task.file, f"{task.output.removesuffix(ending)}-{digest}{ending}")


def run(
    wanted: Sequence[Task],
    folder: Path,
    wish: W,
    work: Work[W],
    *,
    runner: Runner,
    force: bool = False,
    tick: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Do the work on every task whose result is not there yet (`force`: on every one), where `runner` does.

    `work` is a function of a module, called as work(wish, file, target); it writes the result whole and
    returns what the manifest keeps of it. `wish` says all that a result depends on. `tick` is told each
    result as it is there. Raises InputError where the folder cannot be written to, or holds a batch with
    other options.
    """
    manifest = Manifest(folder)
    manifest.ask(wish, force=force)
    keys = [key_of(task.file, wish) for task in wanted]
    results: dict[int, Result] = {}
    for index, task in enumerate(wanted):
        known = None if force else manifest.done(keys[index], task.output)
        if known is not None:
            results[index] = Result(task.file, task.output, "earlier", known)
            tick(results[index])
    left = [index for index in range(len(wanted)) if index not in results]
    doing = [wanted[index] for index in left]
    for at, found in runner.each(doing, partial(_one, work, wish, folder), file=_file):
        index, task = left[at], doing[at]
        if isinstance(found, Failed):
            result = Result(task.file, task.output, "failed", error=found.error)
        else:
            manifest.add(keys[index], task.file, task.output, found)
            result = Result(task.file, task.output, "done", found)
        results[index] = result
        tick(result)
    return [results[index] for index in range(len(wanted))]


def _one(work: Work[W], wish: W, folder: Path, task: Task) -> Found:
    target = folder / task.output
    target.parent.mkdir(parents=True, exist_ok=True)
    return work(wish, task.file, target)


def _file(task: Task) -> str:
    return task.file
