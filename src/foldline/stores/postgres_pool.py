"""The connections of a PostgreSQL store, and the threads that use them.

The rules of the log are synchronous functions, shared by all databases. So the connections are synchronous
too, each in a thread, and any event loop can await their results. If the server cannot be reached, the first
retry is after a twentieth of a second, so that the store works again soon after the server does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, TypeVar

import psycopg

from foldline.errors import StoreError
from foldline.stores.database import Contended
from foldline.stores.postgres_connection import (
    Connection,
    Target,
    connect,
    contention_error,
    is_conflict,
    is_worth_a_retry,
    store_error,
)
from foldline.stores.postgres_database import PostgresDatabase, prepare

T = TypeVar("T")
_IDLE: Final = 60.0  # seconds after which an idle connection is closed
_FIRST_WAIT: Final = 0.005  # seconds, doubled at each retry
_AWAY_WAIT: Final = 0.05  # the first wait for a server that cannot be reached
_LONGEST_WAIT: Final = 0.5


class Pool:
    """Runs work on connections to one target, each used by one thread at a time."""

    def __init__(self, target: Target, timeout: float) -> None:
        self.target = target
        self.timeout = timeout
        self._threads = ThreadPoolExecutor(target.connections, thread_name_prefix="foldline-postgres")
        self._idle: deque[tuple[Connection, float]] = deque()
        self._abandoned: set[Future[Any]] = set()  # writes in progress whose callers were cancelled
        self._trimmer: threading.Timer | None = None
        self._prepared = False
        self._preparing = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        weakref.finalize(self, _close, self._idle, self._process)

    async def run(self, work: Callable[[PostgresDatabase], T], *, writes: bool = False) -> T:
        """Run work in a thread, and again after a conflict or a lost connection.

        After `timeout` seconds, the wait for a thread included, it is not started again: StoreError.
        Cancelling drops the work if it has not begun, otherwise only its result. Later work then waits until
        work that `writes` has ended, since it runs in another thread and could overtake it.
        """
        if abandoned := list(self._abandoned):
            await asyncio.wait([asyncio.wrap_future(future) for future in abandoned])
            if self._closed:
                raise StoreError("this store is closed")
        future = self._threads.submit(self._work, work, time.monotonic() + self.timeout)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if writes and not future.cancel():
                self._abandoned.add(future)
                future.add_done_callback(self._abandoned.discard)
            raise

    async def close(self) -> None:
        """Close the connections once earlier work is done."""
        self._closed = True
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, self._end))

    def _end(self) -> None:
        self._threads.shutdown(wait=True)
        if self._trimmer is not None:
            self._trimmer.cancel()
        _close(self._idle, self._process)

    def _work(self, work: Callable[[PostgresDatabase], T], deadline: float) -> T:
        if time.monotonic() > deadline:
            raise StoreError(
                f"{self.target.name}: all {self.target.connections} connections were in use for "
                f"{self.timeout:g} seconds. Nothing was done; try again."
            )
        wait = _FIRST_WAIT
        while True:
            connection: Connection | None = None
            try:
                connection = self._take()
                return work(PostgresDatabase(connection))
            except Contended as error:
                if time.monotonic() > deadline:
                    raise contention_error(self.target, self.timeout) from error
            except psycopg.Error as error:
                late = time.monotonic() > deadline
                if late or not is_worth_a_retry(error, connection):
                    raise store_error(
                        error,
                        self.target,
                        reached=connection is not None and not connection.broken,
                        timeout=self.timeout,
                    ) from error
                if not is_conflict(error):
                    wait = max(wait, _AWAY_WAIT)
                    _close(self._idle, self._process)  # the others were cut off too, or lead to a standby
                    if connection is not None:
                        connection.close()
            finally:
                self._give_back(connection)
            time.sleep(wait * random.uniform(0.5, 1.5))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _take(self) -> Connection:
        with contextlib.suppress(IndexError):
            return self._idle.pop()[0]
        connection = connect(self.target, self.timeout)
        try:
            with self._preparing:
                if not self._prepared:
                    prepare(connection, self.target)
                    self._prepared = True
        except BaseException:
            connection.close()
            raise
        return connection

    def _give_back(self, connection: Connection | None) -> None:
        """Keep a connection for later work, until it has been idle for a while."""
        if connection is None:
            return
        if connection.broken or connection.closed:
            connection.close()
            return
        self._idle.append((connection, time.monotonic()))
        if self._trimmer is None:
            self._trim()

    def _trim(self) -> None:
        """Close the connections that were idle for a while; check again later if others are left."""
        with contextlib.suppress(IndexError):
            while self._idle[0][1] < time.monotonic() - _IDLE:
                self._idle.popleft()[0].close()
        self._trimmer = None
        if self._idle and not self._closed:
            self._trimmer = threading.Timer(_IDLE, self._trim)
            self._trimmer.daemon = True
            self._trimmer.start()


def _close(idle: deque[tuple[Connection, float]], process: int) -> None:
    if process != os.getpid():
        return
    with contextlib.suppress(IndexError):
        while True:
            idle.pop()[0].close()
