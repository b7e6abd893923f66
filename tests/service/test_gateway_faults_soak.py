"""Agents through the gateway of several workers on PostgreSQL, while workers are killed and the database restarts.

Run by `make soak`. FOLDLINE_FAULTS="CLIENTS SECONDS" sets other sizes than 60 clients and one minute.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import tempfile
from pathlib import Path

import httpx2
import msgspec
import pytest
from tests.service.supervised import supervised
from tests.service.test_gateway_soak import Client, check, says
from tests.stores.test_postgres import restart
from tests.support.postgres import start

from foldline.testing import Scripted, serve

WORKERS = 4
KILLED_EVERY = 10.0  # seconds
MOST_FAILED = 0.25  # of all requests: on a busy machine a worker takes seconds to start


class Faults(msgspec.Struct, frozen=True):
    """How many clients ask for how many seconds; how many kills there were, and what came of it."""

    clients: int
    seconds: float
    kills: int
    requests: int
    failed: int
    longest: float
    folds: int


async def kill_workers(service, until):
    """Kill a worker every few seconds; returns how many."""
    chance, count, clock = random.Random(7), 0, asyncio.get_running_loop().time
    while clock() < until - KILLED_EVERY:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * KILLED_EVERY)
        service.send(signal.SIGKILL, chance.choice(service.workers()))
        count += 1
    return count


async def walked(home, server, count, seconds):
    uri = server.get_uri()
    async with serve(Scripted(says, window=200_000, keep=10)) as upstream:
        options = ["--workers", str(WORKERS), "--store", uri, "--summaries", "offline", "--window", "6000"]
        with supervised(home, *options, "--openai-upstream", f"{upstream}/v1") as service:
            clients = [Client(number, service.url) for number in range(count)]
            clock = asyncio.get_running_loop().time
            until = clock() + seconds
            limits = httpx2.Limits(max_connections=None)
            async with httpx2.AsyncClient(timeout=60, limits=limits) as http:
                async with asyncio.TaskGroup() as tasks:
                    for client in clients:
                        tasks.create_task(client.go_on(http, lambda: clock() < until))
                    killing = tasks.create_task(kill_workers(service, until))
                    await asyncio.sleep(seconds / 2)
                    await asyncio.to_thread(restart, server, "fast")
                kills = killing.result()
            assert service.stop() == 128 + signal.SIGTERM
    return Faults(
        clients=count,
        seconds=seconds,
        kills=kills,
        requests=sum(len(one.acknowledged) for one in clients),
        failed=sum(one.failed for one in clients),
        longest=max(one.longest for one in clients),
        folds=await check(uri, clients),
    )


@pytest.mark.soak
async def test_nothing_is_lost_where_workers_die_and_the_database_restarts(tmp_path, record_property):
    count, seconds = map(int, os.environ.get("FOLDLINE_FAULTS", "60 60").split())
    # not below tmp_path, which the server's own user may not enter
    server = start(Path(tempfile.mkdtemp(prefix="foldline-own-")) / "data")
    try:
        done = await walked(tmp_path, server, count, seconds)
    finally:
        server.cleanup()
    print(done)  # noqa: T201  for the note
    record_property("faults", str(done))
    assert done.kills > 0
    assert done.folds >= count
    assert done.failed <= MOST_FAILED * (done.requests + done.failed)
