"""The gateway for Gemini: generateContent and streamGenerateContent, past the window, to a strict model."""

from __future__ import annotations

import json

import httpx2
import pytest
from tests.service.api.client import FILLER
from tests.service.served import run_gateway, run_service
from tests.support import patient

import foldline
from foldline.core.log.entries import Said
from foldline.core.log.messages import ToolCall
from foldline.testing import Answer, Refusal, Scripted

pytestmark = pytest.mark.slow

MODEL = "gemini-3-pro"  # wants signatures
TOKEN = "0123456789abcdef0123"
RULE = "Never push to main."


def answers(asked):
    """Call a tool twice, then say what it told."""
    if asked.index % 2 == 0:
        calls = tuple(ToolCall(f"c{asked.index}{one}", "look", {"path": one}) for one in "ab")
        return Answer(text=f"Step {asked.index}. " + FILLER, calls=calls)
    return f"Answer {asked.index}. " + FILLER


class Agent:
    """An agent that keeps its whole history, as Google's SDK does: of a stream each chunk is a content."""

    def __init__(self, url, *, streamed, ids, **headers):
        self.http = httpx2.Client(base_url=url, timeout=60, headers={"x-goog-api-key": "k", **headers})
        self.method = "streamGenerateContent?alt=sse" if streamed else "generateContent"
        self.streamed, self.ids = streamed, ids
        self.contents = []

    def ask(self, text):
        self.contents.append({"role": "user", "parts": [{"text": text}]})
        while True:
            told = self.post()
            assert told.status_code == 200, told.text
            replies = [told.json()] if not self.streamed else list(events(told.text))
            said = [reply["candidates"][0]["content"] for reply in replies]
            self.contents += said
            parts = [part for content in said for part in content["parts"]]
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            if not calls:
                return told
            self.contents.append({"role": "user", "parts": [self.answer(call) for call in calls]})

    def post(self):
        body = {
            "systemInstruction": {"parts": [{"text": "You help."}]},
            "contents": self.contents,
            "tools": [
                {"functionDeclarations": [{"name": "look", "parametersJsonSchema": {"type": "object"}}]}
            ],
        }
        return self.http.post(f"/v1beta/models/{MODEL}:{self.method}", json=body)

    def answer(self, call):
        own = {"id": call["id"]} if self.ids else {}  # `Part.from_function_response` gives none
        return {"functionResponse": {**own, "name": "look", "response": {"result": f"of {call['args']}"}}}


def events(text):
    for line in text.splitlines():
        assert not line or line.startswith("data: "), line  # the SDK takes no comment for one
        if line:
            yield json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
def test_an_agent_of_gemini_works_past_its_window(streamed, ids):
    with run_gateway(answers, window=16_000, summaries="offline") as (url, model):
        agent = Agent(url, streamed=streamed, ids=ids)
        first = agent.ask(f"Look around. {RULE}")
        assert "foldline-view" not in first.headers
        heads = [agent.ask(f"Go on with part {turn}.").headers for turn in range(30)]
        agent.http.close()
    assert not [asked.refused for asked in model.requests if asked.refused]
    assert len(model.requests) == 62
    assert all(asked.tokens <= 16_000 for asked in model.requests)
    assert any("foldline-view" in head for head in heads)
    assert len({head["foldline-session"] for head in heads if "foldline-session" in head}) == 1
    last = model.requests[-1]
    assert RULE in json.dumps(last.body["contents"])
    assert len(last.messages) < len(agent.contents) / 2
    assert last.system == {"parts": [{"text": "You help."}]}
    assert (last.model, last.stream) == (MODEL, streamed)


async def test_the_session_has_all_that_was_said_with_its_usage(tmp_path):
    place = f"sqlite:///{tmp_path / 's.db'}"
    with run_gateway(answers, window=16_000, summaries="offline", store=place) as (url, _):
        agent = Agent(url, streamed=True, ids=False, **{"foldline-session": "talk"})
        for turn in range(12):
            agent.ask(f"Part {turn}?")
        agent.http.close()
    async with foldline.open(place, "talk") as session:
        path = [entry async for entry in session.store.path("talk") if isinstance(entry, Said)]
    history = [entry.message for entry in path]
    assert len([one for one in history if one.role == "assistant"]) == 24
    assert all(one.usage and one.model == MODEL for one in history if one.role == "assistant")
    assert [len(one.results) for one in history if one.results] == [2] * 12
    assert history[0].text == "Part 0?"


def test_an_overflow_is_folded_and_sent_again():
    model = Scripted(answers, window=9_000)
    with run_gateway(model, fold_at=60_000, summaries="offline") as (url, _):
        agent = Agent(url, streamed=False, ids=True)
        for turn in range(12):
            agent.ask(f"Part {turn}?")
        agent.http.close()
    assert any("exceeds the maximum number of tokens" in (asked.refused or "") for asked in model.requests)


def test_all_else_is_passed_on_and_refusals_have_googles_form():
    model = Scripted([Refusal(429)], window=60_000)
    with run_gateway(model) as (url, _), patient.Client(base_url=url) as http:
        body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        found = http.post(
            f"/v1beta/models/{MODEL}:generateContent", json=body, headers={"x-goog-api-key": "k"}
        )
        assert (found.status_code, found.json()["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
        assert (
            http.post(f"/v1beta/models/{MODEL}:countTokens", json=body).status_code == 404
        )  # the model's word
        assert http.get("/v1beta/models").status_code == 404
    with run_service(google_upstream="http://127.0.0.1:9", store="memory://", tokens={TOKEN: "a"}) as url:
        path, key = f"{url}/v1beta/models/{MODEL}:generateContent", {"x-goog-api-key": TOKEN}
        found = patient.post(path, json=body)
        assert (found.status_code, found.json()["error"]["status"]) == (401, "UNAUTHENTICATED")
        found = patient.post(path, json=body, headers=key)
        assert (found.status_code, found.json()["error"]["status"]) == (502, "UNAVAILABLE")
