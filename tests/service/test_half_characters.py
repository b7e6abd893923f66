"""Requests with half of a surrogate pair, as JavaScript writes it: read, kept going, and never sent on."""

from __future__ import annotations

import httpx2
import pytest
from tests.service.served import served
from tests.support import patient

from foldline.testing import Answer, Scripted, serve_in_thread

HALF = r'"half \ud83d of it"'
HEADERS = {"content-type": "application/json", "authorization": "Bearer k", "x-api-key": "k",
           "anthropic-version": "2023-06-01"}  # fmt: skip
PATHS = {
    "/v1/chat/completions": '{"model":"m","messages":[{"role":"user","content":HALF}]}',
    "/v1/messages": '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":HALF}]}',
    "/v1/responses": '{"model":"m","input":HALF}',
}


def test_the_api_takes_it_and_shows_the_replacement_character():
    with served(store="memory://") as url, patient.Client(base_url=url, headers=HEADERS) as client:
        assert client.post("/api/sessions", content=f'{{"id":"s","title":{HALF}}}').status_code == 201
        body = f'{{"messages":[{{"role":"user","content":{HALF}}}]}}'
        assert client.post("/api/sessions/s/messages", content=body).is_success
        for path in ("sessions/s", "sessions/s/history", "sessions/s/view", "search?q=half", "sessions"):
            shown = client.get(f"/api/{path}")
            assert shown.is_success
            assert "half \ufffd of it" in shown.text


@pytest.mark.parametrize("path", PATHS)
def test_the_gateway_sends_the_replacement_character_up(path):
    model = Scripted([Answer(text="fine")])
    with serve_in_thread(model) as up:
        upstreams = {"openai_upstream": f"{up}/v1", "anthropic_upstream": up}
        with served(store="memory://", **upstreams) as url:
            sent = httpx2.post(
                f"{url}{path}", content=PATHS[path].replace("HALF", HALF), headers=HEADERS, timeout=60
            )
    assert sent.is_success
    assert "half \ufffd of it" in str(model.requests[0].messages)
