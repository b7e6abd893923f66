"""Compactions by hand, previews, undo and redo; branches, rewind, fork, hand-off."""

from __future__ import annotations

import pytest
from tests.service.api.client import RULE, api, chat, user


@pytest.fixture
def client(store):
    with api(store=store) as (found, _):
        yield found


def size(client, name="one"):
    return client.get(f"/sessions/{name}/view").json()["tokens"]


def test_compact_undo_redo(client):
    client.begin("one", messages=chat(20))
    whole = size(client)
    told = client.post("/sessions/one/compact", {"instructions": "the questions", "target": 4_000}).json()
    assert told["receipt"]["tokens_after"] <= 4_000
    assert told["leaf"] == client.leaf("one")[1:-1]
    assert client.post("/sessions/one/undo").json()["entry"]
    assert size(client) == whole
    assert client.post("/sessions/one/redo").json()["entry"]
    assert size(client) <= 4_000
    assert client.post("/sessions/one/redo").json()["entry"] is None
    assert client.post("/sessions/one/compact").json()["nothing"]["why"]
    client.post("/sessions/one/compact", {"target": 5}, status=422)
    client.post("/sessions/one/compact", {"target": "many"}, status=400)


def test_a_message_or_a_part_is_taken_out_and_brought_back(client):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    shown = {"role": "user", "content": [{"type": "text", "text": "A zebra?"}, image]}
    client.begin("one", messages=[shown, {"role": "assistant", "content": "Yes."}, *chat(2)])
    first, second, *_ = (
        one["entry"]
        for one in client.get("/sessions/one/history").json()["items"]
        if one["kind"] == "message"
    )
    told = client.post(f"/sessions/one/entries/{first}/exclude", {"part": 1}).json()
    assert told["receipt"]["dropped"] == {"edits": {"excluded": 1}}
    assert told["leaf"] == client.leaf("one")[1:-1]
    assert "image_url" not in client.get("/sessions/one/view").text
    client.post(f"/sessions/one/entries/{first}/exclude", {})
    assert "zebra" not in client.get("/sessions/one/view").text
    items = client.get("/sessions/one/history").json()["items"]
    assert [one["how"] for one in items if one["kind"] == "message"][:2] == ["excluded", "kept"]
    assert [one["made"] for one in items if one["kind"] == "boundary"] == ["exclusion", "exclusion"]
    assert "zebra" in client.get("/sessions/one/recall", q="zebra").text
    assert "already" in client.post(f"/sessions/one/entries/{first}/exclude", {}, status=400).text
    client.post(f"/sessions/one/entries/{second}/exclude", {"part": 7}, status=400)
    client.post(f"/sessions/one/entries/{second}/exclude", {"part": -1}, status=400)
    client.post("/sessions/one/undo")
    client.post("/sessions/one/undo")
    assert "image_url" in client.get("/sessions/one/view").text


def test_a_range_is_folded_and_the_rest_is_kept(client):
    client.begin("one", messages=chat(20))
    whole = client.get("/sessions/one/view").json()["messages"]
    items = client.get("/sessions/one/history", limit=100).json()["items"]
    eighth, tenth = (items[number]["entry"] for number in (8, 10))
    shown = client.post("/sessions/one/previews", {"since": eighth}).json()
    assert shown["summary"].startswith("<folded-range>")
    told = client.post(f"/sessions/one/previews/{shown['id']}/commit").json()
    assert told["receipt"]["summarizer"] == "offline"
    view = client.get("/sessions/one/view").json()["messages"]
    assert view[:8] == whole[:8]
    assert len(view) == 9
    assert {one["how"] for one in client.get("/sessions/one/history", limit=100).json()["items"][8:-1]} == {
        "folded"
    }
    assert [one["made"] for one in client.get("/sessions/one/boundaries").json()["boundaries"]] == [
        "compaction"
    ]
    assert client.get("/sessions/one/stats").json()["stats"]["summaries"] == 1
    client.post("/sessions/one/undo")
    assert client.get("/sessions/one/stats").json()["stats"]["summaries"] == 0
    assert client.get("/sessions/one/view").json()["messages"] == whole
    client.post("/sessions/one/compact", {"up_to": eighth, "instructions": "the questions"})
    view = client.get("/sessions/one/view").json()["messages"]
    assert view[1:] == whole[11:]
    assert view[0]["content"].endswith(whole[10]["content"])  # this model takes turns
    assert "cannot be folded" in client.post("/sessions/one/compact", {"since": eighth}, status=400).text
    client.post("/sessions/one/compact", {"since": tenth, "up_to": tenth}, status=400)


def test_a_preview_is_shown_edited_and_committed(client):
    client.begin("one", messages=chat(20))
    shown = client.post("/sessions/one/previews", {"target": 4_000}).json()
    assert client.get("/sessions/one/stats").json()["stats"]["summaries"] == 0
    assert client.get(f"/sessions/one/previews/{shown['id']}").json() == shown
    client.say("one", user("Meanwhile."))
    edited = shown["summary"] + "\nThe neighbour helped."
    told = client.post(f"/sessions/one/previews/{shown['id']}/commit", {"summary": edited}).json()
    assert told["receipt"]["summarizer"] == "by hand"
    view = client.get("/sessions/one/view").json()["messages"]
    assert "The neighbour helped." in str(view)
    assert view[-1] == user("Meanwhile.")
    client.post(f"/sessions/one/previews/{shown['id']}/commit", status=404)


def test_a_preview_is_dropped_and_is_no_other_sessions(client):
    client.begin("one", messages=chat(20))
    client.begin("two", messages=chat(20))
    name = client.post("/sessions/one/previews").json()["id"]
    client.post(f"/sessions/two/previews/{name}/commit", status=404)
    client.send("DELETE", f"/sessions/one/previews/{name}")
    client.get(f"/sessions/one/previews/{name}", status=404)
    stale = client.post("/sessions/one/previews").json()["id"]
    client.post("/sessions/one/compact")
    told = client.post(f"/sessions/one/previews/{stale}/commit").json()
    assert (told["receipt"], told["nothing"]["why"]) == (None, "nothing_new")


def test_a_branch_or_a_fork_is_merged_as_a_note(client):
    client.begin("one", messages=chat(3))
    taken = client.post("/sessions/one/rewind").json()
    client.say("one", user("Ask the neighbours."))
    told = client.post("/sessions/one/merge", {"branch": taken["left"], "instructions": "answers"}).json()
    assert told["leaf"] == told["entry"]
    note = client.get("/sessions/one/history").json()["items"][-1]
    assert note["entry"] == told["entry"]
    assert note["injected"]
    assert "Question 2." in note["text"]
    assert "Question 1." not in note["text"]
    client.post("/sessions/one/fork", {"id": "two"})
    client.say("two", user("What of the garden?"), {"role": "assistant", "content": "It is green."})
    client.post("/sessions/one/merge", {"branch": "two"})
    assert "It is green." in client.get("/sessions/one/view").json()["messages"][-1]["content"]
    client.post("/sessions/one/merge", {"branch": told["entry"]}, status=400)
    client.post("/sessions/one/merge", {"branch": "nowhere"}, status=400)


def test_rewind_and_branch(client):
    client.begin("one", messages=chat(3))
    taken = client.post("/sessions/one/rewind").json()
    assert taken["text"].startswith("Question 2.")
    client.say("one", user("Another question."))
    assert len(client.get("/sessions/one/branches").json()["branches"]) == 2
    client.post("/sessions/one/branch", {"entry": taken["left"], "summarize": True})
    assert "Another question." in str(client.get("/sessions/one/view").json()["messages"][-1])
    client.post("/sessions/one/branch", {"entry": "nothing"}, status=400)
    client.post("/sessions/one/branch", status=400)


def test_fork_and_hand_off(client):
    client.begin("one", messages=chat(20), policy="pi")
    entry = client.get("/sessions/one/history", limit=100).json()["items"][3]["entry"]
    forked = client.post("/sessions/one/fork", {"id": "two", "entry": entry})
    assert forked.headers["location"] == "/api/sessions/two"
    assert len(client.get("/sessions/two/history").json()["items"]) == 4
    assert client.get("/sessions/two").json()["policy"] == "pi"
    client.post("/sessions/one/fork", {"id": "two"}, status=409)
    text = client.post("/sessions/one/handoff/preview", {"goal": "Write the report"}).json()["text"]
    told = client.post(
        "/sessions/one/handoff", {"goal": "Write the report", "id": "three", "text": text}
    ).json()
    assert told["id"] == "three"
    assert RULE in str(client.get("/sessions/three/view").json()["messages"])
    detail = client.get("/sessions/three").json()
    assert [(one["session"], one["way"]) for one in detail["links"]] == [("one", "from")]
    assert detail["policy"] == "pi"
    client.begin("empty")
    client.post("/sessions/empty/handoff", {}, status=400)


def test_the_context_is_folded_where_the_policy_says_so(tmp_path):
    with api(window=12_000) as (client, _):
        said = chat(30)
        client.begin("one", messages=said)  # a worker may fold it before it is looked at
        assert len(str(said)) > 4 * 12_000
        view = client.post("/sessions/one/context").json()
        assert view["tokens"] < 12_000
        assert view["messages"] == client.get("/sessions/one/view").json()["messages"]
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        client.say("one", user("Read."), {"role": "assistant", "content": None, "tool_calls": [call]})
        client.post("/sessions/one/context", status=409)
