"""Drafts that outlive their worker: it is killed while the model writes, and another one goes on."""

from __future__ import annotations

import asyncio
import random
import signal
import threading
import time
from contextlib import contextmanager

import msgspec
import pytest
from tests.service.api.client import Client, reply, user
from tests.service.supervised import supervised
from tests.support.gateway_agents import SUMMARY
from tests.support.live import WINDOW
from tests.support.postgres import postgres_server, postgres_url  # noqa: F401
from tests.support.values import MemoryKeyValues
from tests.support.waiting import until

from foldline.core.checkpoint.request import Prefix
from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.errors import CompactionFailed, StoreError
from foldline.service import presence
from foldline.service.jobs.drafts import JOBS, ROWS, DraftRow, StoredDrafts
from foldline.service.presence import Presence
from foldline.session.jobs import DraftJob
from foldline.stores import open_store
from foldline.stores.key_values import LARGEST, unpack
from foldline.testing import Scripted, serve_in_thread

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
def store(request, tmp_path):
    """The URL of a store."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path / 's.db'}"


@contextmanager
def running(folder, upstream, store, workers):
    """Run the service over a store, its model at a URL."""
    options = ("--workers", str(workers), "--store", store, "--window", "14000")
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
    raw = await store.key_values.get(ROWS, "one")
    await store.close()
    return None if raw is None else unpack(raw, DraftRow)


def ready(url):
    """Wait until a draft stands in the store."""
    deadline = time.monotonic() + 90
    while True:
        row = asyncio.run(row_in(url))
        if row is not None and row.draft is not None:
            return row
        assert time.monotonic() < deadline, row
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
    store = f"sqlite:///{tmp_path / 's.db'}"
    with serve_in_thread(model) as url:
        with running(tmp_path, url, store, workers=1) as (service, client):
            talk_until_a_draft_begins(client, model, store)
            service.process.kill()
            service.process.wait()
        with running(tmp_path, url, store, workers=1) as (_, client):
            assert ready(store).begun == 2  # though nobody asks for anything
            model.may_answer.set()
            talk_until_it_is_folded(client)
    check_paid_twice(model, store)


@pytest.mark.soak
def test_a_draft_whose_workers_are_killed_comes_and_is_paid_twice_at_most(tmp_path, store):
    model = Summaries()
    with serve_in_thread(model) as url, running(tmp_path, url, store, workers=2) as (service, client):
        talk_until_a_draft_begins(client, model, store)
        before = service.workers()
        for pid in before:
            service.send(signal.SIGKILL, pid)
        service.renewed(before)
        assert ready(store).begun == 2
        model.may_answer.set()
        talk_until_it_is_folded(client)
    check_paid_twice(model, store)


@pytest.mark.soak
def test_a_draft_that_nothing_disturbs_is_paid_once(tmp_path, store):
    model = Summaries()
    model.may_answer.set()
    with serve_in_thread(model) as url, running(tmp_path, url, store, workers=2) as (_, client):
        talk_until_a_draft_begins(client, model, store)
        assert ready(store).begun == 1
        talk_until_it_is_folded(client)
    [done] = asyncio.run(compactions(store))
    assert done.receipt.repeated == 0
    assert len(model.paid) == 1


# ---- what becomes of a job


MADE = Compacted("", None, Checkpoint("the work", "the work"), Receipt("threshold"))
JOB = DraftJob("one", None, FoldRequest(PRESETS["foldline"], WINDOW, "threshold"), 1, Draft(MADE, (), None))


class Maker:
    """Makes drafts for whoever recovers them, once it may."""

    def __init__(self):
        self.asked, self.may, self.begun = [], asyncio.Event(), asyncio.Event()
        self.may.set()

    async def here(self):
        self.begun.set()
        await self.may.wait()
        return MADE

    async def __call__(self, model, job):
        self.asked.append((model, job))
        return await self.here()


def two_workers(values=None):
    values = values or MemoryKeyValues()
    return [StoredDrafts(Presence(values)) for _ in range(2)]


async def begun(drafts, *, durable=True):
    """Begin a draft that does not end; return its task."""
    maker = Maker()
    maker.may.clear()
    task = asyncio.create_task((drafts.durable("openai:a") if durable else drafts).make(JOB, maker.here))
    await asyncio.wait_for(maker.begun.wait(), 20)
    return task


async def left(task):
    """Have the worker leave what it makes."""
    task.cancel()
    await asyncio.wait([task])


async def closed(*drafts):
    for one in drafts:
        await one.close()
        await one.presence.close()


async def recovered(drafts, maker):
    """Look for what was left, and wait until all of it has ended."""
    await drafts.recover(maker)

    async def ended():
        return not await drafts.values.keys(JOBS)

    await until(ended)


@pytest.mark.parametrize("how", ["left", "killed"])
async def test_what_a_worker_does_not_end_is_made_by_another_though_nobody_asks(how):
    one, two = two_workers()
    maker, making = Maker(), await begun(one)
    await two.recover(maker)
    assert not maker.asked  # its worker lives
    if how == "left":
        await left(making)
    else:
        await one.presence.close()
    await recovered(two, maker)
    assert maker.asked == [("openai:a", JOB)]
    found = await two.find("one")
    assert found.boundary.receipt.repeated == (how == "killed")
    await two.recover(maker)
    assert len(maker.asked) == 1
    await left(making)
    await closed(one, two)


async def test_what_a_client_pays_for_is_left_to_its_next_request():
    one, two = two_workers()
    await left(await begun(one, durable=False))
    assert await two.values.keys(JOBS) == []
    assert await two.find("one") is None
    await closed(one, two)


async def test_what_was_cancelled_is_not_made_again():
    one, two = two_workers()
    making = await begun(one)
    await one.presence.close()
    assert await two.cancel("one") == 1
    maker = Maker()
    await recovered(two, maker)
    assert not maker.asked
    assert await two.find("one") is None
    await left(making)
    await closed(two)


async def test_a_draft_that_two_workers_have_died_over_is_not_begun_again():
    one, two = two_workers()
    making = await begun(one)
    await one.presence.close()
    third = StoredDrafts(Presence(two.values))
    stuck = Maker()
    stuck.may.clear()
    await two.recover(stuck)
    await asyncio.wait_for(stuck.begun.wait(), 20)
    await two.presence.close()
    maker = Maker()
    await recovered(third, maker)
    assert not maker.asked
    assert await third.find("one") is None
    await left(making)
    await closed(third, two)


async def test_what_fails_is_not_tried_for_ever():
    one, two = two_workers()
    await left(await begun(one))

    async def fails(model, job):
        raise CompactionFailed("no")

    await recovered(two, fails)

    async def forgotten():
        return await two.find("one") is None

    await until(forgotten)
    await closed(one, two)


async def test_a_job_whose_request_is_too_large_for_a_value_is_stored_without_it():
    one, two = two_workers()
    large = [{"role": "user", "content": random.Random(1).randbytes(LARGEST).hex()}]
    job = msgspec.structs.replace(JOB, prefix=Prefix("openai:a", "openai-chat", WINDOW, large))
    maker = Maker()
    maker.may.clear()
    making = asyncio.create_task(one.durable("openai:a").make(job, maker.here))
    await asyncio.wait_for(maker.begun.wait(), 20)
    await left(making)
    maker.may.set()
    await recovered(two, maker)
    assert maker.asked == [("openai:a", JOB)]
    await closed(one, two)


class Away(MemoryKeyValues):
    """Values that are away for some looks, or take nothing new of a draft for a while."""

    looks = 0
    full = False

    async def get(self, space, key):
        if space == ROWS and self.looks:
            self.looks -= 1
            raise StoreError("away")
        return await super().get(space, key)

    async def replace(self, space, key, old, new, *, seconds):
        if self.full and space == ROWS:
            raise StoreError("away")
        return await super().replace(space, key, old, new, seconds=seconds)

    async def delete(self, space, key, old=None):
        if self.full and space == ROWS:
            raise StoreError("away")
        return await super().delete(space, key, old)


async def test_a_job_waits_for_a_store_that_is_away():
    values = Away()
    one, two = two_workers(values)
    await left(await begun(one))
    maker = Maker()
    values.looks = 1
    with pytest.raises(StoreError):
        await two.recover(maker)
    await recovered(two, maker)
    assert len(maker.asked) == 1
    await closed(one, two)


async def test_the_place_of_a_draft_that_could_not_be_stored_is_free_when_the_store_is_back(monkeypatch):
    monkeypatch.setattr(presence, "RENEWAL_SECONDS", 0.05)
    values = Away()
    mine, other = two_workers(values)

    async def here():
        values.full = True
        return MADE

    assert await mine.make(JOB, here) is not None
    assert await other.find("one") == "making"
    values.full = False

    async def free():
        return await other.find("one") is None

    await until(free)
    await closed(mine, other)
