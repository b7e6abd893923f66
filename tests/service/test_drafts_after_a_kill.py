"""Drafts whose process is killed while the model writes: the session's next requests have them made anew."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager

import pytest
from tests.service.api.client import FILLER, Client, reply, user
from tests.service.served import Held
from tests.service.supervised import supervised
from tests.support.gateway_agents import SUMMARY
from tests.support.postgres import postgres_server, postgres_url  # noqa: F401
from tests.support.waiting import wait_until

from foldline.core.log.entries import Compacted
from foldline.service.jobs.drafts import ROWS
from foldline.service.presence import WORKERS
from foldline.stores import open_store
from foldline.testing import Scripted, serve_in_thread


def summaries():
    """A model that writes summaries, and what holds the first of them."""
    held = Held(lambda asked: SUMMARY, lambda asked: asked.index == 0)
    return Scripted(held, window=28_000), held


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    """The URL of a store."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path / 's.db'}"


@contextmanager
def running(folder, upstream, store, workers):
    """Run the service over a store, its model at a URL."""
    options = ("--workers", str(workers), "--store", store, "--window", "28000")
    model = f"openai-compatible:scripted@{upstream}/v1"
    with supervised(folder, *options, "--model", model) as service:
        client = Client(service.url)
        try:
            yield service, client
        finally:
            client.close()


def talk_until(client, reached, numbers):
    """Say something, and ask for the context, until a condition holds."""
    for number in numbers:
        client.say("one", user(f"Question {number}. {FILLER}"), reply(f"Answer {number}. {FILLER}"))
        client.post("/sessions/one/context")
        if reached():
            return
    raise AssertionError("it was not reached")


def talk_until_a_draft_begins(client, held, store):
    """Say something until a summary is being written in the background."""
    client.begin("one")
    talk_until(client, lambda: stands(store, ROWS), range(60))
    assert held.begun.wait(60)


def talk_until_it_is_folded(client):
    """Say more until a fold is committed."""
    talk_until(client, lambda: client.get("/sessions/one").json()["info"]["compactions"], range(100, 130))


def stands(url, space):
    """Whether anything stands in a space of the store: drafts, or workers that are believed to be alive."""

    async def keys():
        store = open_store(url)
        found = await store.key_values.keys(space)
        await store.close()
        return found

    return bool(asyncio.run(keys()))


def check_paid(model, url, times):
    """Check that there is one fold, and how often it was paid for."""

    async def compactions():
        store = open_store(url)
        found = [entry async for entry in store.path("one") if isinstance(entry, Compacted)]
        assert await store.verify() == []
        await store.close()
        return found

    [done] = asyncio.run(compactions())
    assert done.receipt.repeated == times - 1
    assert done.checkpoint.summary.startswith("## Goal")
    assert len(model.requests) == times


@pytest.mark.slow
def test_a_draft_whose_process_is_killed_comes_after_a_restart_and_is_paid_twice_at_most(tmp_path):
    model, held = summaries()
    store = f"sqlite:///{tmp_path / 's.db'}"
    with serve_in_thread(model) as url:
        with running(tmp_path, url, store, workers=1) as (service, client):
            talk_until_a_draft_begins(client, held, store)
            service.process.kill()
            service.process.wait()
        wait_until(lambda: not stands(store, WORKERS))
        held.gate.open()
        with running(tmp_path, url, store, workers=1) as (_, client):
            talk_until_it_is_folded(client)
    check_paid(model, store, times=2)


@pytest.mark.soak
def test_a_draft_whose_workers_are_killed_comes_and_is_paid_twice_at_most(tmp_path, store):
    model, held = summaries()
    with serve_in_thread(model) as url, running(tmp_path, url, store, workers=2) as (service, client):
        talk_until_a_draft_begins(client, held, store)
        before = service.workers()
        for pid in before:
            service.send(signal.SIGKILL, pid)
        service.renewed(before)
        wait_until(lambda: not stands(store, WORKERS))
        held.gate.open()
        talk_until_it_is_folded(client)
    check_paid(model, store, times=2)


@pytest.mark.soak
def test_a_draft_that_nothing_disturbs_is_paid_once(tmp_path, store):
    model, held = summaries()
    held.gate.open()
    with serve_in_thread(model) as url, running(tmp_path, url, store, workers=2) as (_, client):
        talk_until_a_draft_begins(client, held, store)
        talk_until_it_is_folded(client)
    check_paid(model, store, times=1)
