"""Idempotency keys and turns that a worker left open when it died: another worker takes them over."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import nullcontext

import msgspec
import pytest
from tests.service.api.client import api, chat, reply, user
from tests.service.test_shared_drafts import JOB
from tests.support import patient
from tests.support.values import MemoryKeyValues
from tests.support.waiting import until

import foldline
from foldline.config import ServeSettings
from foldline.core.log.entries import Compacted, Said
from foldline.errors import InputError, StoreError
from foldline.service import presence
from foldline.service.idempotency import SPACE, IdempotencyKeys, KeyBusy, KeyRecord, KeyReused
from foldline.service.jobs.drafts import StoredDrafts
from foldline.service.presence import Leases, Presence
from foldline.service.tenants import Tenants
from foldline.stores import SqliteStore, register, urls
from foldline.stores.key_values import pack


@pytest.fixture
async def workers():
    """Makes two workers over some values, which are closed at the end."""
    made = []

    def make(values):
        made[:] = Presence(values), Presence(values)
        return made

    yield make
    for one in made:
        await one.close()


async def test_an_open_key_is_waited_for_while_its_worker_lives(workers):
    values = MemoryKeyValues()
    one, two = workers(values)
    mine, new = await IdempotencyKeys(one).take("k", b"request", leaf="l")
    assert new
    assert not mine.is_retry
    waiting = asyncio.ensure_future(IdempotencyKeys(two).take("k", b"request"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    with pytest.raises(KeyReused):
        await IdempotencyKeys(two).take("k", b"another")
    await one.close()
    taken, new = await waiting
    assert new
    assert (taken.is_retry, taken.record.leaf, taken.record.worker) == (True, "l", two.id)


async def test_an_open_key_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr("foldline.service.idempotency.PATIENCE", 0.3)
    one = Presence(MemoryKeyValues())
    keys = IdempotencyKeys(one)
    await keys.take("k", b"request")
    with pytest.raises(KeyBusy):
        await keys.take("k", b"request")
    await one.close()


async def test_a_lease_is_one_workers_while_it_lives(workers):
    values = MemoryKeyValues()
    one, two = workers(values)
    mine, theirs = Leases(one, "turn"), Leases(two, "turn")
    assert await mine.take("s")
    assert not await mine.take("s")
    assert not await theirs.take("s")
    assert await theirs.held("s")
    await theirs.release("s")  # it is not theirs
    assert await theirs.held("s")
    await one.close()
    assert not await theirs.held("s")
    assert await theirs.take("s")
    await mine.release("s")
    assert await theirs.held("s")


class Slow(MemoryKeyValues):
    """Values that are written before who asked for it hears of it."""

    def __init__(self):
        super().__init__()
        self.written, self.hold = asyncio.Event(), False

    async def add(self, space, *given, **named):
        found = await super().add(space, *given, **named)
        if self.hold and space != presence.WORKERS:
            self.written.set()
            await asyncio.sleep(60)
        return found


@pytest.mark.parametrize("what", ["lease", "key", "draft"])
async def test_what_was_cancelled_while_it_was_taken_is_free_for_others(monkeypatch, what, workers):
    monkeypatch.setattr(presence, "RENEWAL_SECONDS", 0.05)
    values = Slow()
    one, two = workers(values)

    async def take(worker):
        if what == "lease":
            return await Leases(worker, "turn").take("s")
        if what == "key":
            return (await IdempotencyKeys(worker).take("s", b"request"))[1]
        drafts = StoredDrafts(worker)
        return await drafts.find("s") is None and bool(await drafts._claim("s"))

    values.hold = True
    cancelled = asyncio.ensure_future(StoredDrafts(one).make(JOB, None) if what == "draft" else take(one))
    await asyncio.wait_for(values.written.wait(), 60)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    values.hold = False

    async def taken():
        return await take(two)

    await until(taken)


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path / 's.db'}"


def keyed(client, path, value, status=None):
    """Send a request under a key, always the same bytes."""
    headers = {"content-type": "application/json", "idempotency-key": "k"}
    return client.send("POST", path, status, content=json.dumps(value).encode(), headers=headers)


def left_open(url, path, value, leaf):
    """Store a key as a worker leaves it that dies before it has answered."""

    async def put():
        store = foldline.stores.open_store(url)
        digest = hashlib.sha256(f"POST /api{path}?\n{json.dumps(value)}".encode()).digest()
        record = pack(KeyRecord(digest, "dead", "0123456789abcdef", leaf))
        assert await store.key_values.add(SPACE, "k", record, seconds=60) is None
        await store.close()

    asyncio.run(put())


def test_messages_that_a_dead_worker_appended_are_not_appended_again(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        leaf = client.leaf("one").strip('"')
        request = "/sessions/one/messages", {"messages": [reply("Yes?"), user("Do it.")]}
        first = client.post(*request).json()["entries"]
        client.say("one", reply("Done."))
        left_open(store, *request, leaf)
        for _ in range(2):
            assert keyed(client, *request).json()["entries"] == first
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 4


def test_messages_that_a_dead_worker_did_not_append_are_appended(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        request = "/sessions/one/messages", {"messages": [reply("Yes?")]}
        left_open(store, *request, client.leaf("one").strip('"'))
        keyed(client, *request)
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 2


def test_a_turn_whose_worker_died_behind_its_prompt_goes_on(store):
    with api(store=store) as (client, model):
        client.begin("one", messages=[user("Hello."), reply("Hello.")])
        leaf = client.leaf("one").strip('"')
        client.say("one", user("And now?"))
        request = "/sessions/one/turns", {"text": "And now?"}
        left_open(store, *request, leaf)
        assert "event: done" in keyed(client, *request).text
        assert len(model.requests) == 1
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 4


def test_what_cannot_be_known_is_told(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        leaf = client.leaf("one").strip('"')
        client.post("/sessions/one/compact")
        client.say("one", reply("Yes?"))
        left_open(store, "/sessions/one/undo", {}, leaf)
        assert "not known" in keyed(client, "/sessions/one/undo", {}, 409).json()["title"]


# ---- a store that is away at the wrong moment


class LossyStore(SqliteStore):
    """A store that does what it is asked, and loses the answers to some appends."""

    lost = 0
    purges = True
    reading = False  # somebody reads pages of what is purged: it is done, but for them

    async def purge(self, session):
        if not LossyStore.purges:
            raise StoreError("the connection is gone")
        await super().purge(session)
        if LossyStore.reading:
            raise StoreError("it is purged, but another process is reading")

    async def append(self, session, entries, *, seen):
        await super().append(session, entries, seen=seen)
        if LossyStore.lost and any(isinstance(entry, Said | Compacted) for entry in entries):
            LossyStore.lost -= 1
            raise StoreError("the connection is gone")


@pytest.fixture
def lossy(tmp_path):
    register("lossy", lambda url: LossyStore(tmp_path / "lossy.db"))
    with api(store="lossy://") as (client, model):
        yield client, model
    LossyStore.lost, LossyStore.purges, LossyStore.reading = 0, True, False
    urls._SCHEMES.pop("lossy")


def repeated(client, path, value):
    """Send a request whose answer the store loses, then again; returns the second answer."""
    LossyStore.lost = 1
    keyed(client, path, value, 503)
    return keyed(client, path, value)


def test_messages_whose_answer_was_lost_are_not_appended_again(lossy):
    client, _ = lossy
    client.begin("one")
    found = repeated(client, "/sessions/one/messages", {"messages": [user("Hello."), reply("Hello.")]})
    assert len(found.json()["entries"]) == 2
    assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 2


def test_a_session_whose_answer_was_lost_is_begun_once(lossy):
    client, _ = lossy
    made = repeated(client, "/sessions", {"title": "T", "messages": [user("Hello.")]}).json()
    found = client.get("/sessions").json()
    assert [one["id"] for one in found["sessions"]] == [made["id"]]
    assert made["messages"] == 1


def test_a_session_that_was_begun_and_not_told_is_told_with_what_was_said_in_it_since(lossy):
    client, _ = lossy
    LossyStore.lost, LossyStore.purges = 1, False
    wish = {"title": "T", "messages": [user("Hello."), reply("Yes?")]}
    keyed(client, "/sessions", wish, 503)
    (begun,) = client.get("/sessions").json()["sessions"]
    client.say(begun["id"], user("And now?"))
    found = keyed(client, "/sessions", wish)
    assert (found.json()["id"], found.json()["messages"]) == (begun["id"], 3)
    assert found.headers["location"] == f"/api/sessions/{begun['id']}"
    assert found.headers["etag"] == client.leaf(begun["id"])
    assert client.get("/sessions").json()["total"] == 1


def test_a_session_that_could_not_be_begun_is_gone_though_somebody_reads_its_pages(lossy):
    client, _ = lossy
    LossyStore.reading = True
    client.send("POST", "/sessions", 400, json={"id": "one", "messages": [{"role": "nobody"}]})
    assert client.get("/sessions").json()["total"] == 0


def test_a_named_session_that_may_have_been_begun_is_told_as_such(lossy):
    client, _ = lossy
    LossyStore.lost, LossyStore.purges = 1, False
    wish = {"id": "mine", "messages": [user("Hello.")]}
    keyed(client, "/sessions", wish, 503)
    assert "not known" in keyed(client, "/sessions", wish, 409).json()["title"]


@pytest.mark.parametrize(("what", "wish"), [("fork", {}), ("handoff", {"goal": "Go on"})])
def test_a_child_whose_answer_was_lost_is_begun_once(lossy, what, wish):
    client, _ = lossy
    client.begin("one", messages=chat(6))
    child = repeated(client, f"/sessions/one/{what}", wish).json()["id"]
    assert {one["id"] for one in client.get("/sessions").json()["sessions"]} == {"one", child}
    found = client.get(f"/sessions/{child}").json()
    assert found["links"][0]["session"] == "one"
    assert found["info"]["title"] == wish.get("goal", client.get("/sessions/one").json()["info"]["title"])
    assert [one["session"] for one in client.get("/sessions/one").json()["links"]] == [child]
    client.say(child, user("And now?"))


def test_a_child_that_a_dead_worker_began_is_found_behind_its_link_and_what_was_said_since(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=chat(3))
        leaf = client.leaf("one").strip('"')
        client.post("/sessions/one/fork", {"id": "one-01234567"})
        client.say("one", user("And now?"))
        left_open(store, "/sessions/one/fork", {}, leaf)
        assert keyed(client, "/sessions/one/fork", {}).json()["id"] == "one-01234567"
        assert client.get("/sessions").json()["total"] == 2


def test_a_fork_that_is_asked_for_again_is_of_what_was_there_at_first(store):
    with api(store=store) as (client, _):
        first = client.begin("one", messages=chat(3))["messages"]
        leaf = client.leaf("one").strip('"')
        client.say("one", user("And now?"))
        left_open(store, "/sessions/one/fork", {}, leaf)
        child = keyed(client, "/sessions/one/fork", {}).json()["id"]
        assert client.get(f"/sessions/{child}").json()["info"]["messages"] == first


def test_an_answer_too_large_to_keep_is_not_given_by_doing_it_again(store, monkeypatch):
    monkeypatch.setattr("foldline.stores.key_values.LARGEST", 4_000)
    with api(store=store) as (client, _):
        client.begin("one")
        request = "/sessions/one/messages", {"messages": [user(f"Number {n}.") for n in range(200)]}
        assert len(keyed(client, *request).json()["entries"]) == 200
        assert keyed(client, *request, 409).json()["title"] == "it was done"
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 200


class AwayValues(MemoryKeyValues):
    """Values that do what they are asked, and may lose the answer, or be away."""

    lost = away = fails = False

    async def add(self, space, key, value, *, seconds, session=None):
        there = await super().add(space, key, value, seconds=seconds, session=session)
        if self.lost and there is None:  # asked again by the store, it finds its own value
            return await super().add(space, key, value, seconds=seconds, session=session)
        if self.fails and space != presence.WORKERS:  # it is done, and nobody is told
            raise StoreError("away")
        return there

    async def replace(self, space, key, old, new, *, seconds):
        done = await super().replace(space, key, old, new, seconds=seconds)
        if self.fails and space != presence.WORKERS:
            raise StoreError("away")
        return done

    async def delete(self, space, key, old=None):
        if self.away:
            raise StoreError("away")
        return await super().delete(space, key, old)


async def test_a_lease_whose_answer_was_lost_is_held(workers):
    values = AwayValues()
    values.lost = True
    one, two = workers(values)
    mine, theirs = Leases(one, "turn"), Leases(two, "turn")
    assert await mine.take("s")
    assert not await theirs.take("s")
    await mine.release("s")
    assert await theirs.take("s")


async def test_a_lease_that_could_not_be_given_back_is_free_for_its_worker_then_for_all(monkeypatch, workers):
    monkeypatch.setattr(presence, "RENEWAL_SECONDS", 0.05)
    values = AwayValues()
    one, two = workers(values)
    mine, theirs = Leases(one, "turn"), Leases(two, "turn")
    assert await mine.take("s")
    values.away = True
    await mine.release("s")
    assert not await mine.held("s")
    assert not await theirs.take("s")
    assert await mine.take("s")
    await asyncio.sleep(0.2)
    values.away = False
    await asyncio.sleep(0.2)
    assert await theirs.held("s")  # what was owed was an older lease
    await mine.release("s")
    assert await theirs.take("s")


async def test_a_worker_without_a_sign_for_long_has_lapsed(monkeypatch):
    mine = Presence(MemoryKeyValues())
    assert not mine.lapsed
    await mine.begin()
    assert not mine.lapsed
    monkeypatch.setattr(presence, "LEASE_SECONDS", 0.0)
    await asyncio.sleep(0.01)
    assert mine.lapsed
    await mine.close()


async def test_what_was_taken_and_not_told_is_free_when_the_store_is_back(monkeypatch, workers):
    monkeypatch.setattr(presence, "RENEWAL_SECONDS", 0.05)
    values = AwayValues()
    one, two = workers(values)
    mine, theirs = Leases(one, "turn"), Leases(two, "turn")
    keys = IdempotencyKeys(one)
    await values.add(SPACE, "old", pack(KeyRecord(hashlib.sha256(b"r").digest(), "dead", "t")), seconds=60)
    values.fails = True
    with pytest.raises(StoreError):
        await mine.take("s")
    for key in ("new", "old"):
        with pytest.raises(StoreError):
            await keys.take(key, b"r")
    values.fails = False
    await until(lambda: theirs.take("s"))
    fresh, _ = await IdempotencyKeys(two).take("new", b"r")
    taken, _ = await IdempotencyKeys(two).take("old", b"r")
    assert (fresh.is_retry, taken.is_retry) == (False, True)


async def test_a_key_of_another_version_is_told_as_not_known():
    values = MemoryKeyValues()
    one = Presence(values)
    await values.add(SPACE, "k", b"what an older version stored", seconds=60)
    with pytest.raises(KeyBusy):
        await IdempotencyKeys(one).take("k", b"r")
    await one.close()


def test_a_worker_whose_store_was_silent_for_long_is_not_ready(store, monkeypatch):
    with api(store=store) as (client, _):
        ready = f"{client.url}/ready"
        assert patient.get(ready).status_code == 200
        client.post("/sessions", {"id": "one"}, **{"Idempotency-Key": "k"})  # its presence begins
        assert patient.get(ready).status_code == 200
        monkeypatch.setattr(presence, "LEASE_SECONDS", -1.0)
        assert patient.get(ready).status_code == 503


def test_a_tenant_whose_schema_would_have_too_long_a_name_is_refused_at_the_start():
    pytest.importorskip("psycopg", reason="needs the extra foldline[postgres]")
    for name, fits in (("a" * 40, True), ("a" * 60, False)):
        given = msgspec.structs.replace(ServeSettings(), tokens={"token-for-a-tenant": name})
        with nullcontext() if fits else pytest.raises(InputError, match="63 characters"):
            Tenants(given, "postgresql://nobody@localhost/nothing")
