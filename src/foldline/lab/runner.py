"""Where the work on many files runs: one protocol, kept by processes here and by a Ray cluster.

Each process here works on one file at a time: so when it dies, it is known over which.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as first_done
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing.connection import wait
from types import FrameType
from typing import Protocol, TypeVar, cast

import msgspec

from foldline.errors import FoldlineError

AGAIN = 1.0  # seconds between two alarms
Item = TypeVar("Item")
T = TypeVar("T")


class Failed(msgspec.Struct, frozen=True):
    """A file whose work failed, and why."""

    session: str
    error: str


class Runner(Protocol):
    """Does the same work on many items, somewhere."""

    def each(
        self, items: Iterable[Item], work: Callable[[Item], T], *, file: Callable[[Item], str]
    ) -> Iterator[tuple[Item, T | Failed]]:
        """Do the work on every item; yield (item, result) as results come, in no particular order.

        Items are taken as there is room for them, so there may be any number. `file` says which file an item
        is about; `work` is a function of a module, or a partial of one. An item that cannot be worked on
        yields `Failed`, and so does one whose process dies: the others go on.
        """
        ...


class Guarded(msgspec.Struct, frozen=True):
    """Work on one of several items, whose failure does not stop the others.

    `seconds` is the time that one item may take (None: any).
    """

    work: Callable[..., object]
    file: Callable[..., str]
    seconds: float | None = None

    def __call__(self, item: object) -> object:
        """Return what the work returns, or `Failed`."""
        name = self.file(item)
        try:
            with _time_limit(self.seconds):
                return self.work(item)
        except (FoldlineError, OSError) as error:
            text = str(error)
            return Failed(name, text if name in text else f"{name}: {text}")
        except MemoryError:
            return Failed(name, f"{name}: out of memory: this file is too large for this machine")
        except _TimeUpError:
            return Failed(name, f"{name}: not done after {self.seconds:g} seconds: allow more with --timeout")
        except Exception as error:  # a bug that one file triggers must not stop the others
            return Failed(name, f"{name}: {type(error).__name__}: {error} (this is a bug in Foldline)")


def died(name: str) -> Failed:
    """Return the failure of a file whose process died."""
    return Failed(name, f"{name}: its process died (out of memory?)")


class _TimeUpError(BaseException):
    """An item took too long; no `except Exception` of the work takes it."""


@contextmanager
def _time_limit(seconds: float | None) -> Generator[None]:
    """Interrupt the body after so many seconds, where the system has alarms and this is the main thread.

    Python drops an exception that is raised while it destroys an object: so the alarm rings again.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "setitimer"):
        yield
        return
    before, hook = signal.signal(signal.SIGALRM, _time_up), sys.unraisablehook
    sys.unraisablehook = lambda told: None if told.exc_type is _TimeUpError else hook(told)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        signal.signal(signal.SIGALRM, before)


def _time_up(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _TimeUpError


# ---- on this machine


class LocalPool(msgspec.Struct, frozen=True):
    """A runner on this machine: `jobs` processes (None: one a core), none of which outlives its parent.

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
        idle = [_process() for _ in first]
        running: dict[Future[T | Failed], tuple[Item, ProcessPoolExecutor]] = {}
        try:
            while True:
                while idle and (some := list(islice(left, 1))):
                    process = idle.pop()
                    running[process.submit(guarded, some[0])] = some[0], process
                if not running:
                    return
                for future in first_done(running, return_when=FIRST_COMPLETED).done:
                    item, process = running.pop(future)
                    try:
                        found = future.result()
                    except BrokenProcessPool:
                        found, process = died(file(item)), _process()
                    idle.append(process)
                    yield item, found
        finally:  # where it is abandoned half way, the command need not wait for what is under way
            for _, process in running.values():
                _kill(process)
            for process in idle:
                process.shutdown(wait=False)


def _process() -> ProcessPoolExecutor:
    """Return an executor of one process that does one thing after the other."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)


def _kill(executor: ProcessPoolExecutor) -> None:
    for process in list(executor._processes.values()):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        process.terminate()
    executor.shutdown(wait=False)


def _begin() -> None:
    """Set up a process: its parent handles Ctrl-C, and it ends when its parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
