"""Drafts as durable jobs on a real DBOS: a worker is killed while the model writes, and another goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from tests.service.api.client import Client, reply, user
from tests.service.supervised import supervised
from tests.support.gateway_agents import SUMMARY
from tests.support.live import WINDOW
from tests.support.postgres import postgres_server, postgres_url  # noqa: F401
from tests.support.waiting import until

from foldline.config import ServeSettings
from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.errors import StoreError
from foldline.service import presence
from foldline.service.draft_jobs import SPACE, DraftRow, StoredJobs, unpacked
from foldline.service.presence import Presence
from foldline.session.jobs import DraftJob
from foldline.stores import open_store
from foldline.stores.key_values import MemoryKeyValues
from foldline.testing import Scripted, serve_in_thread

pytest.importorskip("dbos", reason="needs the extra foldline[jobs]")
from foldline.service import durable_jobs

FILLER = "It works as it was asked for, and every word of it is needed. " * 30


class Summaries(Scripted):
    """A model that writes summaries; the first of them only when it is told to."""

    def __init__(self):
        super().__init__(lambda asked: SUMMARY, window=14_000)
        self.paid = []  # when each was asked for
        self.begun, self.may_answer = threading.Event(), threading.Event()

    async def answer(self, asked):
        self.paid.append(time.time())
        self.begun.set()
        if len(self.paid) == 1:
            await asyncio.to_thread(self.may_answer.wait, 120)
        return await super().answer(asked)


@pytest.fixture(params=["sqlite", "postgres"])
def places(request, tmp_path):
    """The URLs of a store and of a database for jobs."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        return url, url.partition("?schema=")[0].partition("&schema=")[0]
    return f"sqlite:///{tmp_path / 's.db'}", f"sqlite:///{tmp_path / 'jobs.db'}"


@contextmanager
def running(folder, upstream, places, workers):
    """Run the service over these places, its model at a URL."""
    store, jobs = places
    options = ("--workers", str(workers), "--store", store, "--jobs", jobs, "--window", "14000")
    model = f"openai-compatible:scripted@{upstream}/v1"
    with supervised(folder, *options, "--model", model) as service:
        client = Client(service.url)
        try:
            yield service, client
        finally:
            client.close()


def talk_until_a_draft_begins(client, model, store):
    """Say something until a summary is being written in the background; nobody says anything then."""
    client.begin("one")
    for number in range(60):
        client.say("one", user(f"Question {number}. {FILLER}"), reply(f"Answer {number}. {FILLER}"))
        client.post("/sessions/one/context")
        if asyncio.run(row_in(store)) is not None:
            assert model.begun.wait(60)
            return
    raise AssertionError("no draft was begun")


async def compactions(url):
    store = open_store(url)
    found = [entry async for entry in store.path("one") if isinstance(entry, Compacted)]
    assert await store.verify() == []
    await store.close()
    return found


async def row_in(url):
    """The draft of the session as it is stored."""
    store = open_store(url)
    raw = await store.key_values.get(SPACE, "one")
    await store.close()
    return None if raw is None else unpacked(raw)


def ready(url):
    """Wait until a draft stands in the store."""
    deadline = time.monotonic() + 90
    while True:
        row = asyncio.run(row_in(url))
        if row is not None and row.draft is not None:
            return row
        assert time.monotonic() < deadline, row and (row.id, row.begun, row.error, row.nothing)
        time.sleep(0.2)


def talk_until_it_is_folded(client, number=100):
    """Say more until a fold is committed."""
    for more in range(number, number + 30):
        client.say("one", user(f"Question {more}. {FILLER}"), reply(f"Answer {more}. {FILLER}"))
        client.post("/sessions/one/context")
        if client.get("/sessions/one").json()["info"]["compactions"]:
            return
    raise AssertionError("nothing was folded")


def check_paid_twice(model, url):
    [done] = asyncio.run(compactions(url))
    assert done.receipt.repeated == 1
    assert done.checkpoint.summary.startswith("## Goal")
    assert len(model.paid) == 2


@pytest.mark.slow
def test_a_draft_whose_process_is_killed_comes_after_a_restart_and_is_paid_twice_at_most(tmp_path):
    model = Summaries()
    places = f"sqlite:///{tmp_path / 's.db'}", f"sqlite:///{tmp_path / 'jobs.db'}"
    with serve_in_thread(model) as url:
        with running(tmp_path, url, places, workers=1) as (service, client):
            talk_until_a_draft_begins(client, model, places[0])
            service.process.kill()
            service.process.wait()
        with running(tmp_path, url, places, workers=1) as (_, client):
            assert ready(places[0]).begun == 2  # though nobody asks for anything
            model.may_answer.set()
            talk_until_it_is_folded(client)
    check_paid_twice(model, places[0])


@pytest.mark.soak
def test_a_draft_whose_workers_are_killed_comes_and_is_paid_twice_at_most(tmp_path, places):
    model = Summaries()
    with serve_in_thread(model) as url, running(tmp_path, url, places, workers=2) as (service, client):
        talk_until_a_draft_begins(client, model, places[0])
        before = service.workers()
        for pid in before:
            service.send(signal.SIGKILL, pid)
        service.renewed(before)
        assert ready(places[0]).begun == 2
        model.may_answer.set()
        talk_until_it_is_folded(client)
    check_paid_twice(model, places[0])


@pytest.mark.soak
def test_a_draft_that_nothing_disturbs_is_paid_once(tmp_path, places):
    model = Summaries()
    model.may_answer.set()
    with serve_in_thread(model) as url, running(tmp_path, url, places, workers=2) as (_, client):
        talk_until_a_draft_begins(client, model, places[0])
        assert ready(places[0]).begun == 1
        talk_until_it_is_folded(client)
    [done] = asyncio.run(compactions(places[0]))
    assert done.receipt.repeated == 0
    assert len(model.paid) == 1


# ---- what may go wrong between the two databases


def some_job():
    boundary = Compacted("", None, Checkpoint("the work", "the work"), Receipt("threshold"))
    return DraftJob(
        "one", None, FoldRequest(PRESETS["foldline"], WINDOW, "threshold"), 1, Draft(boundary, (), None)
    )


def asked_by(jobs):
    return DraftRow(jobs.presence.id, 0, None, "t-1", some_job())


def two_workers(values=None):
    values = values or MemoryKeyValues()
    return [StoredJobs(Presence(values)) for _ in range(2)]


async def closed(*jobs):
    for one in jobs:
        await one.close()
        await one.presence.close()


async def test_a_job_that_its_worker_had_no_time_to_ask_for_blocks_nobody():
    mine, dead = two_workers()
    assert isinstance(await dead.claim("one", asked_by(dead)), DraftRow)
    assert await mine.find("one") == "making"
    waiting = asyncio.create_task(mine.made_elsewhere("one", "t-1"))
    await dead.presence.close()
    assert await waiting is None
    assert await mine.find("one") is None
    taken = await mine.claim("one", DraftRow(mine.presence.id, 0, None, "t-2", some_job()))
    assert isinstance(taken, DraftRow)
    assert (taken.id, taken.begun) == ("t-2", 0)
    await closed(mine)


class Away(MemoryKeyValues):
    """Values that are away for some looks."""

    looks = 0

    async def get(self, space, key):
        if space == SPACE and self.looks:
            self.looks -= 1
            raise StoreError("away")
        return await super().get(space, key)


async def test_a_job_waits_for_a_store_that_is_away(monkeypatch, tmp_path):
    monkeypatch.setattr(durable_jobs, "RECOVERY_SECONDS", 0.01)
    values = Away()
    mine, _ = two_workers(values)
    made = []

    async def make(*given):
        made.append(given)
        return Nothing("nothing_new")

    jobs = durable_jobs.DurableJobs(
        ServeSettings(), f"sqlite:///{tmp_path}/j.db", mine.presence, lambda _: mine, make
    )
    assert isinstance(await mine.claim("one", asked_by(mine)), DraftRow)
    values.looks = 3
    await jobs._run("t", "one", "t-1")
    assert len(made) == 1
    assert await mine.made_elsewhere("one", "t-1") == Nothing("nothing_new")
    await closed(mine)


async def test_a_job_of_a_tenant_is_at_work_while_its_worker_lives(tmp_path):
    """A tenant's row stands in a store of its own, where its worker is known by another sign."""
    main, tenant = Presence(MemoryKeyValues()), StoredJobs(Presence(MemoryKeyValues()))
    go, begun = asyncio.Event(), asyncio.Event()

    async def make(*given):
        begun.set()
        await go.wait()
        return Nothing("nothing_new")

    jobs = durable_jobs.DurableJobs(
        ServeSettings(), f"sqlite:///{tmp_path}/j.db", main, lambda _: tenant, make
    )
    assert isinstance(await tenant.claim("one", asked_by(tenant)), DraftRow)
    work = asyncio.create_task(jobs._run("t", "one", "t-1"))
    await begun.wait()
    waiting = asyncio.create_task(tenant.made_elsewhere("one", "t-1"))
    await asyncio.sleep(0.6)
    assert not waiting.done()
    assert await tenant.find("one") == "making"
    go.set()
    await work
    assert await waiting == Nothing("nothing_new")
    await closed(tenant)


class Full(MemoryKeyValues):
    """Values that take nothing new of a draft for a while."""

    full = False

    async def replace(self, space, key, old, new, *, seconds):
        if self.full and space == SPACE:
            raise StoreError("away")
        return await super().replace(space, key, old, new, seconds=seconds)

    async def delete(self, space, key, old=None):
        if self.full and space == SPACE:
            raise StoreError("away")
        return await super().delete(space, key, old)


async def test_the_place_of_a_draft_that_could_not_be_stored_is_free_when_the_store_is_back(monkeypatch):
    monkeypatch.setattr(presence, "RENEWAL_SECONDS", 0.05)
    values = Full()
    mine, other = two_workers(values)
    boundary = Compacted("", None, Checkpoint("the work", "the work"), Receipt("threshold"))

    async def here():
        values.full = True
        return boundary

    assert await mine.make(some_job(), here) is not None
    assert await other.find("one") == "making"
    values.full = False

    async def free():
        return await other.find("one") is None

    await until(free)
    await closed(mine, other)


@pytest.mark.slow
def test_what_ended_is_forgotten(tmp_path):
    """The database of the jobs names sessions, and grows with nothing."""
    code = """
import asyncio, sys, time
from foldline.config import ServeSettings
from foldline.service.durable_jobs import DBOS, DurableJobs, TenantJobs
from foldline.service.draft_jobs import StoredJobs
from foldline.service.presence import Presence
from foldline.stores.key_values import MemoryKeyValues
from foldline.core.decide.ask import Nothing
from tests.service.test_durable_drafts import some_job

async def make(*given):
    return Nothing("nothing_new")

async def main():
    mine = StoredJobs(Presence(MemoryKeyValues()))
    jobs = DurableJobs(ServeSettings(), sys.argv[1], mine.presence, lambda name: mine, make)
    await jobs.begin()
    found = await TenantJobs(jobs, mine, "t", None).make(some_job(), None)
    await jobs.forget(time.time() - 60)
    while [one for one in await DBOS.list_workflows_async() if one.status != "SUCCESS"]:
        await asyncio.sleep(0.1)
    before = len(await DBOS.list_workflows_async())
    await jobs.forget(time.time() + 60)
    print(found.why, before, len(await DBOS.list_workflows_async()))
    await jobs.close()
    await mine.presence.close()

asyncio.run(main())
"""
    url = f"sqlite:///{tmp_path / 'new/jobs.db'}"
    run = subprocess.run(
        [sys.executable, "-c", code, url], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.stdout.split() == ["nothing_new", "1", "0"], run.stderr
    made = [tmp_path / "new", *(tmp_path / "new").iterdir()]
    assert {one.stat().st_mode & 0o777 for one in made} == {0o700, 0o600}
