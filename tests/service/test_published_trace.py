"""The published trace of nine turns, asked over HTTP by a client that re-sends all of it with every request."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest
from tests.service.served import run_gateway

from foldline.core.log.messages import ToolCall
from foldline.testing import Answer, Scripted

pytestmark = pytest.mark.slow

TRACE = Path(__file__).parents[2] / "examples" / "coop-trace.jsonl"
LINES = [json.loads(line) for line in TRACE.read_text(encoding="utf-8").splitlines()]
HEAD, MESSAGES = LINES[0], LINES[1:]


def answer(message):
    calls = [one["function"] | {"id": one["id"]} for one in message.get("tool_calls") or ()]
    made = tuple(ToolCall(one["id"], one["name"], json.loads(one["arguments"])) for one in calls)
    return Answer(text=message.get("content") or "", calls=made)


def asked_of_the_model():
    """Return the places of replies that the model is asked for: what stands right behind another is one with it."""
    roles = [one["role"] for one in MESSAGES]
    return [at for at, role in enumerate(roles) if role == "assistant" and roles[at - 1] != "assistant"]


def sent_in_all(policy, window):
    """Ask for every reply of the trace; returns the tokens that the model was sent, by its own count."""
    places = asked_of_the_model()
    model = Scripted([answer(MESSAGES[at]) for at in places], window=200_000)
    system = [{"role": "system", "content": HEAD["system"]}]
    tools = [{"type": "function", "function": one} for one in HEAD["tools"]]
    with (
        run_gateway(model, policy=policy, fold_at=window) as (url, _),
        httpx2.Client(headers={"authorization": "Bearer k"}, timeout=60) as client,
    ):
        for place in places:
            body = {"model": "scripted", "messages": [*system, *MESSAGES[:place]], "tools": tools}
            reply = client.post(f"{url}/v1/chat/completions", json=body)
            assert reply.status_code == 200, reply.text
    return sum(asked.tokens for asked in model.requests)


@pytest.mark.parametrize(
    ("policy", "window", "most"),
    [("coop", HEAD["window"], 1_130_000), ("coop", 44_000, 1_130_000)],
)
def test_what_the_model_is_sent(policy, window, most):
    assert sent_in_all(policy, window) <= most


def test_without_a_fold_it_is_the_published_figure():
    # 4.25 M, and what tools and messages weigh in the form of this API
    assert sent_in_all("foldline", 2_000_000) == pytest.approx(4_250_000, rel=0.01)
