"""Where the work on many files runs: one protocol, kept by processes here and by a Ray cluster.

Each process here works on one file at a time: so when it dies, it is known over which.
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
        started = set(idle)  # an interrupt may come while one is neither idle nor known to run
        running: dict[Future[T | Failed], tuple[Item, ProcessPoolExecutor]] = {}
        try:
            while True:
                while idle and (some := list(islice(left, 1))):
                    process = idle.pop()
                    try:
                        future = process.submit(guarded, some[0])
                    except BrokenProcessPool:  # it died while it had nothing to do
                        started.add(process := _process())
                        future = process.submit(guarded, some[0])
                    running[future] = some[0], process
                if not running:
                    return
                for future in first_done(running, return_when=FIRST_COMPLETED).done:
                    item, process = running.pop(future)
                    try:
                        found = future.result()
                    except BrokenProcessPool:
                        found = died(file(item))
                        started.add(process := _process())
                    idle.append(process)
                    yield item, found
        finally:  # where it is abandoned half way, the command need not wait for what is under way
            for process in started:
                _kill(process)


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


# ---- on a Ray cluster: needs the extra `ray`

LOCAL: Final = "local"
AHEAD: Final = 2  # items given to each core ahead of time
RETRIES: Final = 1  # of an item whose worker died: a machine may leave the cluster
STORE_BYTES: Final = 128 * 1024 * 1024  # Ray's own memory for results, which are small
_ADDRESS: Final = re.compile(r"local|auto|ray://\S+|[^\s/]+:\d+")


class RayCluster(msgspec.Struct, frozen=True):
    """A runner on Ray: `local` starts one on this machine, `auto` or an address joins a running cluster.

    `jobs` is how many items run at once (None: one a core of the cluster), `seconds` the time that one item
    may take (None: any). Sessions and results are read and written by their paths, so all machines of a
    cluster must share them.
    """

    address: str = LOCAL
    jobs: int | None = None
    seconds: float | None = None

    def check(self) -> Any:
        """Return Ray; raises InputError where it is not installed, or the address cannot be one."""
        if not _ADDRESS.fullmatch(self.address):
            raise InputError(
                f"--ray {self.address}: not the address of a cluster: write --ray=local, --ray=auto, "
                "--ray=HOST:PORT or --ray=ray://HOST:PORT"
            )
        try:
            return import_module("ray")
        except ImportError as error:
            raise InputError("--ray needs Ray: pip install 'foldline[ray]'") from error

    def each(
        self, items: Iterable[Item], work: Callable[[Item], T], *, file: Callable[[Item], str] = str
    ) -> Iterator[tuple[Item, T | Failed]]:
        """Do the work on every item, as `Runner.each` says."""
        ray = self.check()
        with self._connected(ray):
            most = self.jobs or AHEAD * int(ray.cluster_resources().get("CPU", 1))
            remote = ray.remote(max_retries=RETRIES)(_work)
            guarded = ray.put(Guarded(work, file, self.seconds))
            running: dict[Any, Item] = {}
            left = iter(items)
            while True:
                for item in islice(left, most - len(running)):
                    running[remote.remote(guarded, item)] = item
                if not running:
                    return
                for ready in ray.wait(list(running), num_returns=1)[0]:
                    item = running.pop(ready)
                    yield item, _result(ray, ready, file(item))

    @contextmanager
    def _connected(self, ray: Any) -> Generator[None]:
        """Connect to the cluster and leave it at the end; a connection that is there already is kept."""
        if ray.is_initialized():
            yield
            return
        own = {"include_dashboard": False, "object_store_memory": STORE_BYTES, "num_cpus": self.jobs}
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        try:
            ray.init(address=self.address, **quiet, **(own if self.address == LOCAL else {}))
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise InputError(f"--ray {self.address}: no cluster can be used there: {error}") from error
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
        return died(name)
    except ray.exceptions.RayError as error:
        first = str(error).strip().partition("\n")[0]
        return Failed(name, f"{name}: Ray could not do it: {type(error).__name__}: {first}")
