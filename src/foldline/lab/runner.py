"""Run work on many files, in local processes or on a Ray cluster.

Each local process works on one file at a time, so that a file whose process died can be named.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor
from concurrent.futures import wait as first_done
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module
from itertools import chain, islice
from multiprocessing.connection import wait
from types import FrameType
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from foldline.errors import FoldlineError, InputError

ALARM_INTERVAL = 1.0  # seconds between two alarms of an item that takes too long
Item = TypeVar("Item")
T = TypeVar("T")


class Failed(msgspec.Struct, frozen=True):
    """A file whose work failed, and why."""

    session: str
    error: str


class Runner(Protocol):
    """Does the same work on many items."""

    def each(
        self, items: Iterable[Item], work: Callable[[Item], T], *, file: Callable[[Item], str]
    ) -> Iterator[tuple[Item, T | Failed]]:
        """Do the work on every item; yield (item, result) as results arrive, in any order.

        Items are taken as needed, so there may be any number. `file` returns the file of an item; `work` is a
        module's function, or a partial of it. An item that fails, or whose process dies, yields `Failed`; the
        others continue.
        """
        ...


class Guarded(msgspec.Struct, frozen=True):
    """Work on single items, in which a failure of one item does not stop the others.

    `seconds` is the time limit of one item (None: no limit).
    """

    work: Callable[..., object]
    file: Callable[..., str]
    seconds: float | None = None

    def __call__(self, item: object) -> object:
        """Return the result of the work, or `Failed`."""
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
            return Failed(name, f"{name}: stopped after {self.seconds:g} seconds: allow more with --timeout")
        except Exception as error:  # a bug with one file must not stop the others
            return Failed(name, f"{name}: {type(error).__name__}: {error} (this is a bug in Foldline)")


def process_died(name: str) -> Failed:
    """Return the failure of a file whose process died."""
    return Failed(name, f"{name}: its process died (out of memory?)")


class _TimeUpError(BaseException):
    """An item took too long; not an Exception, so that the work cannot catch it by accident."""


@contextmanager
def _time_limit(seconds: float | None) -> Generator[None]:
    """Interrupt the body after some seconds, if the system has alarms and this is the main thread.

    The alarm repeats, because Python drops an exception that is raised while it destroys an object.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "setitimer"):
        yield
        return
    handler, hook = signal.signal(signal.SIGALRM, _time_up), sys.unraisablehook
    sys.unraisablehook = lambda event: None if event.exc_type is _TimeUpError else hook(event)
    signal.setitimer(signal.ITIMER_REAL, seconds, ALARM_INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        signal.signal(signal.SIGALRM, handler)


def _time_up(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _TimeUpError


# ---- on this machine


class LocalPool(msgspec.Struct, frozen=True):
    """A runner on this machine: `jobs` processes (None: one per core), which end with their parent.

    `seconds` is the time limit of one item (None: no limit).
    """

    jobs: int | None = None
    seconds: float | None = None

    def each(
        self, items: Iterable[Item], work: Callable[[Item], T], *, file: Callable[[Item], str] = str
    ) -> Iterator[tuple[Item, T | Failed]]:
        """Do the work on every item, as `Runner.each` does; a single item runs in this process."""
        pending = iter(items)
        first = list(islice(pending, self.jobs or os.cpu_count() or 1))
        pending = chain(first, pending)
        guarded = cast("Callable[[Item], T | Failed]", Guarded(work, file, self.seconds))
        if len(first) <= 1:
            yield from ((item, guarded(item)) for item in pending)
            return
        idle = [_process() for _ in first]
        started = set(idle)  # an interrupt may come while a process is neither idle nor running
        running: dict[Future[T | Failed], tuple[Item, ProcessPoolExecutor]] = {}
        try:
            while True:
                for item in islice(pending, len(idle)):
                    process = idle.pop()
                    try:
                        future = process.submit(guarded, item)
                    except BrokenProcessPool:  # it died while idle
                        started.add(process := _process())
                        future = process.submit(guarded, item)
                    running[future] = item, process
                if not running:
                    return
                for future in first_done(running, return_when=FIRST_COMPLETED).done:
                    item, process = running.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        result = process_died(file(item))
                        started.add(process := _process())
                    idle.append(process)
                    yield item, result
        finally:  # a caller that stops early does not wait for running work
            for process in started:
                _kill(process)


def _process() -> ProcessPoolExecutor:
    """Return an executor with one process."""
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_set_up)


def _kill(executor: ProcessPoolExecutor) -> None:
    for process in list(executor._processes.values()):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        process.terminate()
    executor.shutdown(wait=False)


def _set_up() -> None:
    """Set up a process: its parent handles Ctrl-C, and it ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


# ---- on a Ray cluster: needs the extra `ray`

LOCAL: Final = "local"
PER_CORE: Final = 2  # items that are submitted at once
RETRIES: Final = 1  # of an item whose worker died: its machine may have left the cluster
STORE_BYTES: Final = 128 * 1024 * 1024  # Ray's memory for results, which are small
_ADDRESS: Final = re.compile(r"local|auto|ray://\S+|[^\s/]+:\d+")


class RayCluster(msgspec.Struct, frozen=True):
    """A runner on Ray: `local` starts one on this machine, `auto` or an address joins a running cluster.

    `jobs` is the number of items at once (None: one per core of the cluster), `seconds` the time limit of one
    item (None: no limit). All machines of a cluster must share the paths of sessions and results.
    """

    address: str = LOCAL
    jobs: int | None = None
    seconds: float | None = None

    def check(self) -> Any:
        """Return Ray; raises InputError if it is not installed or the address is invalid."""
        if not _ADDRESS.fullmatch(self.address):
            raise InputError(
                f"--ray {self.address}: not the address of a cluster: use --ray=local, --ray=auto, "
                "--ray=HOST:PORT or --ray=ray://HOST:PORT"
            )
        try:
            return import_module("ray")
        except ImportError as error:
            raise InputError("--ray needs Ray: pip install 'foldline[ray]'") from error

    def each(
        self, items: Iterable[Item], work: Callable[[Item], T], *, file: Callable[[Item], str] = str
    ) -> Iterator[tuple[Item, T | Failed]]:
        """Do the work on every item, as `Runner.each` does."""
        ray = self.check()
        with self._connected(ray):
            limit = self.jobs or PER_CORE * int(ray.cluster_resources().get("CPU", 1))
            remote = ray.remote(max_retries=RETRIES)(_work)
            guarded = ray.put(Guarded(work, file, self.seconds))
            running: dict[Any, Item] = {}
            pending = iter(items)
            while True:
                for item in islice(pending, limit - len(running)):
                    running[remote.remote(guarded, item)] = item
                if not running:
                    return
                for ready in ray.wait(list(running), num_returns=1)[0]:
                    item = running.pop(ready)
                    yield item, _result(ray, ready, file(item))

    @contextmanager
    def _connected(self, ray: Any) -> Generator[None]:
        """Connect to the cluster and disconnect at the end; an existing connection is kept."""
        if ray.is_initialized():
            yield
            return
        local = {"include_dashboard": False, "object_store_memory": STORE_BYTES, "num_cpus": self.jobs}
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        try:
            ray.init(address=self.address, **quiet, **(local if self.address == LOCAL else {}))
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError(f"--ray {self.address}: cannot connect to a cluster: {error}") from error
        try:
            yield
        finally:
            ray.shutdown()


def _work(guarded: Guarded, item: Any) -> Any:
    return guarded(item)


def _result(ray: Any, ready: Any, name: str) -> Any:
    try:
        return ray.get(ready)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError):
        return process_died(name)
    except ray.exceptions.RayError as error:
        first = str(error).strip().partition("\n")[0]
        return Failed(name, f"{name}: Ray failed: {type(error).__name__}: {first}")
