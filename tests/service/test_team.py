"""A service for a team: whose sessions are, what is deleted with them, who did what, and who is told."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import http.server
import json
import sqlite3
import threading
import time
from contextlib import closing
from io import BytesIO

import msgspec
import pytest
from tests.service.api.client import Client, api, chat, user
from tests.service.served import run_gateway
from tests.support import patient
from tests.support.waiting import wait_until

from foldline.config import FILE, ServeSettings, TokenGrant, Webhook, own_tokens
from foldline.errors import InputError
from foldline.loading import from_stream, restore
from foldline.service import tokens
from foldline.service.api.state import IMPORTED
from foldline.service.tenants import Tenants
from foldline.service.tokens import hashed, new_token
from foldline.stores import SqliteStore, sqlite

OWNER, WRITER = new_token(), new_token()
TOKENS = {
    hashed(OWNER): TokenGrant("acme", name="owner"),
    hashed(WRITER): TokenGrant("acme", ("read", "write")),
}
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 's.db'}"


def ids(client, **query):
    found = client.get("/sessions", **query).json()
    return found["total"], {one["id"] for one in found["sessions"]}


def test_sessions_have_a_user_by_whom_they_are_listed_and_deleted(store):
    with api(store=store) as (client, _):
        client.begin("a1", user="ada", title="The parser", metadata={"project": "compiler"}, messages=chat(2))
        client.begin("a2", user="ada")
        client.begin("b1", user="bob")
        client.begin("none")
        forked = client.post("/sessions/a1/fork", status=201).json()["id"]
        next_ = client.post("/sessions/a1/handoff", {"goal": "Mend it."}, status=201).json()["id"]
        client.post("/sessions/a2/clear")
        shown = client.get("/sessions/a1").json()
        assert (shown["info"]["user"], shown["metadata"]) == ("ada", {"project": "compiler"})
        assert ids(client, user="ada") == (4, {"a1", "a2", forked, next_})
        assert ids(client, user="ada", title="parser")[1] >= {"a1"}
        assert ids(client, user="ada", limit=1)[0] == 4
        assert ids(client, user="nobody") == (0, set())
        client.send("DELETE", "/sessions", 400)
        assert client.send("DELETE", "/sessions", 200, params={"user": "ada"}).json() == {
            "deleted": 4,
            "busy": [],
        }
        assert ids(client) == (2, {"b1", "none"})
        client.get("/sessions/a1", 404)
        lines = client.get("/audit").json()["lines"]
        assert {(one["action"], one["session"]) for one in lines} >= {("deleted", "a1"), ("deleted", forked)}


def test_user_metadata_and_title_of_a_session_are_changed(store):
    with api(store=store) as (client, _):
        client.begin("one", user="ada", title="Old", metadata={"project": "compiler", "to": "go"})
        client.begin("two", user="ada")
        leaf = client.leaf("one")
        change = {"title": "New", "user": "bob", "metadata": {"project": "linker"}}
        headers = {"If-Match": leaf}
        changed = client.send("PATCH", "/sessions/one", json=change, headers=headers)
        assert changed.headers["etag"] == client.leaf("one") != leaf
        client.send("PATCH", "/sessions/one", 412, json=change, headers=headers)
        client.say("one", user("Hello."))
        client.send("PATCH", "/sessions/two", json={"metadata": {"a": "b"}})
        client.send("PATCH", "/sessions/two", json={"metadata": {}})
        client.send("PATCH", "/sessions/two", json={})
        client.send("PATCH", "/sessions/two", 400, json={"user": ""})
        client.send("PATCH", "/sessions/two", 400, json={"model": "m"})
        for name, expected in (("one", ("New", "bob", {"project": "linker"})), ("two", ("", "ada", {}))):
            shown = client.get(f"/sessions/{name}").json()
            info = shown["info"]
            assert (info.get("title"), info["user"], shown["metadata"]) == expected
        assert ids(client, user="bob") == (1, {"one"})
        forked = client.post("/sessions/one/fork", status=201).json()["id"]
        client.post("/sessions/one/clear")
        for name in ("one", forked):
            shown = client.get(f"/sessions/{name}").json()
            assert (shown["info"]["user"], shown["metadata"]) == ("bob", {"project": "linker"})
        found = client.get("/audit", session="one").json()["lines"][-1]
        assert (found["action"], found["data"]) == ("changed", {"fields": ["title", "user", "metadata"]})
        assert "bob" not in str(found)


def test_a_change_holds_on_every_branch_and_beside_the_user_that_an_agent_names():
    body = {"model": "m", "messages": [user("Hello.")]}
    with run_gateway(["Hello.", "Hello."]) as (url, _):

        def ask(who):
            headers = {"authorization": "Bearer k", "foldline-session": "one", "foldline-user": who}
            assert patient.post(f"{url}/v1/chat/completions", json=body, headers=headers).status_code == 200

        ask("ada")
        changed = patient.request("PATCH", f"{url}/api/sessions/one", json={"metadata": {"a": "b"}})
        assert changed.status_code == 200
        ask("bob")
        entry = patient.get(f"{url}/api/sessions/one/history").json()["items"][0]["entry"]
        assert patient.post(f"{url}/api/sessions/one/rewind", json={"entry": entry}).status_code == 200
        shown = patient.get(f"{url}/api/sessions/one").json()
        assert (shown["info"]["user"], shown["metadata"]) == ("bob", {"a": "b"})


def test_pages_have_every_session_once_whatever_comes_and_goes(store):
    with api(store=store) as (client, _):
        for number in range(7):
            client.begin(f"s{number}", user="ada", title=f"The {number}th")
        for query in ({}, {"user": "ada"}, {"title": "the"}, {"user": "ada", "title": "th"}):
            names, cursor = [], {}
            for number in range(9):
                page = client.get("/sessions", limit=3, **query, **cursor).json()
                names += [one["id"] for one in page["sessions"]]
                client.begin(user="ada", title="The new one", name=f"n{len(query)}{len(str(query))}{number}")
                if page["next"] is None:
                    break
                cursor = {"cursor": page["next"]}
            old = [one for one in names if one.startswith("s")]
            assert old == [f"s{number}" for number in reversed(range(7))]
            assert len(set(names)) == len(names)
        client.send("DELETE", f"/sessions/{names[2]}")
        assert client.get("/sessions", **cursor).json()["sessions"] == page["sessions"]
        for mangled in ("x", cursor["cursor"][:-6], cursor["cursor"] + "x", "bnVsbA=="):
            refused = client.get("/sessions", 400, cursor=mangled).json()
            assert refused["type"] == "/api/problems#the-request-is-wrong"


def test_an_agent_names_the_user_of_its_session():
    body = {"model": "m", "messages": [user("Hello.")]}
    with run_gateway(["Hello.", "Hello.", "Hello."]) as (url, model):
        for name in ("ada", "ada", "not a name"):
            headers = {"authorization": "Bearer k", "foldline-user": name}
            assert patient.post(f"{url}/v1/chat/completions", json=body, headers=headers).status_code == 200
        listed = patient.get(f"{url}/api/sessions", params={"user": "ada"}).json()
        assert listed["total"] >= 1
        assert "foldline-user" not in str([asked.headers for asked in model.requests])


def test_what_was_not_used_for_long_is_deleted(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    with api(store=url) as (client, _):
        client.begin("one", messages=chat(2))
    with api(store=url, keep_days=400.0) as (client, _):
        client.begin("two")
        assert ids(client) == (2, {"one", "two"})
    time.sleep(0.01)
    with api(store=url, keep_days=1e-9) as (client, _):
        wait_until(lambda: ids(client) == (0, set()), 60)
        lines = client.get("/audit").json()["lines"]
        assert {one["data"]["why"] for one in lines if one["action"] == "deleted"} == {"age"}


def test_a_deletion_whose_pages_another_process_still_reads_is_done_and_told(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sqlite, "_empty_log", lambda database, timeout, empty=sqlite._empty_log: empty(database, 0.01)
    )
    file = tmp_path / "s.db"
    with api(store=f"sqlite:///{file}") as (client, _), closing(sqlite3.connect(file)) as reader:
        for name in ("one", "two", "three"):
            client.begin(name, messages=chat(2))
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM entries").fetchone()[0]
        client.send("DELETE", "/sessions/one", 204)
        client.send("DELETE", "/sessions/one", 404)

        def told():
            lines = client.get("/audit").json()["lines"]
            return {(one["session"], one["data"]["why"]) for one in lines if one["action"] == "deleted"}

        assert told() == {("one", "asked")}
        with api(store=f"sqlite:///{file}", keep_days=1e-9):
            wait_until(lambda: told() == {("one", "asked"), ("two", "age"), ("three", "age")})
        assert ids(client) == (0, set())


async def test_an_old_transcript_is_kept_as_long_as_if_it_were_said_when_it_was_imported(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("foldline.service.app.RETENTION_SECONDS", 0.05)
    url = f"sqlite:///{tmp_path / 's.db'}"
    said = {"role": "user", "content": "Hello."}
    line = {"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "x", "message": said}
    raw = json.dumps({**line, "timestamp": "2020-01-01T00:00:00Z"}).encode()
    loaded = from_stream(BytesIO(raw), "transcript")
    with api(store=url, keep_days=400.0) as (client, _):

        def imported():
            sent = client.send("POST", "/imports", content=raw, params={"id": "imported"}).json()
            return sent["messages"], sent["new_entries"]

        assert imported() == (1, len(loaded.entries))
        store = SqliteStore(tmp_path / "s.db")
        await restore(store, "old", loaded.entries, loaded.entries[-1].id)
        await asyncio.to_thread(wait_until, lambda: ids(client) == (1, {"imported"}))
        assert imported() == (1, 0)
        assert await store.key_values.delete(IMPORTED, "imported")  # as when its time is over
        await asyncio.to_thread(wait_until, lambda: ids(client) == (0, set()))
        assert imported()[1]
        assert await store.key_values.keys(IMPORTED) == ["imported"]
        await store.close()


def test_folds_and_undos_are_in_the_audit_log_with_who_made_them(store):
    headers = {"authorization": f"Bearer {OWNER}", "x-request-id": "r-1"}
    with api(store=store, tokens=TOKENS, headers=headers) as (client, _):
        client.begin("one", messages=chat(20))
        receipt = client.post("/sessions/one/compact").json()["receipt"]
        client.post("/sessions/one/undo")
        client.post("/sessions/one/redo")
        client.begin("two", messages=chat(20))
        client.post("/sessions/two/compact")

        def lines(**query):
            return client.get("/audit", **query).json()["lines"]

        wait_until(lambda: len(lines()) == 4, 60)
        found = sorted(lines(session="one"), key=lambda line: line["no"])
        assert {line["action"] for line in found} == {"compacted", "undone", "redone"}
        assert {(line["token"], line["request"]) for line in found} == {("owner", "r-1")}
        assert len({line["entry"] for line in found}) == 1
        (fold,) = (line for line in found if line["action"] == "compacted")
        assert fold["data"]["tokens_before"] == receipt["tokens_before"]
        assert "Question" not in str(found)
        first = client.get("/audit", limit=3).json()
        rest = client.get("/audit", limit=3, before=first["next"]).json()
        assert [len(first["lines"]), len(rest["lines"]), rest["next"]] == [3, 1, None]
        found = patient.get(f"{client.url}/api/audit", headers={"authorization": f"Bearer {WRITER}"})
        assert found.status_code == 403


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes webhooks; the first delivery of each fails."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        known = self.server.came.setdefault(self.headers["webhook-id"], [])
        known.append((dict(self.headers.items()), body))
        self.send_response(500 if len(known) == 1 else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.came = {}
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_fold_is_posted_signed_and_again_where_it_was_not_taken(receiver, monkeypatch):
    monkeypatch.setattr("foldline.service.feed.WAITS", (0.0, 0.01))
    hook = Webhook(f"http://127.0.0.1:{receiver.server_port}/in", SECRET, ("session.compacted",))
    with api(webhooks=(hook,)) as (client, _):
        client.begin("one", messages=chat(20))
        receipt = client.post("/sessions/one/compact").json()["receipt"]
        client.post("/sessions/one/undo")
        wait_until(lambda: [len(tries) for tries in receiver.came.values()] == [2], 60)
    ((name, tries),) = receiver.came.items()
    for headers, body in tries:
        signed = f"{name}.{headers['webhook-timestamp']}.".encode() + body
        mac = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{mac}"
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 300
    told = json.loads(tries[-1][1])
    assert told["type"] == "session.compacted"
    assert (told["data"]["tenant"], told["data"]["session"]) == ("default", "one")
    assert told["data"]["tokens_after"] == receipt["tokens_after"]
    assert b"Question" not in tries[-1][1]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"secret": "short"}, "openssl rand"),
        ({"secret": "whsec_abc"}, "openssl rand"),
        ({"url": "x"}, "http://"),
    ],
)
def test_a_webhook_that_cannot_be_is_told_at_the_start(changes, told):
    hook = msgspec.structs.replace(Webhook("https://example.com", SECRET), **changes)
    with pytest.raises(InputError, match=told):
        Tenants(ServeSettings(webhooks=(hook,)), "memory://")


def follow(client, session, count, meanwhile=None, **headers):
    """The next events of a session as (name, data); once it is followed, `meanwhile` is called."""
    found = []
    with client.http.stream("GET", f"/sessions/{session}/events", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        if meanwhile is not None:
            meanwhile()
        block = {}
        for line in response.iter_lines():
            if line and not line.startswith(":"):
                block |= [line.split(": ", 1)]
            elif not line and block:
                found.append((block["event"], json.loads(block["data"])))
                block = {}
            if len(found) == count:
                return found
    return found


def test_a_session_is_followed_and_gone_on_with_from_the_last_event(store):
    with api(store=store) as (client, _), api(store=store) as (other, _):
        shared = client if store == "memory://" else other
        client.begin("one", messages=chat(20))
        before = client.leaf("one")[1:-1]
        shared.post("/sessions/one/compact")
        shared.post("/sessions/one/undo")
        shared.say("one", user("And now?"))
        events = follow(client, "one", 3, **{"last-event-id": before})
        assert [name for name, _ in events] == ["compacted", "undone", "message"]
        assert events[0][1]["tokens_after"] < events[0][1]["tokens_before"]
        assert events[2][1]["role"] == "user"
        assert follow(client, "one", 1, **{"last-event-id": events[1][1]["entry"]}) == events[2:]
        assert [name for name, _ in follow(client, "one", 1, **{"last-event-id": "none"})] == ["moved"]
        client.get("/sessions/none/events", 404)


def test_a_stream_ends_when_its_token_is_revoked(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tokens, "LOOK_SECONDS", 0)
    file, (revoked, kept) = tmp_path / FILE, (new_token(), new_token())
    file.parent.mkdir()
    file.write_text(f'serve.tokens = {{ "{revoked}" = "a", "{kept}" = "a" }}')
    with api(tokens=own_tokens(), headers={"authorization": f"Bearer {revoked}"}) as (client, _):
        client.begin("one")
        other = Client(client.url, authorization=f"Bearer {kept}")

        def revoke():
            file.write_text(f'serve.tokens = {{ "{kept}" = "a" }}')
            other.say("one", user("Hello."))

        assert follow(client, "one", 1, revoke) == []
        assert [name for name, _ in follow(other, "one", 1, lambda: other.say("one", user("Hi.")))] == [
            "message"
        ]
        other.close()


def test_who_follows_hears_what_comes_and_that_the_session_is_deleted():
    with api() as (client, _):
        client.begin("one")
        ((name, told),) = follow(client, "one", 1, lambda: client.say("one", user("Hello.")))
        assert (name, told["role"]) == ("message", "user")
        told = follow(client, "one", 9, lambda: client.send("DELETE", "/sessions/one"))
        assert told == [("deleted", {})]
