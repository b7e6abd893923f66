"""Many session files at once, over processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from foldline.errors import InputError
from foldline.lab.pool import spread
from foldline.lab.report import SessionReport
from foldline.lab.run import Wanted, replay_file
from foldline.lab.runner import Failed

SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")


def session_files(names: Sequence[str]) -> list[str]:
    """Return the session files that paths name; a folder stands for all files in it with a known suffix.

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
    """Replay files over `jobs` processes (default: one per core), and return the reports in file order.

    `tick` gets the number of files done, or of messages of a single file. A single file that cannot be
    replayed raises its error.
    """
    if len(files) == 1:
        return [replay_file(files[0], wanted, tick)]
    found: dict[int, SessionReport | Failed] = {}
    for index, report in spread(files, partial(one, wanted), jobs):
        found[index] = report
        tick(len(found))
    return [found[index] for index in range(len(files))]


def one(wanted: Wanted, file: str) -> SessionReport:
    """Replay one of several files."""
    return replay_file(file, wanted)
