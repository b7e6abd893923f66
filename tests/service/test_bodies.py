"""What one request may hold, and that the others are answered while it is read and folded."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.service.api.client import reply, user
from tests.service.served import Held, run_gateway
from tests.support import patient

from foldline.errors import InputError
from foldline.service import bodies
from foldline.service.api import transfers
from foldline.service.bodies import TooLarge, check_lists, decoded_json, too_deep
from foldline.service.gateway import gateway
from foldline.service.stateless import fork
from foldline.summarizers import OfflineSummarizer
from foldline.testing import Scripted
from foldline.transcripts import WarningRecord

MOST = 51  # odd: the newest message is the user's
KEYS = {
    "authorization": "Bearer k",
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
}


def talk(count):
    """So many messages, the first one the user's."""
    return [(reply if number % 2 else user)(f"It is {number}.") for number in range(count)]


def lines(messages):
    return "\n".join(json.dumps(one) for one in messages).encode()


def ui(messages):
    parts = [[{"type": "text", "text": one["content"]}] for one in messages]
    return [
        {"id": str(n), "role": one["role"], "parts": found}
        for n, (one, found) in enumerate(zip(messages, parts, strict=True))
    ]


FORMS = {
    "/v1/chat/completions": lambda said: json.dumps({"model": "m", "messages": said}).encode(),
    "/v1/messages": lambda said: json.dumps({"model": "m", "max_tokens": 9, "messages": said}).encode(),
    "/v1/responses": lambda said: json.dumps({"model": "m", "input": said}).encode(),
    "/v1/responses/compact": lambda said: json.dumps({"model": "m", "input": said}).encode(),
    "/api/fold": lambda said: json.dumps({"messages": ui(said)}).encode(),
    "/api/turn": lambda said: json.dumps({"messages": ui(said), "model": "openai:m"}).encode(),
    "/api/sessions/one/messages": lambda said: json.dumps({"messages": said}).encode(),
    "/api/imports?id=lines": lines,
    "/api/imports?id=list": lambda said: json.dumps(said).encode(),
    "/api/imports?id=document": lambda said: json.dumps({"messages": said}, indent=1).encode(),
    "/api/imports?id=packed": lambda said: gzip.compress(lines(said)),
}


def test_more_messages_than_may_be_sent_are_refused_in_the_words_of_each_api():
    with run_gateway(lambda asked: "Answer.", max_messages=MOST) as (url, _):
        patient.post(f"{url}/api/sessions", json={"id": "one"}).raise_for_status()
        for path, form in FORMS.items():
            taken = httpx2.post(url + path, content=form(talk(MOST)), headers=KEYS, timeout=60)
            assert taken.status_code < 300, (path, taken.text)
            refused = httpx2.post(url + path, content=form(talk(MOST + 1)), headers=KEYS, timeout=60)
            assert refused.status_code == 413, (path, refused.text)
            told = refused.json()
            if path.startswith("/v1/messages"):
                assert told["error"]["type"] == "request_too_large"
            words = told["error"]["message"] if path.startswith("/v1") else told["detail"]
            assert f"{MOST} messages may be sent ([serve] max_messages)" in words, (path, words)


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [{"role": "user", "content": [' + b"[]," * 10_000 + b"[]]}]}",
        b'{"a": {"b": {' + b",".join(b'"%d":{}' % n for n in range(10_000)) + b"}}}",
        b'[{"content": "\\\\\\"' + b"a," * 10 + b'"}, ' + b"1," * 10_000 + b"1]",
    ],
    ids=["lists", "fields", "behind escapes"],
)
def test_values_are_counted_wherever_they_stand(body):
    json.loads(body)
    with pytest.raises(TooLarge, match=r"more than 5,100 values; 51 messages may be sent"):
        check_lists(body, MOST)
    check_lists(body, MOST * 1_000)


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": "' + b"a, [b], " * 10_000 + b'"}',
        b'{"text": "' + b'\\",\\\\' * 10_000 + b'"}',
        b'{"tools": [' + b"1," * (MOST - 1) + b'1], "messages": []}',
        b"no, JSON, " * 10_000,
        b'{"open": "' + b"," * 10_000,
    ],
    ids=["commas in a text", "escapes", "as many as may be", "prose", "without an end"],
)
def test_what_is_no_list_of_messages_is_not_counted(body):
    check_lists(body, MOST)


def test_a_body_is_read_down_to_a_depth():
    assert not too_deep(b'{"a": "' + b"[" * 1_000 + b'"}')
    assert not too_deep(b"[" * 64 + b'"]"' + b"]" * 64)
    assert too_deep(b"[" * 65 + b'"]"' + b"]" * 65)
    with pytest.raises(InputError, match="nested too deep"):
        decoded_json(b"[" * 65 + b"]" * 65, list)


# ---- the others are answered meanwhile


class Hold:
    """Holds a function, in whatever thread it is called, until its gate is opened."""

    def __init__(self, real):
        self._real = real
        self.begun = threading.Event()
        self.gate = threading.Event()

    def __call__(self, *given, **named):
        self.begun.set()
        assert self.gate.wait(120)
        return self._real(*given, **named)


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("/v1/chat/completions", (gateway, "read_request")),
        ("/v1/chat/completions", (OfflineSummarizer, "write")),
        ("/v1/responses/compact", (OfflineSummarizer, "write")),
        ("/api/fold", (fork, "from_records")),
        ("/api/fold", (OfflineSummarizer, "write")),
        ("/api/turn", (OfflineSummarizer, "write")),
        ("/api/sessions/one/messages", (bodies, "too_deep")),
        ("/api/imports?id=lines", (transfers, "from_stream")),
    ],
    ids=lambda given: given if isinstance(given, str) else given[1],
)
def test_health_is_answered_while_a_body_is_read_or_folded(path, held, monkeypatch):
    said = [user("word " * 60_000), *talk(301)[1:]]  # large, and more than the window
    place, name = held
    hold = Hold(getattr(place, name))
    with run_gateway(lambda asked: "Answer.", fold_at=20_000, window=10**6) as (url, _):
        patient.post(f"{url}/api/sessions", json={"id": "one"}).raise_for_status()
        monkeypatch.setattr(place, name, staticmethod(hold) if isinstance(place, type) else hold)
        found = []
        body = FORMS[path](said)
        asking = threading.Thread(
            target=lambda: found.append(httpx2.post(url + path, content=body, headers=KEYS, timeout=120))
        )
        asking.start()
        try:
            assert hold.begun.wait(120), found
            assert httpx2.get(f"{url}/health", timeout=60).text == "ok\n"
            assert not found
        finally:
            hold.gate.set()
            asking.join(120)
    assert found[0].status_code < 300, found[0].text


# ---- a client that leaves stops the work


@contextlib.contextmanager
def sent(url, path, body):
    """Send a request, and leave at the end of the block without having read an answer."""
    place = urlsplit(url)
    head = f"POST {path} HTTP/1.1\r\nhost: {place.netloc}\r\nauthorization: Bearer k\r\n"
    with socket.create_connection((place.hostname, place.port), 60) as connection:
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        yield


@pytest.mark.parametrize("path", ["/api/imports", "/web/import"])
def test_an_import_whose_client_leaves_is_read_no_further(path, monkeypatch):
    begun, ended, why = threading.Event(), threading.Event(), []

    def without_an_end(*_, through, **__):
        begun.set()
        try:
            for _ in through(itertools.repeat(WarningRecord(1, "a line"))):
                time.sleep(0.01)
        except InputError as error:
            why.append(str(error))
            ended.set()
            raise

    monkeypatch.setattr(transfers, "from_stream", without_an_end)
    form = httpx2.Request("POST", "http://localhost", files={"file": ("a.jsonl", lines(talk(4)))})
    with run_gateway(lambda asked: "Answer.") as (url, _):
        if path == "/api/imports":
            with sent(url, path, lines(talk(4))):
                assert begun.wait(60)
        else:
            body = form.read()
            kind = form.headers["content-type"]
            with sent(url, f"{path} HTTP/1.1\r\ncontent-type: {kind}\r\nx-rest: ", body):
                assert begun.wait(60)
        assert ended.wait(50)
        assert patient.get(f"{url}/api/sessions").json()["total"] == 0
    assert why == ["the client has left: nothing was stored"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses/compact"])
def test_a_fold_in_the_gateway_ends_when_its_client_leaves(path):
    held = Held(
        lambda asked: "Answer.", lambda asked: not str(asked.messages[-1]["content"]).startswith("It is")
    )
    model = Scripted(held, window=10**6)
    body = FORMS[path]([*talk(300), user("It is large. " + "word " * 20_000)])
    with run_gateway(model, fold_at=20_000, policy="klaude", summaries="upstream") as (url, _):
        for _ in range(2):  # the second one is begun: nobody waits for the first
            with sent(url, path, body):
                assert held.begun.wait(60)
                held.begun.clear()
        held.gate.open()
        assert httpx2.post(url + path, content=body, headers=KEYS, timeout=120).status_code == 200
        sessions = patient.get(f"{url}/api/sessions").json()["sessions"]
    assert [one["compactions"] for one in sessions] == [1]
