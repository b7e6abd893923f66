"""Conditions by leaf, idempotency keys, limits, tenants: what keeps clients out of each other's way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from tests.service.api.client import Client, api, chat, reply, user
from tests.service.served import freeze_rate_clock
from tests.support.values import MemoryKeyValues

from foldline.service import idempotency
from foldline.service.api import compaction
from foldline.service.api.api import OPERATIONS
from foldline.service.idempotency import IdempotencyKeys, StoredResponse
from foldline.service.presence import Presence


def test_a_change_holds_for_the_leaf_that_the_client_knows(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        leaf = client.leaf("one")
        said = client.say("one", reply("Hello."), **{"If-Match": leaf})
        assert said.headers["etag"] != leaf
        refused = client.say("one", user("Again."), status=412, **{"If-Match": leaf})
        assert refused.headers["etag"] == said.headers["etag"] == f'"{refused.json()["leaf"]}"'
        client.say("one", user("Again."), **{"If-Match": f'"other", {said.headers["etag"]}'})
        client.say("one", reply("Yes."), **{"If-Match": "*"})
        client.send("DELETE", "/sessions/one", 412, headers={"If-Match": leaf})
        client.post("/sessions/one/undo", status=412, **{"If-Match": "W/" + client.leaf("one")})


def test_of_clients_that_know_the_same_leaf_one_appends(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        leaf = client.leaf("one")

        def say(number):
            with closing(Client(client.url)) as mine:
                sent = {"messages": [reply(f"I am {number}.")]}
                headers = {"If-Match": leaf}
                return mine.http.post("/sessions/one/messages", json=sent, headers=headers).status_code

        with ThreadPoolExecutor(8) as threads:
            assert sorted(threads.map(say, range(8))) == [201] + [412] * 7
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 2


def test_what_another_process_said_is_followed(tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"
    with api(store=store) as (one, _), api(store=store) as (two, _):
        one.begin("a", messages=[user("Hello.")])
        leaf = two.leaf("a")
        one.say("a", reply("Hello."))
        two.say("a", user("Again."), status=412, **{"If-Match": leaf})
        two.say("a", user("Again."))
        assert len(one.get("/sessions/a/history").json()["items"]) == 3


def test_a_repeated_key_gives_the_first_answer(store):
    with api(store=store) as (client, _):
        client.begin("one")
        first = client.say("one", user("Hello."), **{"Idempotency-Key": "k"})
        again = client.say("one", user("Hello."), **{"Idempotency-Key": "k"})
        assert (again.status_code, again.json(), again.headers["etag"]) == (
            first.status_code,
            first.json(),
            first.headers["etag"],
        )
        client.say("one", user("Other."), status=422, **{"Idempotency-Key": "k"})
        client.begin("two")
        client.say("two", user("Hello."), status=422, **{"Idempotency-Key": "k"})
        client.say("one", user("Hello."), status=400, **{"Idempotency-Key": "k" * 300})
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 1


def test_a_key_whose_request_was_refused_is_free_again(store):
    with api(store=store) as (client, _):
        client.begin("one")
        key = {"Idempotency-Key": "k"}
        client.say("one", {"role": "nobody"}, status=400, **key)
        client.say("one", user("Hello."), status=412, **key, **{"If-Match": '"no"'})
        client.say("one", user("Hello."), **key)
        made = [client.post("/sessions", {"title": "T"}, **{"Idempotency-Key": "n"}).json() for _ in range(3)]
        assert made[0] == made[1] == made[2]
        assert client.get("/sessions").json()["total"] == 2


def test_requests_with_one_key_at_the_same_time_are_one(store):
    with api(store=store) as (client, _):
        client.begin("one")

        def say(_):
            with closing(Client(client.url)) as mine:
                return mine.say("one", user("Hello."), **{"Idempotency-Key": "k"}).json()["entries"]

        with ThreadPoolExecutor(6) as threads:
            found = list(threads.map(say, range(6)))
        assert found == found[:1] * 6
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 1


async def test_keys_are_bounded(monkeypatch):
    monkeypatch.setattr(idempotency, "TRIMMED", 1)
    presence = Presence(MemoryKeyValues())
    keys = IdempotencyKeys(presence, most=3)
    for number in range(10):
        known, _ = await keys.take(str(number), b"request")
        assert known.record.response is None
        await keys.settle(known, StoredResponse(200, b"done", {}))
    assert (await keys.take("9", b"request"))[0].record.response is not None
    assert (await keys.take("0", b"other"))[1]
    await presence.close()


def test_previews_are_bounded_in_number_and_age(monkeypatch):
    monkeypatch.setattr(compaction, "MOST", 2)
    with api() as (client, _):
        client.begin("one", messages=chat(8))
        made = [client.post("/sessions/one/previews").json()["id"] for _ in range(3)]
        for name, status in zip(made, (404, 200, 200), strict=True):
            client.get(f"/sessions/one/previews/{name}", status)
        monkeypatch.setattr(compaction, "SECONDS", -1.0)
        client.get(f"/sessions/one/previews/{client.post('/sessions/one/previews').json()['id']}", 404)


TOKENS = {"tokens": {"mine-of-sixteen-and-more": "one", "theirs-of-sixteen-or-more": "two"}}


def test_no_tenant_sees_another_ones_session(store):
    bodies = {"messages": {"messages": [user("Hello.")]}, "branch": {"entry": "e"}, "merge": {"branch": "b"}}
    with api(store=store, headers={"Authorization": "Bearer mine-of-sixteen-and-more"}, **TOKENS) as (
        client,
        model,
    ):
        client.begin("secret", user="ada", messages=chat(20))
        entry = client.get("/sessions/secret/history").json()["items"][0]["entry"]
        preview = client.post("/sessions/secret/previews").json()["id"]
        before = client.leaf("secret")
        other = Client(client.url, Authorization="Bearer theirs-of-sixteen-or-more")
        assert other.get("/sessions").json()["total"] == 0
        assert other.get("/search", q="Question").json()["hits"] == []
        assert other.send("DELETE", "/sessions", 200, params={"user": "ada"}).json()["deleted"] == 0
        assert other.get("/audit").json()["lines"] == []
        for method, path in ((one.method, one.path) for one in OPERATIONS if one.of_session):
            place = path.format(session="secret", entry=entry, preview=preview)
            body = {"title": "T"} if method == "PATCH" else bodies.get(path.rsplit("/", 1)[-1], {})
            query = {"q": "Question"} if path.endswith("recall") else {}
            for key in ({}, {"Idempotency-Key": "k"}):
                found = other.http.request(
                    method, place, params=query, headers=key, **({} if method == "GET" else {"json": body})
                )
                assert (method, path, found.status_code) == (method, path, 404), found.text
        other.begin("secret", messages=[user("Mine.")])
        assert client.leaf("secret") == before
        assert not model.requests
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"foldline-token": "wrong"}):
            with closing(Client(client.url, **headers)) as nobody:
                assert nobody.get("/sessions", status=401).headers["www-authenticate"] == "Bearer"
        with closing(Client(client.url, **{"foldline-token": "theirs-of-sixteen-or-more"})) as apart:
            assert apart.get("/sessions").json()["total"] == 1
        other.close()


def test_limits_on_body_depth_and_rate(monkeypatch):
    freeze_rate_clock(monkeypatch)
    with api(max_body=20_000) as (client, _):
        client.begin("one")
        client.say("one", user("x" * 30_000), status=413)
        big = (piece for piece in [b"[" * 30_000])
        client.send("POST", "/imports", 413, content=big)
        deep = b'{"messages": [{"role": "user", "content": ' + b"[" * 5_000 + b"]" * 5_000 + b"}]}"
        assert "nested" in client.send("POST", "/sessions/one/messages", 400, content=deep).json()["detail"]
        quoted = {"messages": [user("[" * 3_000)]}
        client.send("POST", "/sessions/one/messages", json=quoted)
    with api(rate=6) as (client, _):
        statuses = [client.http.get("/sessions").status_code for _ in range(8)]
        assert statuses == [200] * 6 + [429] * 2
        assert int(client.get("/sessions", status=429).headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"\xff"', b'{"messages": 1}', b'{"messages": []}', b'{"messages": [1]}',
     b'{"other": 1}', b"NaN", b'{"messages": [{}]}'],
)  # fmt: skip
def test_a_wrong_body_is_told(body):
    with api() as (client, _):
        client.begin("one")
        client.send("POST", "/sessions/one/messages", 400, content=body)


def test_what_is_not_there_is_a_problem():
    with api() as (client, _):
        client.get("/nothing", status=404)
        refused = client.send("PUT", "/sessions", 405)
        assert set(refused.headers["allow"].split(", ")) >= {"GET", "POST"}
        client.get("/sessions/none/view", status=404)
        client.get("/sessions", status=400, limit="many")
        client.get("/sessions", status=400, colour="red")
        client.get("/search", status=400)
        assert client.get("").json()["openapi"] == "/api/openapi.json"
