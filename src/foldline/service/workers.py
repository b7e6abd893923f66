"""Several processes behind one socket, supervised: dead ones are replaced, and all are renewed one by one.

uvicorn does that. What is here: each worker makes its application, and ends with its supervisor and in time;
the supervisor says where they listen, and exits as the signal that ended it.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import FrameType
from typing import Final, NoReturn

import msgspec
from prometheus_client import multiprocess
from starlette.applications import Starlette
from uvicorn.supervisors.multiprocess import Multiprocess

from foldline.config import ServeSettings, settings
from foldline.errors import InputError
from foldline.service.app import Service, make_app
from foldline.service.metrics import SHARED
from foldline.service.server import YieldingConnection, configured, end_in_time, listen, url_of
from foldline.service.tokens import follows_file
from foldline.stores import find_store

log = logging.getLogger("foldline")

ANSWER_SECONDS: Final = 60  # that a worker may take to answer its supervisor
LOOK_SECONDS: Final = 0.5  # between two looks of a worker at whether its supervisor lives

Traced = Callable[[], AbstractContextManager[None]]


class WorkerApp(msgspec.Struct, frozen=True):
    """Makes the application in a worker; `traced` writes the spans of a process.

    With `follows` the tokens are those of the settings file, also for a worker that takes another's place.
    """

    serve: ServeSettings
    traced: Traced
    supervisor: int
    follows: bool

    def __call__(self) -> Starlette:
        """Return the application."""
        self.traced().__enter__()  # until the process ends
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ending(signal.getsignal(number)))
        threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        return make_app(self.serve, follows=self.follows)

    def _ending(self, server: Callable[[int, FrameType | None], object] | int | None) -> Callable[..., None]:
        def handle(number: int, frame: FrameType | None) -> None:
            end_in_time(number, self.serve)
            if callable(server):
                server(number, frame)

        return handle

    def _end_with_supervisor(self) -> None:
        while os.getppid() == self.supervisor:
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)


class Workers(Multiprocess):
    """Supervises `serve.workers` processes: SIGTERM ends them, SIGHUP replaces one after the other."""

    def __init__(self, serve: ServeSettings, ready: Callable[[str], None], traced: Traced) -> None:
        check(serve)
        self._held = listen(serve)
        self._held.listen(2048)
        self._ready = ready
        self._ended_by = 0
        config = configured(
            serve, WorkerApp(serve, traced, os.getpid(), follows_file(serve.tokens)), YieldingConnection
        )
        config.workers = serve.workers
        config.timeout_worker_healthcheck = ANSWER_SECONDS
        super().__init__(config, [self._held])
        for number in (signal.SIGINT, signal.SIGTERM):  # at once, also while workers are replaced
            signal.signal(number, self._end)

    def run(self) -> NoReturn:
        """Serve until a signal ends it; then exit, with the status that the signal stands for."""
        figures = tempfile.mkdtemp(prefix="foldline-figures-")
        os.environ[SHARED] = figures
        try:
            with self._held:
                super().run()
        finally:
            shutil.rmtree(figures, ignore_errors=True)
        sys.exit(128 + self._ended_by if self._ended_by else 1)

    def _end(self, number: int, frame: object) -> None:
        del frame
        self._ended_by = number
        self.should_exit.set()

    def init_processes(self) -> None:
        """Start the workers, and say where they listen once the first of them does."""
        super().init_processes()
        first = self.processes[0]
        if first.wait_until_ready(math.inf, self.should_exit):  # a busy machine may take minutes
            self._ready(url_of(self._held))
        elif first.exitcode is not None:  # the others would end like it
            self.should_exit.set()

    def restart_all(self) -> None:
        """Replace every worker: the next one begins to serve before an old one stops."""
        before = self._pids()
        super().restart_all()
        self._forget(before)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that are dead, or no longer answer."""
        before = self._pids()
        super().keep_subprocess_alive()
        for pid in self._forget(before):
            log.warning("worker %s has ended: another one takes its place", pid)

    def _pids(self) -> set[int]:
        return {one.pid or 0 for one in self.processes}

    def _forget(self, before: set[int]) -> set[int]:
        """Take workers that are gone out of the figures; return them."""
        gone = before - self._pids()
        for pid in gone:
            multiprocess.mark_process_dead(pid, os.environ[SHARED])  # pyright: ignore[reportUnknownMemberType]
        return gone


def check(serve: ServeSettings) -> None:
    """Raise InputError where several processes cannot share what is served, or it is set wrongly."""
    known = settings()
    store = find_store(serve.store or known.store)
    if getattr(store, "key_values", None) is None or not getattr(store, "shared", True):
        raise InputError(
            f"{serve.workers} workers need a store that processes share: {serve.store or known.store} is one "
            "process's own. Use sqlite:///FILE, or one worker"
        )
    Service(serve, known)
