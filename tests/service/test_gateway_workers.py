"""One agent's session at two workers: neither undoes what the other has stored."""

from __future__ import annotations

import asyncio
import json
import threading

import httpx2
from tests.service.chats import opened
from tests.service.served import run_service
from tests.service.test_gateway_failures import DONE, asked
from tests.service.upstream import JSON, Prepared, upstream

HELLO = {"role": "user", "content": "Hello."}
REPLY = DONE["choices"][0]["message"]


class FailingLate:
    """An upstream that refuses its first request, once it may, and answers all others."""

    def __init__(self):
        self.begun, self.may_refuse = threading.Event(), threading.Event()

    async def __call__(self, scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        status = 200
        if not self.begun.is_set():
            self.begun.set()
            await asyncio.to_thread(self.may_refuse.wait)
            status = 503
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(DONE).encode()})


def say(url, *messages):
    return asked(url, messages, headers={"foldline-session": "mine"}).status_code


async def listed(file):
    async with opened(file) as store:
        return {info.id: info.messages for info in await store.sessions()}


async def test_a_first_request_that_fails_late_leaves_a_session_that_another_worker_continued(tmp_path):
    file, model = tmp_path / "s.db", FailingLate()
    changes = {"store": f"sqlite:///{file}", "window": 60_000}
    with (
        upstream(model) as (at, _),
        run_service(openai_upstream=at, **changes) as one,
        run_service(openai_upstream=at, **changes) as two,
    ):
        first = asyncio.ensure_future(asyncio.to_thread(say, one, HELLO))
        try:
            assert await asyncio.to_thread(model.begun.wait, 60)
            assert await asyncio.to_thread(say, two, HELLO) == 200
        finally:
            model.may_refuse.set()
        assert await first == 503
    assert await listed(file) == {"mine": 2}


async def test_a_named_session_that_another_worker_deleted_begins_again_under_its_name(tmp_path):
    file = tmp_path / "s.db"
    changes = {"store": f"sqlite:///{file}", "window": 60_000}
    with (
        upstream() as (at, model),
        run_service(openai_upstream=at, **changes) as one,
        run_service(openai_upstream=at, **changes) as two,
    ):
        model.prepared[""] = Prepared(200, JSON, [json.dumps(DONE).encode()])
        assert say(two, HELLO) == 200
        assert httpx2.delete(f"{one}/api/sessions/mine", timeout=60).status_code == 204
        assert say(two, HELLO, REPLY, HELLO) == 200
    assert await listed(file) == {"mine": 4}
