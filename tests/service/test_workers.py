"""`foldline serve --workers N`: workers are killed, ended and renewed while clients go on."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext

import httpx2
import pytest
from tests.service.api.client import api, reply, user
from tests.service.served import Held
from tests.service.supervised import supervised
from tests.support import patient
from tests.support.waiting import wait_until

import foldline
from foldline.config import ServeSettings
from foldline.service.workers import Workers


class Writer(threading.Thread):
    """A client that appends one message after the other to its session, each under a key of its own."""

    def __init__(self, url, name, stop):
        super().__init__(daemon=True)
        self.name = name
        self.said = 0
        self.broken = []  # requests without an answer, or with a wrong one
        self._stop_all = stop
        self._client = httpx2.Client(base_url=f"{url}/api", timeout=60)

    def run(self):
        with self._client:
            self._send("/sessions", {"id": self.name})
            while not self._stop_all.is_set():
                make = reply if self.said % 2 else user
                self._send(f"/sessions/{self.name}/messages", {"messages": [make(f"Number {self.said}.")]})
                self.said += 1

    def _send(self, path, body):
        """Send a request until it is answered; its key makes that safe."""
        key = f"{self.name} {self.said} {path}"
        for attempt in itertools.count():
            try:
                found = self._client.post(path, json=body, headers={"Idempotency-Key": key})
                if found.status_code == 201:
                    break
                self.broken.append((path, found.status_code, found.text))
            except httpx2.TransportError as error:
                self.broken.append((path, repr(error)))
            assert attempt < 200, self.broken[-1]
            time.sleep(0.1)


@contextmanager
def writers(url, count):
    stop = threading.Event()
    all_ = [Writer(url, f"w{number}", stop) for number in range(count)]
    for one in all_:
        one.start()
    try:
        yield all_
    finally:
        stop.set()
        for one in all_:
            one.join(60)
            assert not one.is_alive()


def answer_again(all_):
    """Wait until each writer has been answered some more."""
    before = [one.said for one in all_]
    wait_until(lambda: all(one.said > said + 2 for one, said in zip(all_, before, strict=True)))


async def stored(file):
    store = foldline.stores.open_store(f"sqlite:///{file}")
    assert await store.verify() == []
    found = {}
    for info in await store.sessions():
        path = [entry async for entry in store.path(info.id)]
        found[info.id] = [entry.message.text for entry in path if hasattr(entry, "message")]
    await store.close()
    return found


@pytest.mark.slow
def test_workers_are_renewed_without_a_failed_request_and_killed_without_a_lost_message(tmp_path):
    file = tmp_path / "s.db"
    options = ("--workers", "2", "--store", f"sqlite:///{file}", "--summaries", "offline")
    with supervised(tmp_path, *options) as service:
        first = service.workers()
        assert len(first) == 2
        with writers(service.url, 3) as all_:
            wait_until(lambda: all(one.said > 5 for one in all_))
            service.send(signal.SIGHUP)
            service.renewed(first)
            second = service.workers()
            service.send(signal.SIGTERM, second[0])  # as an operator, or the system, may
            service.renewed(second[:1])
            answer_again(all_)
            broken = [one.broken for one in all_]
            assert broken == [[], [], []]
            service.send(signal.SIGKILL, second[1])
            service.renewed(second)
            answer_again(all_)
        answered = {one.name: one.said for one in all_}
        figures = patient.get(f"{service.url}/metrics").text
        assert service.stop() == 128 + signal.SIGTERM
    counted = next(line for line in figures.splitlines() if 'status="201"' in line)
    assert float(counted.split()[-1]) >= sum(answered.values())  # of workers that are gone, too
    assert asyncio.run(stored(file)) == {
        name: [f"Number {number}." for number in range(count)] for name, count in answered.items()
    }


@pytest.mark.soak
def test_workers_end_with_their_supervisor(tmp_path):
    options = ("--workers", "2", "--store", f"sqlite:///{tmp_path / 's.db'}", "--summaries", "offline")
    with supervised(tmp_path, *options) as service:
        service.process.kill()
        service.process.wait(60)
        deadline = time.monotonic() + 60
        with pytest.raises(httpx2.TransportError):  # noqa: PT012 - until nobody answers
            while time.monotonic() < deadline:
                httpx2.get(f"{service.url}/health", timeout=60)
                time.sleep(0.1)


@pytest.mark.slow
def test_the_address_is_told_however_long_the_start_takes(tmp_path, monkeypatch):
    begun, clock = time.monotonic(), time.monotonic
    told = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    serve = ServeSettings(port=0, workers=2, store=f"sqlite:///{tmp_path / 's.db'}", summaries="offline")
    workers = Workers(serve, told.append, nullcontext)
    monkeypatch.setattr(time, "monotonic", lambda: begun + 1_000 * (clock() - begun))  # an hour in seconds
    try:
        workers.init_processes()
    finally:
        workers.terminate_all()
        workers.join_all()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert told


def test_a_store_of_one_process_is_refused(tmp_path):
    command = [
        sys.executable,
        "-m",
        "foldline",
        "serve",
        "--workers",
        "2",
        "--store",
        "memory://",
        "--port",
        "0",
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert found.returncode == 2
    assert "belongs to one process" in found.stderr


def test_what_is_too_much_at_once_is_refused_and_health_is_told():
    model, told = Held(lambda asked: "Yes."), []
    with api(model, at_once=1) as (client, _):
        client.begin("one")
        asking = threading.Thread(target=lambda: told.append(client.turn("one", "Hello?")))
        asking.start()
        assert model.begun.wait(60)
        refused = client.get("/sessions", status=503)
        assert refused.headers["retry-after"] == "1"
        assert patient.get(f"{client.url}/web/").status_code == 503
        for path in ("health", "ready", "metrics"):
            assert patient.get(f"{client.url}/{path}").status_code == 200
        model.gate.open()
        asking.join(60)
        assert told[0][-1][1]["how"] == "done"
        # the end of the stream was read; it has to end
        wait_until(lambda: client.http.get("/sessions").status_code != 503)
