"""Drafts over several workers: one of a session, committed by whichever gets the next request."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest
from tests.service.served import run_service
from tests.service.test_shutdown import FILLER
from tests.support.live import Events, Gate, answer, grow_to, prompt, session_on
from tests.support.values import MemoryKeyValues
from tests.support.waiting import until as settled

from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.errors import CompactionFailed, StoreError
from foldline.service import presence
from foldline.service.jobs import drafts
from foldline.service.jobs.drafts import DraftLimit, StoredDrafts
from foldline.service.presence import Presence
from foldline.session.jobs import DraftJob
from foldline.stores import open_store
from foldline.testing import Answer, Scripted, serve_in_thread

SOFT, HARD = 5_950, 7_650
MADE = Compacted("", None, Checkpoint("the work", "the work"), Receipt("threshold"))
JOB = DraftJob("s", Draft(MADE, (), None))


class OneWorker:
    """A session as one of several workers has it open."""

    def __init__(self, store, gate):
        self.gate = gate
        self.presence = Presence(store.key_values)
        self.jobs = StoredDrafts(self.presence)
        self.session = session_on(store, gate)
        self.session.make_drafts_by(self.jobs)
        self.heard = Events(self.session)

    @property
    def drafts(self):
        return self.session._compactor.drafts

    async def grow(self, tokens, number=0):
        """Say something until the view is so large, and ask for the context; returns the next number."""
        await self.session.follow()
        number = await grow_to(self.session, tokens, number)
        await self.session.append(prompt(number, 1))
        await self.session.context()
        await self.session.append(answer(number, 1))
        return number + 1

    async def die(self):
        """Give no more signs, and do no more."""
        self.presence._renewing.cancel()
        await self.presence.values.delete(presence.WORKERS, self.presence.id)

    async def close(self):
        await self.session.close()
        await self.jobs.close()
        await self.presence.close()


@pytest.fixture
async def store(tmp_path):
    opened = open_store(f"sqlite:///{tmp_path / 's.db'}")
    yield opened
    await opened.close()


@asynccontextmanager
async def workers(store, *gates):
    found = [OneWorker(store, gate) for gate in gates]
    try:
        yield found
    finally:
        for one in found:
            one.gate.go.set()
            await one.close()


async def compacted(store):
    return [entry async for entry in store.path("s") if isinstance(entry, Compacted)]


async def test_a_draft_that_one_has_made_is_committed_by_the_other_without_a_call(store):
    async with workers(store, Gate(opened=True), Gate()) as (one, two):
        number = await one.grow(SOFT)
        await settled(lambda: one.drafts.ready is not None)
        await two.grow(HARD, number)
        [done] = await compacted(store)
        assert done.receipt.repeated == 0
        assert (one.gate.asked, two.gate.asked) == (1, 0)
        assert [event.drafted for event in two.heard.named("compacted")] == [True]
        await one.session.context()
        assert one.drafts.ready is None

        async def dropped():
            return await store.key_values.get(drafts.ROWS, "s") is None

        await settled(dropped)
        assert await store.verify() == []


async def test_a_draft_that_one_makes_is_waited_for_by_the_other(store):
    async with workers(store, Gate(), Gate()) as (one, two):
        number = await one.grow(SOFT)
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        growing = asyncio.ensure_future(two.grow(8_600, number))  # over what is usable: it has to wait
        await settled(lambda: two.drafts.running)
        one.gate.go.set()
        await asyncio.wait_for(growing, 60)
        assert len(await compacted(store)) == 1
        assert (one.gate.asked, two.gate.asked) == (1, 0)


async def test_a_draft_whose_worker_died_is_begun_once_more_and_says_so(store):
    async with workers(store, Gate(), Gate(opened=True)) as (one, two):
        number = await one.grow(SOFT)
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        await one.die()
        number = await two.grow(SOFT, number)
        await settled(lambda: two.drafts.ready is not None)
        await two.grow(HARD, number)
        [done] = await compacted(store)
        assert done.receipt.repeated == 1
        assert (one.gate.asked, two.gate.asked) == (1, 1)


async def test_a_draft_is_not_begun_a_third_time(store):
    async with workers(store, Gate(), Gate(), Gate()) as (one, two, three):
        number = await one.grow(SOFT)
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        await one.die()
        number = await two.grow(SOFT, number)
        await asyncio.wait_for(two.gate.begun.wait(), 60)
        await two.die()
        number = await three.grow(SOFT, number)
        await settled(lambda: three.heard.named("draft_failed"))
        assert "2 processes died" in three.heard.named("draft_failed")[0].detail
        assert three.gate.asked == 0
        assert await store.key_values.get(drafts.ROWS, "s") is None


@pytest.mark.parametrize("how", ["undo", "by hand", "purge"])
async def test_what_makes_a_draft_void_cancels_it_where_it_is_made(store, monkeypatch, how):
    monkeypatch.setattr(drafts, "WATCH_SECONDS", 0.05)
    async with workers(store, Gate(), Gate(opened=True)) as (one, two):
        await two.session.append(*(message for n in range(6) for message in (prompt(n), answer(n))))
        await two.session.compact()
        await one.grow(SOFT, 6)
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        if how == "undo":
            await two.session.undo()
        elif how == "by hand":
            await two.session.compact()
        else:
            await store.purge("s")
        await settled(lambda: not one.drafts.running)
        assert one.drafts.ready is None
        assert not one.heard.named("draft_failed")
        assert await store.key_values.get(drafts.ROWS, "s") is None


async def test_a_worker_that_leaves_gives_the_place_of_its_draft_back(store):
    async with workers(store, Gate(), Gate(opened=True)) as (one, two):
        number = await one.grow(SOFT)
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        await one.session.close()
        assert await store.key_values.get(drafts.ROWS, "s") is None
        number = await two.grow(SOFT, number)
        await settled(lambda: two.drafts.ready is not None)
        assert two.drafts.ready.boundary.receipt.repeated == 0


async def test_a_compaction_in_the_place_of_a_dead_workers_draft_says_so(store):
    async with workers(store, Gate(), Gate(opened=True)) as (one, two):
        number = await one.grow(SOFT)
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        await one.die()
        await two.grow(8_600, number)
        [done] = await compacted(store)
        assert done.receipt.repeated == 1
        assert two.heard.named("compaction_started")


async def test_a_fold_that_two_wait_for_is_paid_once(store):
    async with workers(store, Gate(), Gate()) as (one, two):
        await grow_to(one.session, 8_600)
        await two.session.follow()
        first = asyncio.ensure_future(one.session.compact())
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        second = asyncio.ensure_future(two.session.context())
        await settled(lambda: two.session._compactor.busy)
        one.gate.go.set()
        await asyncio.wait_for(asyncio.gather(first, second), 60)
        assert len(await compacted(store)) == 1
        assert (one.gate.asked, two.gate.asked) == (1, 0)


async def test_the_turn_to_compact_of_a_worker_that_died_or_was_cancelled_is_free(store):
    async with workers(store, Gate(), Gate(), Gate(opened=True)) as (one, two, three):
        await grow_to(one.session, 8_600)
        left = asyncio.ensure_future(one.session.compact())
        await asyncio.wait_for(one.gate.begun.wait(), 60)
        await one.die()
        second = asyncio.ensure_future(two.session.compact())
        await asyncio.wait_for(two.gate.begun.wait(), 60)
        second.cancel()
        await asyncio.wait({second})
        await asyncio.wait_for(three.session.compact(), 60)
        left.cancel()
        await asyncio.wait({left})
        assert len(await compacted(store)) == 1


class Away(MemoryKeyValues):
    """Values that take nothing new of a draft for a while."""

    full = False

    async def replace(self, space, key, old, new, *, seconds):
        if self.full and space == drafts.ROWS:
            raise StoreError("away")
        return await super().replace(space, key, old, new, seconds=seconds)

    async def delete(self, space, key, old=None):
        if self.full and space == drafts.ROWS:
            raise StoreError("away")
        return await super().delete(space, key, old)


async def test_the_place_of_a_draft_that_could_not_be_stored_is_free_when_the_store_is_back(monkeypatch):
    monkeypatch.setattr(presence, "RENEWAL_SECONDS", 0.05)
    values = Away()
    mine, other = (StoredDrafts(Presence(values)) for _ in range(2))

    async def here():
        values.full = True
        return MADE

    assert await mine.make(JOB, here) is not None
    assert await other.find("s") == "making"
    values.full = False

    async def free():
        return await other.find("s") is None

    await settled(free)
    await mine.presence.close()
    await other.presence.close()


async def test_the_place_of_a_draft_that_fails_is_free():
    values = MemoryKeyValues()
    mine, other = (StoredDrafts(Presence(values)) for _ in range(2))

    async def here():
        raise CompactionFailed("no")

    with pytest.raises(CompactionFailed):
        await mine.make(JOB, here)
    assert await other.find("s") is None
    await mine.presence.close()


async def test_drafts_are_limited_at_once():
    limit = DraftLimit(MemoryKeyValues(), at_once=2, per_minute=1_000)
    running, most = 0, 0

    async def here():
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return Nothing("no_gain")

    await asyncio.gather(*(limit.run("openai", here) for _ in range(20)))
    assert most == 2


async def test_drafts_of_each_provider_are_limited_in_a_minute():
    limit = DraftLimit(MemoryKeyValues(), at_once=2, per_minute=1)

    async def here():
        return Nothing("no_gain")

    await limit.run("openai", here)
    second = asyncio.create_task(limit.run("openai", here))  # it has to wait for a minute
    assert await limit.run("anthropic", here) == Nothing("no_gain")
    assert not second.done()
    second.cancel()
    await asyncio.wait({second})


def is_summary(asked):
    return not str(asked.messages[-1].get("content")).startswith("Question")


def slow_summaries(asked):
    """Answer; summaries take their time, so that drafts and requests overlap."""
    return Answer(text=f"Answer {asked.index}. " + FILLER, wait=0.3 if is_summary(asked) else 0.0)


@pytest.mark.slow
async def test_an_agent_at_two_workers_pays_once_for_each_fold(tmp_path):
    model, messages = Scripted(slow_summaries, window=14_000), []
    store = f"sqlite:///{tmp_path / 's.db'}"
    settled_by = {"store": store, "window": 14_000, "summaries": "upstream"}
    with serve_in_thread(model) as url:
        one, two = (run_service(openai_upstream=url, **settled_by) for _ in range(2))
        with one as first, two as second:
            for number in range(40):
                messages.append({"role": "user", "content": f"Question {number}. {FILLER}"})
                found = await asyncio.to_thread(
                    httpx2.post,
                    f"{(first, second)[number % 2]}/v1/chat/completions",
                    json={"model": "scripted", "messages": messages},
                    headers={"authorization": "Bearer k"},
                    timeout=60,
                )
                messages.append(found.json()["choices"][0]["message"])
    opened = open_store(store)
    (info,) = await opened.sessions()
    assert await opened.verify() == []
    await opened.close()
    paid = list(filter(is_summary, model.requests))
    assert info.messages == len(messages)
    assert info.compactions > 1
    assert len(paid) == 2 * info.compactions  # its first answer is no summary, and it is asked again
