"""A client of the API: plain HTTP, and a turn read as its events."""

from __future__ import annotations

import contextlib
import json

import httpx2
from tests.service.served import AlternatingClients, run_services

from foldline.testing import Scripted, serve_in_thread

FILLER = "It works as it was asked for, and every word of it is needed. " * 30
RULE = "Never push to main."


def answers(asked):
    return f"Answer {asked.index}. " + FILLER


class Client:
    """One tenant at the API."""

    def __init__(self, url, **headers):
        self.url = url
        self.http = AlternatingClients(
            lambda one: httpx2.Client(base_url=f"{one}/api", headers=headers, timeout=60), url
        )

    def send(self, method, path, status=None, **options):
        """Send a request, check the status and return the response."""
        response = self.http.request(method, path, **options)
        expected = {"POST": (200, 201), "DELETE": (200, 204)}.get(method, (200,))
        assert response.status_code in ((status,) if status else expected), response.text
        if response.status_code >= 400:
            assert response.headers["content-type"] == "application/problem+json"
            assert response.json()["status"] == response.status_code
        return response

    def get(self, path, status=None, **query):
        return self.send("GET", path, status, params=query)

    def post(self, path, body=None, status=None, **headers):
        return self.send("POST", path, status, json=body or {}, headers=headers)

    def begin(self, name="s", **given):
        return self.post("/sessions", {"id": name, **given}).json()

    def say(self, name, *messages, status=None, **headers):
        return self.post(f"/sessions/{name}/messages", {"messages": messages}, status, **headers)

    def turn(self, name, text=None, status=None, headers=None, **given):
        """Run a turn; return its events as (name, data), or [] if it is refused."""
        body = {**({"text": text} if text is not None else {}), **given}
        found = self.send("POST", f"/sessions/{name}/turns", status, json=body, headers=headers or {})
        return events(found.text) if found.status_code == 200 else []

    def leaf(self, name):
        return self.get(f"/sessions/{name}/view").headers["etag"]

    def close(self):
        self.http.close()


def events(text):
    """The events of a stream as (name, data)."""
    found = []
    for block in text.replace("\r\n", "\n").strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


@contextlib.contextmanager
def api(replies=answers, *, window=60_000, store="memory://", headers=None, **changes):
    """Serve the API in front of a scripted model; yields a client and the model."""
    model = replies if isinstance(replies, Scripted) else Scripted(replies, window=window)
    with serve_in_thread(model) as url:
        name = f"openai-compatible:scripted@{url}/v1"
        with run_services(**{"model": name, "window": window, "store": store, **changes}) as api_url:
            client = Client(api_url, **(headers or {}))
            try:
                yield client, model
            finally:
                client.close()


def user(text):
    return {"role": "user", "content": text}


def reply(text):
    return {"role": "assistant", "content": text}


def chat(count, first=0):
    """A conversation long enough to fold."""
    messages = [user(RULE), reply("Understood.")]
    for number in range(first, first + count):
        messages += [user(f"Question {number}. {FILLER}"), reply(f"Answer {number}. {FILLER}")]
    return messages
