"""What a client is told while it waits: of a fold, of a model that does not answer, of a store that is away."""

from __future__ import annotations

import inspect
import json
import socket
from urllib.parse import urlsplit

import httpx2
import pytest
import stamina
from tests.service.api.client import api, chat, events, user
from tests.service.served import Held, run_gateway

from foldline.errors import StoreError
from foldline.stores import MemoryStore
from foldline.testing import Refusal


def first_held():
    """A model whose first answer comes when it is told to."""
    return Held(
        lambda asked: "## Goal\nThe parcel.\n" if len(asked.messages) == 2 else "Yes.",
        holds=lambda asked: asked.index == 0,
    )


@pytest.fixture
def at_once():
    """Nothing is waited out before a model is asked again."""
    stamina.set_testing(True, attempts=6)
    yield
    stamina.set_testing(False)


def names(told):
    return [name for name, _ in told]


def test_a_turn_that_folds_first_says_so_before_the_summary_is_there():
    model = first_held()
    with api(model, summaries="upstream", window=16_000) as (client, _):
        client.begin("one", messages=chat(40))
        asked = {"text": "And now?"}
        with client.http.stream("POST", "/sessions/one/turns", json=asked) as response:
            lines = response.iter_lines()
            seen = []
            while "event: compaction.started" not in seen:
                seen.append(next(lines))
            assert model.begun.wait(60)
            model.gate.open()
            told = events("\n".join([*seen, *lines]))
    assert "compaction.committed" in names(told)
    assert told[-1][1]["how"] == "done"


def test_a_model_that_does_not_answer_is_told_with_attempt_and_wait(at_once):
    with api([Refusal(500, "down"), Refusal(503, "still down"), "Here."]) as (client, _):
        client.begin("one")
        told = client.turn("one", "Hello.")
    waits = [data for name, data in told if name == "retrying"]
    assert [one["attempt"] for one in waits] == [1, 2]
    assert "down" in waits[0]["why"]
    assert all(one["wait"] >= 0 for one in waits)
    assert told[-1][1]["text"] == "Here."


def test_a_compaction_whose_client_left_commits_nothing():
    model = first_held()
    with api(model, summaries="upstream") as (client, _):
        client.begin("one", messages=chat(20))
        place = urlsplit(client.url)
        body = json.dumps({"target": 4_000}).encode()
        head = f"POST /api/sessions/one/compact HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-length: {len(body)}\r\n\r\n"
        with socket.create_connection((place.hostname, place.port), 60) as connection:
            connection.sendall(head.encode() + body)
            assert model.begun.wait(60)
        # it waits for the first, so that it would come after that one's boundary
        told = client.post("/sessions/one/compact", {"target": 4_000}).json()
        model.gate.open()
        assert told["receipt"]["tokens_after"] <= 4_000
        assert client.get("/sessions/one/stats").json()["stats"]["summaries"] == 1


def test_an_import_that_went_on_differently_is_a_conflict():
    with api() as (client, _):
        first = json.dumps([user("Begin."), user("Go on.")])
        client.send("POST", "/imports?id=one", content=first.encode())
        client.say("one", user("It goes on here."))
        other = json.dumps([user("Begin."), user("Go another way.")])
        told = client.send("POST", "/imports?id=one", 409, content=other.encode()).json()
    assert "with different messages" in told["detail"]


PLACE = "PostgreSQL at db.internal:5432, cannot be reached"


def test_a_store_that_is_away_does_not_say_where_it_is(monkeypatch):
    async def away(*_, **__):
        raise StoreError(PLACE)

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with (
        run_gateway(lambda _: "Yes.", model="openai:scripted") as (url, _),
        httpx2.Client(timeout=120) as http,
    ):
        http.post(f"{url}/api/sessions", json={"id": "one"})
        http.post(f"{url}/api/sessions/one/turns", json={"text": "Hello."})
        for name, method in inspect.getmembers(MemoryStore, inspect.iscoroutinefunction):
            if name not in ("close", "append"):  # what is read is away; a turn is left in the middle
                monkeypatch.setattr(MemoryStore, name, away)
                assert method
        messages = [user("Hi.")]
        told = [
            http.get(f"{url}/api/sessions/one/history"),
            http.get(f"{url}/api/sessions"),
            http.post(f"{url}/api/sessions/one/messages", json={"messages": messages}),
            http.post(f"{url}/api/sessions/one/turns", json={"text": "Hi."}),
            http.get(f"{url}/web/"),
            http.get(f"{url}/ready"),
            http.post(
                f"{url}/v1/chat/completions",
                json={"model": "scripted", "messages": messages},
                headers={"authorization": "Bearer k", "foldline-session": "one"},
            ),
        ]
        monkeypatch.undo()
    assert [one.status_code for one in told[:4]] == [503] * 4
    assert not any("db.internal" in one.text for one in told)


def test_a_store_that_goes_in_the_middle_of_a_turn_does_not_say_where_it_is(monkeypatch):
    async def away(*_, **__):
        raise StoreError(PLACE)

    def says(asked):
        monkeypatch.setattr(MemoryStore, "append", away)
        return "Yes."

    with api(says) as (client, _):
        client.begin("one")
        told = client.turn("one", "Hello.")
        monkeypatch.undo()
    assert told[-1][1]["how"] == "failed"
    assert "db.internal" not in str(told)
