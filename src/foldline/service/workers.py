"""Several processes behind one socket, supervised: dead ones are replaced, and all are renewed one by one."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NoReturn

import msgspec
from prometheus_client import multiprocess
from starlette.applications import Starlette
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from foldline.config import ServeSettings, settings
from foldline.errors import InputError
from foldline.service.app import Service, make_app
from foldline.service.connection import YieldingConnection
from foldline.service.metrics import SHARED
from foldline.service.presence import GROUP
from foldline.service.server import EndingServer, configured, listen, url_of
from foldline.stores import find_store

log = logging.getLogger("foldline")

START_SECONDS: Final = 60  # that a worker may take to start, or to answer its supervisor
FAILURES: Final = 5  # workers in a row that end before they serve, after which the supervisor gives up

Traced = Callable[[], AbstractContextManager[None]]


class WorkerApp(msgspec.Struct, frozen=True):
    """Makes the application in a worker; `traced` writes the spans of a process."""

    serve: ServeSettings
    traced: Traced

    def __call__(self) -> Starlette:
        """Return the application."""
        self.traced().__enter__()  # until the process ends
        return make_app(self.serve)


class WorkerProcess(Process):
    """One process; it ends when its supervisor does."""

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, in the new process."""
        self.parent_conn.close()  # so that the other end is seen to be closed
        self._server = EndingServer(self.config)
        super().target(sockets)

    def always_pong(self) -> None:
        """Answer the supervisor."""
        try:
            super().always_pong()
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)


class Workers(Multiprocess):
    """Supervises `serve.workers` processes: SIGTERM ends them, SIGHUP replaces one after the other."""

    def __init__(self, serve: ServeSettings, ready: Callable[[str], None], traced: Traced) -> None:
        check(serve)
        self._held = listen(serve)
        self._held.listen(2048)
        self._ready = ready
        self._ended_by = 0
        self._failures = 0
        self._serving: set[int] = set()
        config = configured(serve, WorkerApp(serve, traced), YieldingConnection)
        config.workers = serve.workers
        config.timeout_worker_healthcheck = START_SECONDS
        super().__init__(config, [self._held])
        for number in (signal.SIGINT, signal.SIGTERM):  # at once, also while workers are replaced
            signal.signal(number, self._end)

    def run(self) -> NoReturn:
        """Serve until a signal ends it; then exit, with the status that the signal stands for."""
        figures = tempfile.mkdtemp(prefix="foldline-figures-")
        os.environ[SHARED] = figures
        os.environ[GROUP] = secrets.token_hex(8)
        try:
            with self._held:
                super().run()
        finally:
            shutil.rmtree(figures, ignore_errors=True)
        sys.exit(128 + self._ended_by if self._ended_by else 1)

    def init_processes(self) -> None:
        """Start the workers, and say where they listen once the first of them does."""
        self.processes = [self._started() for _ in range(self.processes_num)]
        if self.processes[0].wait_until_ready(START_SECONDS, self.should_exit):
            self._serving.add(self.processes[0].pid or 0)
            self._ready(url_of(self._held))
        elif self.processes[0].exitcode is not None:  # the others would end like it
            self.should_exit.set()

    def restart_all(self) -> None:
        """Replace every worker: the next one begins to serve before an old one stops."""
        for place, old in enumerate(list(self.processes)):
            if self.should_exit.is_set():
                return
            new = self._started()
            if not new.wait_until_ready(START_SECONDS, self.should_exit):
                new.kill()
                new.join()
                log.error("a new worker did not start: worker %s and those after it stay", old.pid)
                return
            old.terminate()
            old.process.join((self.config.timeout_graceful_shutdown or 0) + START_SECONDS)
            if old.process.is_alive():  # it hangs, or waits for what does
                log.warning("worker %s did not end: it is killed", old.pid)
                old.kill()
                old.join()
            self._serving.add(old.pid or 0)  # it may have had no time to say so
            self._gone(old)
            self.processes[place] = new

    def keep_subprocess_alive(self) -> None:
        """Replace workers that are dead, or no longer answer."""
        for place, one in enumerate(self.processes):
            if self.should_exit.is_set() or self._lives(one):
                continue
            one.kill()
            one.join()
            self._gone(one)
            log.warning("worker %s ended with %s: another one takes its place", one.pid, one.exitcode)
            if self._failures >= FAILURES:
                log.error("workers end before they serve: the service stops")
                self.should_exit.set()
                return
            self.processes[place] = self._started()

    def _end(self, number: int, frame: object) -> None:
        del frame
        self._ended_by = number
        self.should_exit.set()

    def _started(self) -> WorkerProcess:
        one = WorkerProcess(self.config, self.sockets)
        one.start()
        return one

    def _lives(self, one: Process) -> bool:
        """Return whether a worker is alive and answers, and remember those that serve."""
        if one.process.is_alive() and one.is_ready(timeout=START_SECONDS):
            self._serving.add(one.pid or 0)
            self._failures = 0
            return True
        return one.is_alive(timeout=START_SECONDS)

    def _gone(self, one: Process) -> None:
        pid = one.pid or 0
        self._failures += pid not in self._serving
        self._serving.discard(pid)
        multiprocess.mark_process_dead(pid, os.environ[SHARED])  # pyright: ignore[reportUnknownMemberType]


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
