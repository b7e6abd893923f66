"""Turns: server-sent events of a reply, its calls and its folds; stopped, repeated, refused."""

from __future__ import annotations

import pytest
from tests.service.api.client import FILLER, Client, api, chat, events, reply, user
from tests.service.served import Held
from tests.support.waiting import wait_until

from foldline.testing import Answer, Refusal, Scripted, call


def names(told):
    return [name for name, _ in told]


def last(told, name):
    return [data for one, data in told if one == name][-1]


def test_a_turn_streams_its_reply_and_stores_it(store):
    with api(["The parcel came at eight."], store=store) as (client, model):
        client.begin("one", system="You help.")
        told = client.turn("one", "Did it come?")
        deltas = [data["text"] for name, data in told if name == "message.delta"]
        assert "".join(deltas) == "The parcel came at eight."
        assert names(told)[-3:] == ["message", "usage", "done"]
        assert last(told, "usage")["usage"]["output"] > 0
        assert (last(told, "done")["how"], last(told, "done")["leaf"]) == ("done", client.leaf("one")[1:-1])
        said = client.get("/sessions/one/history").json()["items"]
        assert [(one["role"], one["text"].split("\n")[-1]) for one in said][-1][0] == "assistant"
        assert model.requests[0].system or model.requests[0].messages[0]["role"] == "system"


def test_a_conversation_of_turns_goes_on_past_its_window(store):
    with api(window=12_000, store=store) as (client, model):
        client.begin("one")
        told = []
        for number in range(25):
            told += client.turn("one", f"Question {number}. {FILLER}", settle=number % 2 == 0)
        assert {data["how"] for name, data in told if name == "done"} == {"done"}
        assert "compaction.started" in names(told)
        committed = [data for name, data in told if name == "compaction.committed"]
        assert committed
        assert all(one["receipt"]["tokens_after"] < one["receipt"]["tokens_before"] for one in committed)
        assert len(model.requests[-1].messages) < 30
        assert client.get("/sessions/one", verify="true").json()["verified"] == []
        assert client.get("/sessions/one/stats").json()["spent"]["replies"] == 25


def test_the_model_looks_into_its_folded_past():
    script = [call("recall_search", query="house parcel"), "It got its parcel."]
    with api(script) as (client, _):
        client.begin("one", messages=[user("The house got its parcel."), reply("Good."), *chat(20)])
        client.post("/sessions/one/compact")
        told = client.turn("one", "Did the house get it?")
        assert last(told, "tool.call")["tool"] == "recall_search"
        assert "house got its parcel" in last(told, "tool.result")["text"]
        assert last(told, "done")["text"] == "It got its parcel."


def test_a_request_that_did_not_fit_is_folded_and_made_again():
    model = Scripted(lambda asked: "Yes. " + FILLER, window=9_000)
    with api(model, window=60_000) as (client, _):
        client.begin("one", messages=chat(30))
        told = client.turn("one", "And now?")
        assert "overflow.retried" in names(told)
        assert "compaction.committed" in names(told)
        assert last(told, "done")["how"] == "done"


def test_what_the_provider_refuses_ends_the_turn_and_not_the_session():
    refused = Refusal(400, {"error": {"message": "no such thing", "type": "invalid_request_error"}})
    with api([refused, "Here."]) as (client, _):
        client.begin("one")
        ended = last(client.turn("one", "Hello."), "done")
        assert ended["how"] == "failed"
        assert "no such thing" in ended["detail"]
        assert last(client.turn("one"), "done")["text"] == "Here."


@pytest.mark.parametrize("how", ["refused", "empty"])
def test_a_reply_that_answers_nothing_is_not_a_done_turn(how):
    nothing = Answer(text="", stop="refused" if how == "refused" else None)
    times = 2 if how == "empty" else 1  # an empty reply is asked for again once
    with api([*[nothing] * times, "Here."]) as (client, _):
        client.begin("one")
        ended = last(client.turn("one", "Hello."), "done")
        assert ended["how"] == how
        assert ended["detail"]
        assert last(client.turn("one", "Again."), "done")["text"] == "Here."


def test_a_client_that_stops_leaves_nothing_half_done(store):
    slow = Scripted(lambda asked: "word " * 400, window=60_000)
    with api(slow, store=store) as (client, _):
        client.begin("one")
        with client.http.stream("POST", "/sessions/one/turns", json={"text": "Tell."}) as response:
            next(response.iter_raw())
        wait_for_end(client)
        assert client.get("/sessions/one", verify="true").json()["verified"] == []
        roles = [one["role"] for one in client.get("/sessions/one/history").json()["items"]]
        assert roles in (["user"], ["user", "assistant"])
        assert last(client.turn("one", "Go on."), "done")["how"] == "done"


def wait_for_end(client, name="one"):
    """Wait until no turn is under way."""
    branch = f"/sessions/{name}/branch"
    wait_until(lambda: client.http.post(branch, json={"entry": "nothing"}).status_code != 409)


def test_one_turn_at_a_time():
    with api(held := Held(lambda asked: "At last.")) as (client, _):
        client.begin("one")
        other = Client(client.url)
        with client.http.stream("POST", "/sessions/one/turns", json={"text": "Tell."}) as response:
            pieces = response.iter_text()
            other.turn("one", "And I?", status=409)
            other.send("DELETE", "/sessions/one", 409)
            other.post("/sessions/one/clear", status=409)
            assert other.get("/sessions/one/stats").json()["stats"]["total_messages"] == 1
            held.gate.open()
            told = events("".join(pieces))
        assert last(told, "done")["how"] == "done"
        other.close()


def test_a_repeated_key_tells_the_turn_again_and_says_nothing_twice(store):
    with api(store=store) as (client, model):
        client.begin("one")
        first = client.turn("one", "Hello.", headers={"Idempotency-Key": "a"})
        again = client.turn("one", "Hello.", headers={"Idempotency-Key": "a"})
        assert again == [one for one in first if one[0] != "message.delta"]
        assert len(model.requests) == 1
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 2
        client.turn("one", "Other.", status=422, headers={"Idempotency-Key": "a"})


def test_a_turn_that_was_left_goes_on_under_its_key():
    with api(held := Held(lambda asked: "At last.")) as (client, _model):
        client.begin("one")
        key = {"Idempotency-Key": "a"}
        with client.http.stream("POST", "/sessions/one/turns", json={"text": "Tell."}, headers=key):
            pass
        held.gate.open()
        wait_for_end(client)
        told = client.turn("one", "Tell.", headers=key)
        assert last(told, "done")["text"] == "At last."
        roles = [one["role"] for one in client.get("/sessions/one/history").json()["items"]]
        assert roles == ["user", "assistant"]


def test_a_turn_is_refused_before_it_streams():
    with api() as (client, model):
        client.begin("one")
        client.turn("one", status=400)
        client.turn("one", "Hello.", status=400, model="openai:gpt-5.2")
        client.turn("one", "Hello.", status=412, headers={"If-Match": '"other"'})
        client.turn("one", messages=[{"role": "nobody"}], status=400)
        assert not model.requests
        assert last(client.turn("one", "Hello.", headers={"If-Match": client.leaf("one")}), "done")
    with api(model=None) as (client, _):
        client.begin("one")
        client.turn("one", "Hello.", status=400)
