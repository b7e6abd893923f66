"""What a response says of folds: each once, none that was undone, and never inside a body."""

from __future__ import annotations

import json

import httpx2
import pytest
from tests.service.api.client import FILLER
from tests.service.test_gateway_failures import DONE, asked
from tests.service.upstream import JSON, Prepared, served_upstream

STREAM = [("content-type", "text/event-stream")]
REPLY = Prepared(200, JSON, [json.dumps(DONE).encode()])
LONG = FILLER * 12
BUSY = Prepared(200, STREAM, [b'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'])
BROKEN = Prepared(200, [*JSON, ("content-length", "1000")], [b"{"])


class Agent:
    """An agent behind the gateway, whose model answers with what is prepared."""

    def __init__(self, url, model):
        self.url, self.model, self.messages = url, model, []

    def ask(self, text=FILLER, reply=REPLY, **more):
        """Ask, and keep the reply; return the response."""
        self.messages.append({"role": "user", "content": text})
        response = self.again(reply, **more)
        self.messages.append(DONE["choices"][0]["message"])
        return response

    def again(self, reply=REPLY, **more):
        """Send the newest request once more."""
        self.model.prepared[""] = reply
        return asked(self.url, self.messages, headers={"foldline-session": "mine"}, **more)

    def do(self, action):
        """Let the service's API do something to the session."""
        response = httpx2.post(f"{self.url}/api/sessions/mine/{action}", json={}, timeout=60)
        return response.raise_for_status().json()

    def grow(self):
        """Say much; the next request has to be folded if it is `LONG`."""
        for _ in range(10):
            assert not told(self.ask())


@pytest.fixture
def agent():
    with served_upstream(store="memory://", window=12_000) as (url, model):
        yield Agent(url, model)


def told(response):
    """The figures of the fold that a response tells of; {} without one."""
    fields = response.headers.get("foldline-view", "").split("; ")
    figures = dict(field.split("=") for field in fields if field)
    return {name: figures[name] for name in ("reason", "before", "after") if name in figures}


def test_of_two_folds_since_a_response_the_newest_is_told(agent):
    agent.grow()
    agent.do("compact")
    response = agent.ask(LONG)
    boundaries = httpx2.get(f"{agent.url}/api/sessions/mine/boundaries", timeout=60).json()["boundaries"]
    first, second = (boundary["receipt"] for boundary in boundaries)
    assert (first["reason"], second["reason"]) == ("manual", "threshold")
    sizes = {"before": str(second["tokens_before"]), "after": str(second["tokens_after"])}
    assert told(response) == {"reason": "threshold", **sizes}


def test_a_fold_that_was_undone_is_not_told(agent):
    agent.grow()
    agent.do("compact")
    agent.do("undo")
    assert not told(agent.ask())
    agent.do("compact")
    assert told(agent.ask())["reason"] == "manual"


def test_a_fold_whose_request_broke_off_is_told_with_the_next_response(agent):
    agent.grow()
    agent.ask(LONG, BROKEN)
    del agent.messages[-1]
    assert told(agent.again())["reason"] == "threshold"
    assert not told(agent.again())


def test_a_stream_that_begins_with_an_error_tells_of_the_fold_before_it(agent):
    agent.grow()
    response = agent.ask(LONG, BUSY, stream=True)
    assert response.content == BUSY.pieces[0]
    assert told(response)["reason"] == "threshold"


def test_json_that_a_server_calls_a_stream_stays_json_behind_a_fold(agent):
    agent.grow()
    response = agent.ask(LONG, Prepared(200, STREAM, REPLY.pieces))
    assert told(response)["reason"] == "threshold"
    assert response.json() == DONE
