"""What is odd but no attack: it goes on as it came, or is refused as what it is. No answer is a 500."""

from __future__ import annotations

import json
import logging
import socket
import threading
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.service.served import run_service
from tests.service.upstream import JSON, Prepared, served_upstream
from tests.support import patient

from foldline.testing import Answer, Scripted, serve_in_thread

PATHS = ("/chat/completions", "/responses", "/messages")
BODIES = {
    "900 deep": b'{"model": "m", "messages": ' + b"[" * 900 + b"]" * 900 + b"}",
    "100,000 deep": b'{"model": "m", "input": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    "a large number": b'{"model": "m", "max_tokens": '
    + b"7" * 6_000
    + b', "messages": [{"role": "user", "content": 1}]}',
    "a large number in a message": b'{"input": [{"role": "user", "content": "a", "n": '
    + b"8" * 6_000
    + b"}]}",
    "not UTF-8": b'{"model": "m", "messages": [{"role": "user", "content": "gr\xfcn"}]}',
    "nothing said": b'{"model": "m", "input": [], "messages": []}',
    "no list": b'{"model": "m", "input": 7, "messages": {"a": 1}}',
    "no messages": b'{"model": ["m"], "input": [1, null], "messages": [null, 1]}',
    "no JSON": b"\x00\xff\xfe",
    "half a character": b'{"messages": [{"role": "user", "content": "\\ud83d"}]}',
}


@pytest.fixture(scope="module")
def served_once():
    with served_upstream(store="memory://") as (at, model):
        yield at, model


@pytest.fixture(scope="module")
def closed():
    with run_service(store="memory://", tokens={"a-token-of-length-1": "a"}) as at:
        yield at


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_cannot_be_read_goes_on_as_it_came(served_once, path, body):
    at, model = served_once
    model.received.clear()
    model.prepared[""] = Prepared(418, JSON, [b"{}"])
    found = patient.post(f"{at}/v1{path}", content=body, headers={"authorization": "Bearer k"})
    assert found.status_code == 418
    if b"\\ud83d" not in body:
        assert model.received[""][0].body == body


def test_headers_that_are_not_ascii_pass_both_ways(served_once):
    at, model = served_once
    model.received.clear()
    odd = [("x-name", "gr\xfcn \xff"), ("x-utf", "h\xc3\xa9")]
    model.prepared[""] = Prepared(200, [("content-type", "application/json"), *odd], [b"{}"])
    sent = [(name, value.encode("latin-1")) for name, value in odd]
    for path, method in (("/files", "GET"), ("/chat/completions", "POST")):
        found = patient.request(method, f"{at}/v1{path}", headers=sent)
        assert found.status_code == 200
        expected = [(name.encode(), value) for name, value in sent]
        assert [pair for pair in found.headers.raw if pair[0] in dict(expected)] == expected
    for came in model.received[""]:
        assert set(odd) <= set(came.headers)


@pytest.mark.parametrize(
    "head",
    [
        "Host: [",
        "Host: a]b",
        "Host: localhost:x",
        "Host: localhost\r\nOrigin: http://[",
        "Host: localhost\r\nOrigin: ]",
    ],
)
@pytest.mark.parametrize("path", ["/v1/files", "/api/sessions", "/web", "/health", "/api/nothing"])
@pytest.mark.parametrize("tokens", [False, True])
def test_a_host_or_an_origin_that_is_none_is_refused(served_once, closed, head, path, tokens):
    place = urlsplit(closed if tokens else served_once[0])
    with socket.create_connection((place.hostname, place.port), timeout=60) as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n".encode())
        found = sock.makefile("rb").read()
    assert found.split()[1] in (b"400", b"403"), found


def test_no_answer_leads_to_the_name_that_a_client_gave(closed):
    for path in ("/", "/web", "/web/s/x/", "/api/sessions/", "/v1", "/health/"):
        found = patient.get(f"{closed}{path}", headers={"host": "evil.example"})
        assert "evil" not in found.headers.get("location", "")
    assert patient.get(f"{closed}/web").headers["location"] == "/web/"


def test_what_the_api_says_is_kept_by_no_cache_and_is_what_it_says():
    with run_service(store="memory://") as at:
        for path in ("", "/", "/openapi.json", "/sessions", "/sessions/none/stats"):
            found = patient.get(f"{at}/api{path}")
            assert (found.headers["cache-control"], found.headers["x-content-type-options"]) == (
                "no-store",
                "nosniff",
            )


@pytest.mark.parametrize(
    "kind", ["text/html", "Text/HTML; charset=x", "image/svg+xml", "application/xhtml+xml", None]
)
def test_what_an_upstream_sends_is_no_page_of_the_service(served_once, kind):
    at, model = served_once
    headers = [("set-cookie", "foldline-token=x; Path=/"), ("Set-Cookie", "b=2"), ("clear-site-data", '"*"')]
    headers += [("content-type", kind)] if kind else []
    model.prepared[""] = Prepared(200, headers, [b"<script>1</script>"])
    found = patient.get(f"{at}/v1/files")
    assert found.headers["content-security-policy"] == "sandbox"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert not {"set-cookie", "clear-site-data"} & set(found.headers)


@pytest.fixture
def broken():
    """A server that answers with prepared bytes, and closes; yields its URL and its answers."""
    held = socket.create_server(("127.0.0.1", 0))
    answers = []

    def run():
        while True:
            try:
                sock, _ = held.accept()
            except OSError:
                return
            with sock:
                sock.recv(65_536)
                sock.sendall(answers[-1])

    threading.Thread(target=run, daemon=True).start()
    yield f"http://127.0.0.1:{held.getsockname()[1]}", answers
    held.shutdown(socket.SHUT_RDWR)
    held.close()


def test_a_502_quotes_nothing_of_what_came(broken):
    url, answers = broken
    answers.append(b"SECRET-BANNER 1.0 of a server\r\n\r\n")
    with run_service(openai_upstream=url, store="memory://") as at:
        for method, path in (("GET", "/files"), ("POST", "/chat/completions")):
            found = patient.request(method, f"{at}/v1{path}", headers={"authorization": "Bearer k"})
            assert (found.status_code, "BANNER" in found.text) == (502, False)


def test_an_upstream_that_dies_within_its_answer_is_one_line(broken, caplog):
    url, answers = broken
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    answers.append(head + b'11\r\ndata: {"id": 1}\n\n\r\n')
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "a"}]}
    with caplog.at_level(logging.WARNING), run_service(openai_upstream=url, store="memory://") as at:
        for method, path in (("GET", "/files"), ("POST", "/chat/completions")):
            with pytest.raises(httpx2.RemoteProtocolError):
                patient.request(method, f"{at}/v1{path}", content=json.dumps(body))
    told = [one for one in caplog.records if "broke off" in one.message]
    assert len(told) == 2
    assert not [one for one in caplog.records if one.exc_info]


# ---- half of a surrogate pair, as JavaScript writes it

HALF = r'"half \ud83d of it"'
HALF_HEADERS = {"content-type": "application/json", "authorization": "Bearer k", "x-api-key": "k",
           "anthropic-version": "2023-06-01"}  # fmt: skip
HALF_BODIES = {
    "/v1/chat/completions": '{"model":"m","messages":[{"role":"user","content":HALF}]}',
    "/v1/messages": '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":HALF}]}',
    "/v1/responses": '{"model":"m","input":HALF}',
}


def test_the_api_takes_it_and_shows_the_replacement_character():
    with run_service(store="memory://") as url, patient.Client(base_url=url, headers=HALF_HEADERS) as client:
        assert client.post("/api/sessions", content=f'{{"id":"s","title":{HALF}}}').status_code == 201
        body = f'{{"messages":[{{"role":"user","content":{HALF}}}]}}'
        assert client.post("/api/sessions/s/messages", content=body).is_success
        for path in ("sessions/s", "sessions/s/history", "sessions/s/view", "search?q=half", "sessions"):
            shown = client.get(f"/api/{path}")
            assert shown.is_success
            assert "half \ufffd of it" in shown.text


@pytest.mark.parametrize("path", HALF_BODIES)
def test_the_gateway_sends_the_replacement_character_up(path):
    model = Scripted([Answer(text="fine")])
    with serve_in_thread(model) as up:
        with run_service(store="memory://", openai_upstream=f"{up}/v1", anthropic_upstream=up) as url:
            sent = httpx2.post(
                f"{url}{path}",
                content=HALF_BODIES[path].replace("HALF", HALF),
                headers=HALF_HEADERS,
                timeout=60,
            )
    assert sent.is_success
    assert "half \ufffd of it" in str(model.requests[0].messages)
