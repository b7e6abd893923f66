"""Two requests of one agent at once: each is answered from its own history, never from the other's."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager

import httpx2
import pytest
from tests.service.api.client import FILLER
from tests.service.served import run_gateway, run_service
from tests.service.test_gateway_failures import DONE, OPENAI, asked
from tests.service.upstream import upstream

from foldline.core.log.codec import encode_utf8
from foldline.service.gateway.agent_session import AgentSession
from foldline.service.gateway.compaction_item import read_item
from foldline.service.gateway.gateway import Gateway
from foldline.service.gateway.session_finder import SessionFinder

REPLY = DONE["choices"][0]["message"]
REFUSED = {"error": {"message": OPENAI, "code": "context_length_exceeded"}}
FIRST, OTHER = "The first question.", "Another question."


def said(text):
    return {"role": "user", "content": text}


class Holding:
    """An upstream that holds the first request that ends with `FIRST`, and refuses it as too long."""

    def __init__(self):
        self.begun, self.go = threading.Event(), threading.Event()
        self.sent = []

    async def __call__(self, scope, receive, send):
        body = b""
        while (event := await receive()).get("more_body") or event.get("body"):
            body += event["body"]
            if not event.get("more_body"):
                break
        messages = json.loads(body)["messages"]
        self.sent.append(messages)
        status, answer = 200, DONE
        if messages[-1] == said(FIRST) and not self.begun.is_set():
            self.begun.set()
            await asyncio.to_thread(self.go.wait)
            status, answer = 400, REFUSED
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


def talk(url, turns):
    """Talk to the model; return the history."""
    messages = []
    for number in range(turns):
        messages.append(said(f"Question {number}. {FILLER}"))
        assert asked(url, messages).status_code == 200
        messages.append(REPLY)
    return messages


@contextmanager
def held(monkeypatch, name):
    """Hold the first call of a method of `AgentSession`; yields events: it has begun, it may go on."""
    begun, go, method = threading.Event(), threading.Event(), getattr(AgentSession, name)

    async def hold(self, *given):
        if not begun.is_set():
            begun.set()
            await asyncio.to_thread(go.wait)
        return await method(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(AgentSession, name, hold)
        yield begun, go


async def answered_between(begun, go, first, other):
    """Send `first`, and `other` while it is held; return both responses."""
    task = asyncio.ensure_future(asyncio.to_thread(first))
    try:
        assert await asyncio.to_thread(begun.wait, 60)
        second = await asyncio.to_thread(other)
    finally:
        go.set()
    return await task, second


@pytest.mark.parametrize("more", [[said(OTHER)], [said(FIRST), said(OTHER)]], ids=["edited", "continued"])
async def test_an_overflow_that_is_told_late_sends_nothing_that_another_request_said(more):
    model = Holding()
    with (
        upstream(model) as (at, _),
        run_service(openai_upstream=at, store="memory://", window=200_000) as url,
    ):
        messages = talk(url, 8)
        first, second = await answered_between(
            model.begun,
            model.go,
            lambda: asked(url, [*messages, said(FIRST)]),
            lambda: asked(url, [*messages, *more]),
        )
    assert (first.status_code, first.json()) == (400, REFUSED)
    assert second.status_code == 200
    assert len(model.sent) == 10


async def test_a_request_is_sent_as_it_is_where_another_worker_went_elsewhere(monkeypatch, tmp_path):
    model = Holding()
    model.begun.set()
    changes = {"store": f"sqlite:///{tmp_path / 's.db'}", "window": 12_000}
    with (
        upstream(model) as (at, _),
        run_service(openai_upstream=at, **changes) as one,
        run_service(openai_upstream=at, **changes) as two,
    ):
        messages = talk(one, 18)
        with held(monkeypatch, "context") as (begun, go):
            await answered_between(
                begun,
                go,
                lambda: asked(one, [*messages, said(FIRST)]),
                lambda: asked(two, [*messages, said(OTHER)]),
            )
    assert model.sent[-1] == [*messages, said(FIRST)]
    assert model.sent[-2][-1] == said(OTHER)


async def test_an_item_is_of_the_history_that_was_sent(monkeypatch, tmp_path):
    changes = {"store": f"sqlite:///{tmp_path / 's.db'}", "window": 60_000}
    items = [{"type": "message", **message} for message in [said(FILLER), said(FIRST)]]
    other = [items[0], {"type": "message", **said(OTHER)}]
    headers = {"authorization": "Bearer k", "foldline-session": "mine"}

    def compact(url, history):
        body = {"model": "scripted", "input": history}
        return httpx2.post(f"{url}/v1/responses/compact", json=body, headers=headers, timeout=60)

    with run_service(**changes) as one, run_service(**changes) as two:
        with held(monkeypatch, "compact") as (begun, go):
            first, _ = await answered_between(
                begun, go, lambda: compact(one, items), lambda: compact(two, other)
            )
    (item,) = first.json()["output"]
    view = str([bytes(message) for message in read_item(json.dumps(item).encode()).view])
    assert FIRST in view
    assert OTHER not in view


async def test_a_request_keeps_its_marks_while_another_one_waits_for_its_session(monkeypatch):
    model, find, found = Holding(), SessionFinder.find, threading.Event()
    model.begun.set()

    async def find_and_tell(self, request, name):
        session = await find(self, request, name)
        if request.units[-1].raw == encode_utf8(said(OTHER)):
            found.set()
        return session

    monkeypatch.setattr(SessionFinder, "find", find_and_tell)
    with (
        upstream(model) as (at, _),
        run_service(openai_upstream=at, store="memory://", window=12_000) as url,
        held(monkeypatch, "context") as (begun, go),
    ):
        go.set()
        messages = talk(url, 18)
        go.clear()
        begun.clear()
        marked = {"type": "text", "text": messages[-2]["content"], "cache_control": {"type": "ephemeral"}}
        other = [*messages[:-2], said([marked]), messages[-1], said(OTHER)]
        first = asyncio.ensure_future(asyncio.to_thread(asked, url, [*messages, said(FIRST)]))
        try:
            assert await asyncio.to_thread(begun.wait, 60)
            second = asyncio.ensure_future(asyncio.to_thread(asked, url, other))
            assert await asyncio.to_thread(found.wait, 60)
        finally:
            go.set()
        assert (await first).status_code == (await second).status_code == 200
    sent = [messages for messages in model.sent if messages[-1] == said(FIRST)]
    assert len(sent[0]) < len(messages)
    assert "cache_control" not in str(sent)


async def test_who_resumes_a_compaction_item_while_another_goes_elsewhere_goes_on_from_it(monkeypatch):
    use_model, begun, go = Gateway._use_model, threading.Event(), threading.Event()

    async def use_model_late(self, conversation, request):
        if request.at is not None and not begun.is_set():
            begun.set()
            await asyncio.to_thread(go.wait)
        return await use_model(self, conversation, request)

    with run_gateway(lambda asked: f"Answer {asked.index}.") as (url, model):

        def post(path, items):
            body, key = {"model": "scripted", "input": items}, {"authorization": "Bearer k"}
            answer = httpx2.post(f"{url}/v1/responses{path}", json=body, headers=key, timeout=60)
            return answer.raise_for_status().json()["output"]

        items = []
        for number in range(6):
            items.append({"type": "message", **said(f"Question {number}. {FILLER}")})
            items += post("", items)
        (item,) = post("/compact", items)
        monkeypatch.setattr(Gateway, "_use_model", use_model_late)
        resumed = [item, {"type": "message", **said(FIRST)}]
        reply, _ = await answered_between(
            begun,
            go,
            lambda: post("", resumed),
            lambda: post("", [*items[:2], {"type": "message", **said(OTHER)}]),
        )
        more = [*resumed, *reply, {"type": "message", **said("And then?")}]
        await asyncio.to_thread(post, "", more)
        (session,) = httpx2.get(f"{url}/api/sessions", timeout=60).json()["sessions"]
        assert session["messages"] == len(items) + 4
    assert OTHER not in str(model.requests[-1].messages)
