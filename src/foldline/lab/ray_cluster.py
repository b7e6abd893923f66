"""The same work on many files on a Ray cluster. Needs the extra `ray`."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any, Final

import msgspec

from foldline.errors import InputError
from foldline.lab.runner import Failed, Guarded, Item, T, died

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
