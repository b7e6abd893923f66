"""Sessions over HTTP: made, listed, searched, appended to, read page by page, cleared, deleted."""

from __future__ import annotations

from tests.service.api.client import RULE, api, chat, reply, user
from tests.support import patient

from foldline.stores import MemoryStore


def test_a_session_is_made_listed_found_and_deleted(store):
    with api(store=store) as (client, _):
        made = client.post("/sessions", {"title": "Parcels", "messages": [user("Did the parcel come?")]})
        info = made.json()
        assert (made.status_code, info["title"], info["messages"]) == (201, "Parcels", 1)
        assert made.headers["location"] == f"/api/sessions/{info['id']}"
        client.begin("letters", title="Letters", messages=chat(3))
        listed = client.get("/sessions", limit=1).json()
        assert (listed["total"], listed["sessions"][0]["id"]) == (2, "letters")
        assert [one["id"] for one in client.get("/sessions", title="parc").json()["sessions"]] == [info["id"]]
        (hit,) = client.get("/search", q="parcel").json()["hits"]
        assert hit["session"] == info["id"]
        shown = client.get("/sessions/letters", verify="true").json()
        assert (shown["info"]["messages"], shown["verified"]) == (8, [])
        client.send("PATCH", "/sessions/letters", json={"title": "Post"})
        assert client.get("/sessions/letters").json()["info"]["title"] == "Post"
        client.send("DELETE", "/sessions/letters")
        client.get("/sessions/letters", status=404)
        client.begin("letters")
        assert client.get("/sessions/letters/history").json()["items"] == []


def test_an_id_is_given_once(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Hello.")])
        client.post("/sessions/one/clear")
        client.post("/sessions", {"id": "one"}, status=409)
        client.post("/sessions", {"id": "../one"}, status=400)
        client.post("/sessions", {"id": "one\n"}, status=400)


def test_a_session_that_cannot_be_begun_whole_is_not_begun(store):
    with api(store=store) as (client, _):
        client.post("/sessions", {"id": "one", "messages": [{"role": "nobody"}]}, status=400)
        client.get("/sessions/one", status=404)
        client.post("/sessions", {"id": "one", "model": "openai:other"}, status=400)
        client.post("/sessions", {"id": "one", "policy": "/etc/policies.toml"}, status=400)
        assert client.get("/sessions").json()["total"] == 0


def test_what_a_session_was_made_with_lasts(tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"
    with api(store=store) as (client, _):
        client.begin("one", policy="pi", system="You help.", messages=[user("Hello.")])
        assert client.get("/sessions/one").json()["policy"] == "pi"
    with api(store=store) as (client, _):
        client.say("one", reply("Hello."))
        assert client.get("/sessions/one").json()["policy"] == "pi"
        assert client.get("/sessions/one/view").json()["system"] == "You help."
        client.post("/sessions/one/clear")
        assert client.get("/sessions/one").json()["policy"] == "pi"


def test_the_history_is_read_page_by_page_with_its_boundaries(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=chat(20))
        receipt = client.post("/sessions/one/compact", {"instructions": "the questions"}).json()["receipt"]
        client.say("one", user("And now?"))
        items, before, pages = [], None, 0
        while pages == 0 or before:
            page = client.get(
                "/sessions/one/history", limit=15, **({"before": before} if before else {})
            ).json()
            items, before, pages = page["items"] + items, page["before"], pages + 1
        assert pages == 3
        assert [one["kind"] for one in items].count("boundary") == 1
        said = [one for one in items if one["kind"] == "message"]
        assert [one["native"][0] for one in said] == [*chat(20), user("And now?")]
        assert {one["how"] for one in said} >= {"kept", "folded"}
        (boundary,) = [one for one in items if one["kind"] == "boundary"]
        assert boundary["receipt"]["tokens_after"] == receipt["tokens_after"]
        assert RULE in boundary["summary"]
        client.get("/sessions/one/history", before="nothing", status=400)


def test_the_leaf_of_a_history_is_that_of_what_it_shows(monkeypatch):
    """Somebody speaks while it is read: a page that asks what came behind this leaf must be told of it."""
    marks = MemoryStore.marks

    async def marks_late(self, session, leaf=None, **given):
        if late:
            body = {"messages": [reply(late.pop())]}
            async with patient.AsyncClient(base_url=client.url) as other:
                (await other.post("/api/sessions/s/messages", json=body)).raise_for_status()
        return await marks(self, session, leaf, **given)

    late = []
    monkeypatch.setattr(MemoryStore, "marks", marks_late)
    with api() as (client, _):
        client.begin("s")
        client.say("s", user("One."))
        late.append("Two.")
        found = client.get("/sessions/s/history").json()
        assert not late
        assert [item["text"] for item in found["items"]] == ["[User]: One."]
        assert found["leaf"] == found["items"][-1]["entry"]
        found = client.get("/sessions/s/history").json()
        assert found["leaf"] == found["items"][-1]["entry"]
        assert len(found["items"]) == 2


def test_view_stats_recall_and_reading(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=chat(20))
        client.post("/sessions/one/compact")
        view = client.get("/sessions/one/view").json()
        assert RULE in str(view["messages"])
        assert len(view["messages"]) < 42
        stats = client.get("/sessions/one/stats").json()["stats"]
        assert (stats["total_messages"], stats["summaries"]) == (42, 1)
        assert stats["active_messages"] < 42
        assert stats["compression_ratio"] < 1
        hit = client.get("/sessions/one/recall", q="Question 0").json()["hits"][0]
        passage = client.get(f"/sessions/one/entries/{hit['entry']}", limit=10).json()
        assert passage["next_offset"] == 10
        folded = client.get("/sessions/one/folded", limit=3).json()["entries"]
        assert len(folded) == 3
        client.get("/sessions/one/entries/nothing", status=400)


def test_pins_and_constraints(store):
    with api(store=store) as (client, _):
        client.begin("one", messages=chat(20))
        entry = client.get("/sessions/one/history", limit=100).json()["items"][4]["entry"]
        client.send("PUT", f"/sessions/one/pins/{entry}")
        assert [one["entry"] for one in pinned(client)] == [entry]
        client.send("DELETE", f"/sessions/one/pins/{entry}")
        assert pinned(client) == []
        client.send("PUT", "/sessions/one/pins/nothing", 400)
        (fact,) = client.get("/sessions/one/constraints").json()["standing"]
        assert fact["text"] == RULE


def pinned(client):
    items = client.get("/sessions/one/history", limit=100).json()["items"]
    return [one for one in items if one["kind"] == "message" and one["pinned"]]


def test_a_cleared_session_keeps_what_was_said_as_a_branch(store):
    with api(store=store) as (client, _):
        client.begin("one", title="Work", messages=chat(3))
        client.post("/sessions/one/clear")
        assert client.get("/sessions/one/history").json()["items"] == []
        assert client.get("/sessions/one").json()["info"]["title"] == "Work"
        client.say("one", user("Anew."))
        (old, new) = sorted(
            client.get("/sessions/one/branches").json()["branches"], key=lambda b: b["current"]
        )
        assert (old["messages"], new["messages"]) == (8, 1)
        client.post("/sessions/one/branch", {"entry": old["leaf"]})
        assert len(client.get("/sessions/one/history").json()["items"]) == 8
