"""Many session files at once, over processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from foldline.lab.pool import spread
from foldline.lab.report import SessionReport
from foldline.lab.run import Wanted, replay_file
from foldline.lab.runner import Failed


def replay_many(
    files: Sequence[str], wanted: Wanted, jobs: int | None, tick: Callable[[int], None] = lambda _: None
) -> list[SessionReport | Failed]:
    """Replay files over `jobs` processes (default: one per core), and return the reports in file order.

    The largest are begun first. `tick` gets the number of files done, or of messages of a single file. A
    single file that cannot be replayed raises its error.
    """
    if len(files) == 1:
        return [replay_file(files[0], wanted, tick)]
    found: dict[str, SessionReport | Failed] = {}
    for file, report in spread(sorted(set(files), key=_size), partial(one, wanted), jobs):
        found[file] = report
        tick(len(found))
    return [found[file] for file in files]


def one(wanted: Wanted, file: str) -> SessionReport:
    """Replay one of several files."""
    return replay_file(file, wanted)


def _size(file: str) -> int:
    try:
        return -Path(file).stat().st_size
    except OSError:
        return 0
