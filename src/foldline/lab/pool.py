"""Do the same work on many files in processes, none of which outlives its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as first_done
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing.connection import wait
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
        self, items: Iterable[Item], work: Callable[[Item], T], *, file: Callable[[Item], str] = str
    ) -> Iterator[tuple[Item, T | Failed]]:
        """Do the work on every item, as `Runner.each` says; a single item is worked on in this process."""
        left = iter(items)
        first = list(islice(left, self.jobs or os.cpu_count() or 1))
        left = chain(first, left)
        guarded = cast("Callable[[Item], T | Failed]", Guarded(work, file, self.seconds))
        if len(first) <= 1:
            yield from ((item, guarded(item)) for item in left)
            return
        suspects: list[Item] = []
        while (item := next(left, None)) is not None:
            yield from _round(chain([item], left), guarded, len(first), suspects)
        for item in suspects:  # of those that were at it when a process died, each alone: so one is to blame
            blamed: list[Item] = []
            yield from _round(iter([item]), guarded, 1, blamed)
            if blamed:
                yield item, died(file(item))


def _round(
    left: Iterator[Item], work: Callable[[Item], T | Failed], jobs: int, suspects: list[Item]
) -> Iterator[tuple[Item, T | Failed]]:
    """Take items from `left` and yield their results, until none is left or a process of the pool dies.

    The items in work at that time are added to `suspects`.
    """
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    running: dict[Future[T | Failed], Item] = {}
    broken = False
    try:
        while True:
            room = 0 if broken else AHEAD * jobs - len(running)
            for item in islice(left, room):
                try:
                    running[pool.submit(work, item)] = item
                except BrokenProcessPool:  # it died a moment ago
                    broken = True
                    suspects.append(item)
                    break
            if not running:
                return
            for future in first_done(running, return_when=FIRST_COMPLETED).done:
                item = running.pop(future)
                try:
                    yield item, future.result()
                except BrokenProcessPool:
                    broken = True
                    suspects.append(item)
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
