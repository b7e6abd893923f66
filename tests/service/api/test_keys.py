"""Idempotency keys and turns that a worker left open when it died: another worker takes them over."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
from tests.service.api.client import api, reply, user

import foldline
from foldline.service.api.idempotency import SPACE, IdempotencyKeys, KeyBusy, KeyRecord, KeyReused, encoded
from foldline.service.presence import Leases, Presence
from foldline.stores.key_values import MemoryKeyValues


async def test_an_open_key_is_waited_for_while_its_worker_lives():
    values = MemoryKeyValues()
    one, two = Presence(values), Presence(values)
    mine, new = await IdempotencyKeys(one).take("k", b"request", leaf="l")
    assert new
    assert not mine.again
    waiting = asyncio.ensure_future(IdempotencyKeys(two).take("k", b"request"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    with pytest.raises(KeyReused):
        await IdempotencyKeys(two).take("k", b"another")
    await one.close()
    taken, new = await waiting
    assert new
    assert (taken.again, taken.record.leaf, taken.record.worker) == (True, "l", two.id)
    await two.close()


async def test_an_open_key_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr("foldline.service.api.idempotency.PATIENCE", 0.3)
    one = Presence(MemoryKeyValues())
    keys = IdempotencyKeys(one)
    await keys.take("k", b"request")
    with pytest.raises(KeyBusy):
        await keys.take("k", b"request")
    await one.close()


async def test_a_lease_is_one_workers_while_it_lives():
    values = MemoryKeyValues()
    one, two = Presence(values), Presence(values)
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
    await two.close()


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path / 's.db'}"


def left_open(url, path, body, leaf, key="k"):
    """Store a key as a worker leaves it that dies before it has answered."""

    async def put():
        store = foldline.stores.open_store(url)
        digest = hashlib.sha256(f"POST /api{path}?\n".encode() + body).digest()
        record = encoded(KeyRecord(digest, "dead", "0123456789abcdef", leaf))
        assert await store.key_values.add(SPACE, key, record, seconds=60) is None
        await store.close()

    asyncio.run(put())


def sent(client, path, value, status=None):
    body = json.dumps(value).encode()
    headers = {"content-type": "application/json", "idempotency-key": "k"}
    return body, lambda: client.send("POST", path, status, content=body, headers=headers)


def test_messages_that_a_dead_worker_appended_are_not_appended_again(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        leaf = client.leaf("one").strip('"')
        said = [reply("Yes?"), user("Do it.")]
        body, send = sent(client, "/sessions/one/messages", {"messages": said})
        first = client.say("one", *said).json()["entries"]
        client.say("one", reply("Done."))
        left_open(store, "/sessions/one/messages", body, leaf)
        assert send().json()["entries"] == first
        assert send().json()["entries"] == first
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 4


def test_messages_that_a_dead_worker_did_not_append_are_appended(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        body, send = sent(client, "/sessions/one/messages", {"messages": [reply("Yes?")]})
        left_open(store, "/sessions/one/messages", body, client.leaf("one").strip('"'))
        send()
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 2


def test_a_turn_whose_worker_died_behind_its_prompt_goes_on(store):
    with api(store=store) as (client, model):
        client.begin("one", messages=[user("Hello."), reply("Hello.")])
        leaf = client.leaf("one").strip('"')
        client.say("one", user("And now?"))
        body, send = sent(client, "/sessions/one/turns", {"text": "And now?"})
        left_open(store, "/sessions/one/turns", body, leaf)
        assert "event: done" in send().text
        assert len(model.requests) == 1
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 4


def test_what_cannot_be_known_is_told(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        leaf = client.leaf("one").strip('"')
        client.post("/sessions/one/compact")
        client.say("one", reply("Yes?"))
        body, send = sent(client, "/sessions/one/undo", {}, status=409)
        left_open(store, "/sessions/one/undo", body, leaf)
        assert "not known" in send().json()["title"]
