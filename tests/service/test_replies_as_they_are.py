"""Replies in the gateway that are not what was asked for: plain JSON for a stream, an upstream that fails."""

from __future__ import annotations

import msgspec
import pytest
from tests.service.served import run_service
from tests.service.upstream import Prepared, served_upstream, upstream
from tests.support import patient

import foldline
from foldline.core.log.entries import Said

CHAT = {"id": "c", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Moored."}}]}
RESPONSES = {
    "id": "resp_1",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "id": "m",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Moored."}],
        }
    ],
}
MESSAGES = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Moored."}],
    "stop_reason": "end_turn",
}
ASKED = {"role": "user", "content": "Where is the boat?"}
FORMS = {
    "chat": ("/chat/completions", {"messages": [ASKED]}, CHAT),
    "responses": ("/responses", {"input": [ASKED]}, RESPONSES),
    "messages": ("/messages", {"messages": [ASKED], "max_tokens": 90}, MESSAGES),
}


async def said(place):
    store = foldline.stores.open_store(place)
    found = [
        one.message.text
        for info in await store.sessions()
        async for one in store.path(info.id)
        if isinstance(one, Said)
    ]
    await store.close()
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", ""])
async def test_plain_json_for_a_stream_passes_and_is_recorded(form, kind, tmp_path):
    path, body, reply = FORMS[form]
    raw, place = msgspec.json.format(msgspec.json.encode(reply)), f"sqlite:///{tmp_path / 's.db'}"
    with upstream() as (url, model):
        headers = [("content-type", kind)] if kind else []
        model.prepared[""] = Prepared(200, headers, [raw[:9], raw[9:]])
        with run_service(openai_upstream=url, anthropic_upstream=url, store=place) as at:
            found = patient.post(f"{at}/v1{path}", json={"model": "m", "stream": True, **body})
    assert (found.status_code, found.content) == (200, raw)
    assert await said(place) == ["Where is the boat?", "Moored."]


@pytest.fixture(scope="module")
def served_once():
    with served_upstream(store="memory://") as (at, model):
        yield at, model


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [500, 502, 503, 529])
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_fails_is_told_at_once_and_not_asked_again(served_once, form, status, stream):
    at, model = served_once
    path, body, _ = FORMS[form]
    raw = b'{"error": {"message": "the server had an error", "type": "server_error"}}'
    told = [("content-type", "application/json"), ("retry-after", "30")]
    model.prepared[""] = Prepared(status, told, [raw])
    model.received.clear()
    found = patient.post(f"{at}/v1{path}", json={"model": "m", "stream": stream, **body})
    assert (found.status_code, found.content, found.headers["retry-after"]) == (status, raw, "30")
    assert len(model.received[""]) == 1
