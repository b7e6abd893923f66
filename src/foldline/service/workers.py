"""Several worker processes behind one socket, supervised by uvicorn: it replaces dead ones and restarts all.

Added here: each worker ends with its supervisor and within a time limit; the supervisor reports the URL, and
exits with the status of the signal that ended it.
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
from foldline.service.server import YieldingConnection, end_in_time, listen, url_of, uvicorn_config
from foldline.service.tokens import follows_file
from foldline.stores import find_store

log = logging.getLogger("foldline")

ANSWER_SECONDS: Final = 60  # for a worker to answer its supervisor
LOOK_SECONDS: Final = 0.5  # between a worker's checks of its supervisor

Traced = Callable[[], AbstractContextManager[None]]
Handler = Callable[[int, FrameType | None], None]


class WorkerApp(msgspec.Struct, frozen=True):
    """Creates the application in a worker; `traced` exports the process's spans.

    With `follows` changes in the settings file apply to the tokens, also in a replacement worker.
    """

    serve: ServeSettings
    traced: Traced
    supervisor: int
    follows: bool

    def __call__(self) -> Starlette:
        """Return the application."""
        self.traced().__enter__()  # until the process ends
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._limit_time(signal.getsignal(number)))
        threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        return make_app(self.serve, follows=self.follows)

    def _limit_time(self, server: Callable[[int, FrameType | None], object] | int | None) -> Handler:
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
    """Supervises `serve.workers` processes: SIGTERM ends them, SIGHUP replaces them one by one."""

    def __init__(self, serve: ServeSettings, ready: Callable[[str], None], traced: Traced) -> None:
        check(serve)
        self._socket = listen(serve)
        self._socket.listen(2048)
        self._ready = ready
        self._ended_by = 0
        worker = WorkerApp(serve, traced, os.getpid(), follows_file(serve.tokens))
        config = uvicorn_config(serve, worker, YieldingConnection)
        config.workers = serve.workers
        config.timeout_worker_healthcheck = ANSWER_SECONDS
        super().__init__(config, [self._socket])
        for number in (signal.SIGINT, signal.SIGTERM):  # handled at once, even while workers are replaced
            signal.signal(number, self._end)

    def run(self) -> NoReturn:
        """Serve until a signal; then exit with 128 plus the number of that signal."""
        figures = tempfile.mkdtemp(prefix="foldline-figures-")
        os.environ[SHARED] = figures
        try:
            with self._socket:
                super().run()
        finally:
            shutil.rmtree(figures, ignore_errors=True)
        sys.exit(128 + self._ended_by if self._ended_by else 1)

    def _end(self, number: int, frame: object) -> None:
        del frame
        self._ended_by = number
        self.should_exit.set()

    def init_processes(self) -> None:
        """Start the workers, and report the URL once the first of them is ready."""
        super().init_processes()
        first = self.processes[0]
        if first.wait_until_ready(math.inf, self.should_exit):  # a busy machine may take minutes
            self._ready(url_of(self._socket))
        elif first.exitcode is not None:  # the others would fail too
            self.should_exit.set()

    def restart_all(self) -> None:
        """Replace every worker; each new one serves before an old one stops."""
        before = self._pids()
        super().restart_all()
        self._drop_metrics(before)

    def keep_subprocess_alive(self) -> None:
        """Replace workers that are dead or do not answer."""
        before = self._pids()
        super().keep_subprocess_alive()
        for pid in self._drop_metrics(before):
            log.warning("worker %s ended and was replaced", pid)

    def _pids(self) -> set[int]:
        return {process.pid or 0 for process in self.processes}

    def _drop_metrics(self, before: set[int]) -> set[int]:
        """Remove ended workers from the metrics; return their process ids."""
        gone = before - self._pids()
        for pid in gone:
            multiprocess.mark_process_dead(pid, os.environ[SHARED])  # pyright: ignore[reportUnknownMemberType]
        return gone


def check(serve: ServeSettings) -> None:
    """Raise InputError if the store cannot be shared by processes, or a setting is wrong."""
    known = settings()
    url = serve.store or known.store
    store = find_store(url)
    if getattr(store, "key_values", None) is None or not getattr(store, "shared", True):
        raise InputError(
            f"{serve.workers} workers need a store that processes can share: {url} belongs to one process. "
            "Use sqlite:///FILE, or one worker"
        )
    Service(serve, known)
