"""Do the same work on many files in processes, none of which outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as first_done
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path
from typing import cast

import msgspec

from foldline.lab.runner import Failed, Guarded, Item, T, died

AHEAD = 2  # files given to each process ahead of time


class LocalPool(msgspec.Struct, frozen=True):
    """A runner on this machine: `jobs` processes (None: one a core).

    `seconds` is the time that one item may take (None: any).
    """

    jobs: int | None = None
    seconds: float | None = None

    def each(
        self, items: Sequence[Item], work: Callable[[Item], T], *, file: Callable[[Item], str] = str
    ) -> Iterator[tuple[int, T | Failed]]:
        """Do the work on every item, as `Runner.each` says; the largest files are begun first."""
        return spread(items, work, self.jobs, file=file, seconds=self.seconds)


def spread(
    items: Sequence[Item],
    work: Callable[[Item], T],
    jobs: int | None = None,
    *,
    file: Callable[[Item], str] = str,
    seconds: float | None = None,
) -> Iterator[tuple[int, T | Failed]]:
    """Do the work on every item over `jobs` processes (default: one per core); yield (index, result).

    `file` says which file an item is about; the largest are begun first. `work` must be a function of a
    module, or a partial of one. An item that cannot be worked on yields `Failed`, and so does one whose
    process dies (out of memory): the others go on.
    """
    count = min(jobs or os.cpu_count() or 1, len(items))
    guarded = cast("Callable[[Item], T | Failed]", Guarded(work, file, seconds))
    if count <= 1:
        yield from ((index, guarded(item)) for index, item in enumerate(items))
        return
    left = deque(sorted(range(len(items)), key=lambda index: -_size(file(items[index]))))
    suspects: list[int] = []
    while left:
        yield from _round(items, left, guarded, count, suspects)
    for index in suspects:  # of those that were at it when a process died, each alone: so one is to blame
        blamed: list[int] = []
        yield from _round(items, deque([index]), guarded, 1, blamed)
        if blamed:
            yield index, died(file(items[index]))


def _round(
    items: Sequence[Item],
    left: deque[int],
    work: Callable[[Item], T | Failed],
    jobs: int,
    suspects: list[int],
) -> Iterator[tuple[int, T | Failed]]:
    """Take items from `left` and yield their results, until none is left or a process of the pool dies.

    The items in work at that time are added to `suspects`.
    """
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    running: dict[Future[T | Failed], int] = {}
    broken = False
    try:
        while running or (left and not broken):
            while left and not broken and len(running) < AHEAD * jobs:
                running[pool.submit(work, items[left[0]])] = left[0]
                left.popleft()
            for future in first_done(running, return_when=FIRST_COMPLETED).done:
                index = running.pop(future)
                try:
                    yield index, future.result()
                except BrokenProcessPool:
                    broken = True
                    suspects.append(index)
    except BaseException:
        _end(pool)
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _end(pool: ProcessPoolExecutor) -> None:
    """End the processes of an abandoned pool, so that the command need not wait for them."""
    for process in list(pool._processes.values()):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        process.terminate()


def _begin() -> None:
    """Set up a process: its parent handles Ctrl-C, and it ends when its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0
