"""What hostile clients try against the service. Each is refused or harmless, and the service answers the next."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import logging
import re
import socket
import threading
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.service.api.client import Client, api, chat, reply, user
from tests.service.served import run_gateway, run_service
from tests.service.upstream import JSON, Prepared, served_upstream, upstream
from tests.support import patient
from tests.support.waiting import wait_until

from foldline.service import bodies, server
from foldline.service.api import stateless
from foldline.service.gateway import exchange

pytestmark = pytest.mark.slow

SECRET = "sk-ant-api03-" + "Qd7" * 31
CHAT = json.dumps({"model": "m", "messages": [user("Hello.")]}).encode()


@contextlib.contextmanager
def wire(url):
    """A bare connection to a server."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as sock:
        yield sock


def answered(sock):
    """All that comes until the server closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65_536):
            found += piece
    return found


def head_of(sock):
    """What comes until a head is whole; the connection may stay open."""
    found = b""
    while b"\r\n\r\n" not in found:
        piece = sock.recv(65_536)
        assert piece, found
        found += piece
    return found


def answered_soon(sock):
    """What comes before half a second of silence, if anything does."""
    sock.settimeout(0.5)
    found = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while piece := sock.recv(65_536):
            found += piece
    return found


def statuses(found):
    return [int(one) for one in re.findall(rb"HTTP/1\.1 (\d{3})", found)]


# ---- paths and names


@pytest.mark.parametrize(
    "path",
    [
        "/api/sessions/../../etc/passwd",
        "/api/sessions/..%2f..%2fetc%2fpasswd",
        "/api/sessions/%2e%2e/%2e%2e/settings.toml/view",
        "/api/sessions/..%5c..%5csettings/export",
        "/api/sessions/%00/view",
        "/api/sessions/sqlite:%2f%2f%2fetc%2fpasswd/view",
        "/v1/models/..%2f..%2fadmin",
        "/v1/../admin",
        "/v1/files/..;/admin",
        "//evil.example/v1/models",
        "/api/sessions/" + "a" * 30_000,
    ],
)
def test_paths_lead_nowhere_but_to_the_api(path, tmp_path):
    (tmp_path / "settings.toml").write_text("model = 'm'")
    with served_upstream(store=f"sqlite:///{tmp_path / 's.db'}") as (at, model):
        model.prepared[""] = Prepared(404, JSON, [b"{}"])
        with wire(at) as sock:
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            found = answered(sock)
        assert statuses(found)[0] in (400, 404), found[:200]
        assert b"root:" not in found
        paths = [one.path for several in model.received.values() for one in several]
        assert all(one.startswith("/v1/") and ".." not in one for one in paths)


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "a\\b", "", ".", "a b", "a\nb", "é", "x" * 129, "a'; DROP TABLE entries;--"]
)
def test_a_sessions_name_is_one_word(name):
    with api() as (client, _):
        client.post("/sessions", {"id": name}, 400)
        assert client.get("/sessions").json()["total"] == 0


def test_words_of_a_search_are_no_query_language():
    with api() as (client, _):
        client.begin("one", messages=chat(2))
        for words in ('" OR 1=1 --', "NEAR(", "a* AND", "'; DROP TABLE entries;--", "(" * 500, "\x00", "😀"):
            client.get("/search", q=words)
            client.get("/sessions/one/recall", q=words)
        assert client.get("/search", q='nothing" OR "1"="1').json()["hits"] == []
        assert client.get("/search", q="Question").json()["hits"]


# ---- sizes and patience


def test_a_body_is_not_read_further_than_its_limit():
    with run_service(max_body=10_000) as at:
        for path in ("/api/sessions", "/api/imports", "/api/fold", "/v1/messages", "/v1/chat/completions"):
            with wire(at) as sock:  # the size is told
                sock.sendall(
                    f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n".encode()
                )
                assert statuses(head_of(sock)) == [413]
            with wire(at) as sock:  # the size is not told
                sock.sendall(
                    f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
                )
                with contextlib.suppress(ConnectionError):
                    for _ in range(40):
                        sock.sendall(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")
                assert statuses(answered_soon(sock)) in ([413], [])
        assert patient.get(f"{at}/health").status_code == 200


def test_a_packed_transcript_is_unpacked_up_to_the_limit():
    bomb = gzip.compress(b"\n" * 200_000_000)
    with api(max_body=1_000_000) as (client, _):
        assert len(bomb) < 1_000_000
        refused = client.send("POST", "/imports", 413, content=bomb)
        assert "unpacked" in refused.json()["detail"]
        client.send("POST", "/imports", 400, content=gzip.compress(b"{}")[:-3])


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"messages": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"messages": [' + b'{"role": "user", "content": [{"a":' * 2_000 + b"1" + b"}]}" * 2_000 + b"]}",
        b"\xff\xfe\x00",
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"title": "' + b"x" * 2_000_000 + b'"}',
        b'{"messages": [{"role": "user", "content": ' + b"1" * 5_000 + b"}]}",
        b'{"id": "a", "id": "b"}',
    ],
    ids=["brackets", "nested", "objects", "bytes", "half a character", "title", "number", "twice"],
)
def test_hostile_json_is_a_problem_and_no_defect(body, caplog):
    with api(max_body=4_000_000) as (client, _):
        for path in ("/sessions", "/fold", "/turn"):
            found = client.http.post(path, content=body, headers={"content-type": "application/json"})
            assert found.status_code < 500, (path, found.text)
        found = client.http.post("/imports", content=body)
        assert found.status_code < 500, found.text
        assert client.get("/sessions").status_code == 200
    assert [one for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_slow_clients_are_let_go_of_and_others_are_served_meanwhile(monkeypatch):
    monkeypatch.setattr(bodies, "SECONDS", 0.5)
    with (
        run_service() as at,
        patient.Client(base_url=at) as quick,
        wire(at) as kept,
        contextlib.ExitStack() as open_,
    ):

        def begin(sent):
            (sock := open_.enter_context(wire(at))).sendall(sent)
            return sock

        start = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"
        without_a_body = [begin(start) for _ in range(10)]
        kept.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" in kept.recv(4096)
        assert quick.get("/health").status_code == 200  # all of these were taken on
        monkeypatch.setattr(server, "HEAD_SECONDS", 1.0)
        without_a_head = [begin(some) for some in (b"GET /health HTTP/1.1\r\nHost:", b"") for _ in range(10)]
        assert quick.get("/health").status_code == 200
        assert [statuses(head_of(sock)) for sock in without_a_body] == [[408]] * 10
        assert [answered(sock) for sock in without_a_head] == [b""] * 20
        kept.sendall(b"GET /health HTTP/1.1\r\n")  # the second request of a connection
        assert statuses(answered(kept)) == []


SLOW = ["/web/login", "/web/new", "/web/import", "/web/replay", "/web/s/one/preview/p/keep", "/v1/files"]


@pytest.mark.parametrize("path", SLOW)
def test_a_form_or_a_file_that_does_not_come_is_not_waited_for(path, monkeypatch):
    monkeypatch.setattr(bodies, "SECONDS", 0.2)
    token = b"" if path == "/web/login" else b"foldline-token: token-for-tests-1\r\n"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
        "Content-Type: application/x-www-form-urlencoded\r\n"
    ).encode()
    with (
        upstream() as (url, model),
        run_service(openai_upstream=url, tokens={"token-for-tests-1": "default"}) as at,
        wire(at) as sock,
    ):
        model.prepared[""] = Prepared()
        sock.sendall(head + token + b"\r\nt")
        assert statuses(head_of(sock)) == [408]


@pytest.mark.parametrize("path", ["/web/login", "/v1/files"])
def test_who_leaves_in_the_middle_of_a_body_is_no_defect_in_the_log(path, caplog):
    caplog.set_level(logging.INFO, "foldline.access")
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
    kind = "Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    with served_upstream() as (at, model):
        model.prepared[""] = Prepared()
        with wire(at) as sock:
            sock.sendall(f"{head}{kind}t".encode())
        wait_until(lambda: [one for one in caplog.records if one.name == "foldline.access"])
    (line,) = (one for one in caplog.records if one.name == "foldline.access")
    assert line.fields["status"] == 400


class Endless:
    """An upstream whose answer has no end; `left` says that its client has gone."""

    def __init__(self):
        self.left = threading.Event()

    async def __call__(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        leaving = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not leaving.done():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await asyncio.sleep(0)
        self.left.set()


def test_who_reads_nothing_of_an_answer_is_let_go_of(monkeypatch, caplog):
    monkeypatch.setattr(exchange, "READ_SECONDS", 0.2)
    with upstream(Endless()) as (url, model), run_service(openai_upstream=url) as at, wire(at) as sock:
        sock.sendall(b"GET /v1/files/f-1/content HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert model.left.wait(60)
    assert "the client has read nothing" in caplog.text


def test_who_reads_nothing_of_a_turn_is_let_go_of(monkeypatch):
    monkeypatch.setattr(stateless, "SEND_SECONDS", 0.2)
    events, ended = stateless._events, threading.Event()

    async def without_an_end(*given):
        try:
            async for event in events(*given):
                yield event
            while True:
                yield {"data": "x" * 65_536}
        finally:
            ended.set()

    monkeypatch.setattr(stateless, "_events", without_an_end)
    said = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hello."}]}
    body = json.dumps({"messages": [said], "model": "openai:scripted"}).encode()
    head = f"POST /api/turn HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    with run_gateway(["Hello."]) as (at, _), wire(at) as sock:
        sock.sendall(head.encode() + b"Authorization: Bearer k\r\n\r\n" + body)
        assert ended.wait(60)


# ---- headers, and one request for another


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 50\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 5 5\r\n",
        b"Content-Length: +5\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b" Folded: x\r\nHost: localhost\r\n",
        b"X : y\r\n",
        b"X: a\x00b\r\n",
        b"X: " + b"y" * 200_000 + b"\r\n",
    ],
)
def test_a_head_that_two_servers_could_read_differently_is_refused(head):
    with served_upstream() as (at, model), wire(at) as sock:
        sock.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + CHAT)
        found = answered_soon(sock)
        assert set(statuses(found)) <= {400, 431, 501}, found[:300]
        assert not model.received


def test_a_request_within_a_request_does_not_go_on():
    inner = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nx-case: inner\r\nContent-Length: 2\r\n\r\n{}"
    with served_upstream(store="memory://") as (at, model):
        for case in ("outer", "inner"):
            model.prepared[case] = Prepared(200, JSON, [b"{}"])
        body = CHAT[:-1] + b', "x": ' + json.dumps(inner.decode()).encode() + b"}"
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        with wire(at) as sock:
            sock.sendall(
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nx-case: outer\r\nConnection: close\r\n"
                b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked
            )
            answered_soon(sock)
        assert set(model.received) <= {"outer"}
        for sent in model.received.get("outer", []):
            assert sent.body == body
            assert not [value for name, value in sent.headers if name.lower() == "transfer-encoding"]


OF_A_PROXY = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-user",
    "x-real-ip",
    "x-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
]


def test_headers_for_the_next_hop_and_for_the_gateway_stay_here():
    with upstream() as (url, model), run_service(openai_upstream=url, store="memory://") as at:
        model.prepared["c"] = Prepared(200, JSON, [b"{}"])
        headers = {
            "x-case": "c",
            "connection": "x-hidden, keep-alive",
            "x-hidden": "1",
            "proxy-authorization": "Basic c2VjcmV0",
            "te": "trailers",
            "foldline-session": "mine",
            "foldline-token": "anything",
            **dict.fromkeys(OF_A_PROXY, "192.0.2.7"),
            "content-type": "application/json",
        }
        patient.post(f"{at}/v1/chat/completions", content=CHAT, headers=headers)
        (sent,) = model.received["c"]
        names = {name.lower() for name, _ in sent.headers}
        assert not names & {"x-hidden", "proxy-authorization", "te", *OF_A_PROXY}
        assert not [name for name in names if name.startswith("foldline-")]
        assert dict(sent.headers).get("host") == urlsplit(url).netloc


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:1"}, 403),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "localhost.evil.example:8400", "origin": "http://localhost.evil.example:8400"}, 403),
        ({}, 200),
        ({"host": "localhost:1"}, 200),
        ({"host": "[::1]:8400", "origin": "http://[::1]:8400"}, 200),
    ],
)
def test_a_page_elsewhere_cannot_have_a_browser_ask(headers, status):
    with api() as (client, model):
        client.begin("one", messages=chat(20))
        for method, path in (("GET", "/sessions/one/history"), ("POST", "/sessions/one/compact")):
            assert client.http.request(method, path, headers=headers).status_code == status
        assert client.get("/sessions/one/stats").json()["stats"]["summaries"] == (status == 200)
        assert not model.requests


def test_with_a_token_it_answers_under_any_name():
    with api(
        tokens={"token-for-tests-1": "default"}, headers={"Authorization": "Bearer token-for-tests-1"}
    ) as (client, _):
        assert client.http.get("/sessions", headers={"host": "foldline.example"}).status_code == 200
        refused = client.http.get(
            "/sessions", headers={"host": "foldline.example", "origin": "https://other.example"}
        )
        assert refused.status_code == 403


# ---- whose session it is


def test_a_forged_session_header_finds_nothing_of_another_tenants():
    tokens = {"tokens": {"mine-token-is-long": "mine", "their-token-is-long": "theirs"}}
    with run_gateway(lambda asked: f"Answer {asked.index}.", **tokens) as (at, _):
        history = [user("The code word is heron.")]
        mine = {
            "foldline-token": "mine-token-is-long",
            "authorization": "Bearer k",
            "foldline-session": "shared",
        }
        theirs = {**mine, "foldline-token": "their-token-is-long"}
        first = patient.post(
            f"{at}/v1/chat/completions", json={"model": "m", "messages": history}, headers=mine
        )
        history += [first.json()["choices"][0]["message"]]
        for forged in ("shared", "../mine/shared", "mine/shared", "shared;", "x" * 5_000):
            headers = {**theirs, "foldline-session": forged}
            body = {"model": "m", "messages": [*history, user("What is the code word?")]}
            found = patient.post(f"{at}/v1/chat/completions", json=body, headers=headers)
            assert found.status_code in (200, 400), found.text
        for token in (
            "",
            "nobody",
            "mine-token-is-lon",
            "MINE-TOKEN-IS-LONG",
            "mine-token-is-long\u00e9".encode(),
        ):
            assert patient.get(f"{at}/api/sessions", headers={"foldline-token": token}).status_code == 401
        other = Client(at, **{"foldline-token": "their-token-is-long"})
        me = Client(at, **{"foldline-token": "mine-token-is-long"})
        assert me.get("/sessions/shared/stats").json()["stats"]["total_messages"] == 2
        assert other.get("/sessions").json()["total"] >= 1  # what they said themselves
        other.close()
        me.close()


def test_a_hostile_transcript_is_text_and_nothing_else(tmp_path):
    lines = [
        {"type": "user", "uuid": "../../../etc/cron.d/x", "parentUuid": None, "sessionId": "../../evil",
         "cwd": "/etc", "message": {"role": "user", "content": "<script>alert(1)</script> ${jndi:ldap://x}"}},
        {"type": "assistant", "uuid": "b", "parentUuid": "../../../etc/cron.d/x", "sessionId": "../../evil",
         "message": {"role": "assistant", "content": [{"type": "text", "text": "{{7*7}} \x1b[2J \u202e"}]}},
        {"type": "user", "uuid": "b", "parentUuid": "b", "message": {"role": "user", "content": "a cycle"}},
    ]  # fmt: skip
    content = "\n".join(json.dumps(one) for one in lines).encode()
    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _):
        told = client.send("POST", "/imports", content=content).json()
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]*", told["session"])
        shown = client.get(f"/sessions/{told['session']}/history").json()
        assert "<script>" in shown["items"][0]["text"]
        assert client.get(f"/sessions/{told['session']}", verify=True).json()["verified"] == []
        for form in client.get("/formats").json()["formats"]:
            found = client.http.get(f"/sessions/{told['session']}/export", params={"format": form})
            assert found.status_code in (200, 422), (form, found.text)
            assert "html" not in found.headers["content-type"]
    assert sorted(one.name for one in tmp_path.iterdir() if not one.name.startswith("s.db")) == []


# ---- what is told


def test_no_key_stands_in_logs_errors_or_the_store(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "s.db"
    with run_service(
        openai_upstream="http://127.0.0.1:9",
        anthropic_upstream="http://127.0.0.1:9",
        store=f"sqlite:///{file}",
    ) as at:
        told = []
        for path, headers in (
            ("/v1/chat/completions", {"authorization": f"Bearer {SECRET}"}),
            ("/v1/messages", {"x-api-key": SECRET}),
            ("/v1/messages/count_tokens", {"x-api-key": SECRET}),
            ("/api/turn", {"authorization": f"Bearer {SECRET}"}),
        ):
            body = {
                "model": "openai:m" if "api" in path else "m",
                "max_tokens": 9,
                "messages": [user("Hi"), reply("Yes?"), user("Hi")],
            }
            found = httpx2.post(f"{at}{path}", json=body, headers=headers, timeout=60)
            told.append(found.text)
        told.append(patient.get(f"{at}/metrics").text)
    told += [
        one.getMessage() + str(one.exc_text) for one in caplog.records if one.name.startswith("foldline")
    ]
    told += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    assert len(told) > 6
    assert not [one for one in told if SECRET[:24] in one]
