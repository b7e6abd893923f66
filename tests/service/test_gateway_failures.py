"""The gateway where something fails: requests that do not fit, models that refuse, clients that may not ask."""

from __future__ import annotations

import json

import httpx2
import openai
import pytest
from tests.service.api.client import FILLER
from tests.service.chats import answers, claude, stored
from tests.service.served import freeze_rate_clock, run_gateway, run_service
from tests.service.upstream import JSON, Prepared, served_upstream, upstream
from tests.support import patient

from foldline.errors import InputError
from foldline.testing import Answer, Refusal, Scripted

OPENAI = "This model's maximum context length is 9000 tokens. However, your messages resulted in 9400 tokens."
ANTHROPIC = "prompt is too long: 9400 tokens > 9000 maximum"
REFUSALS = {
    "openai": (400, json.dumps({"error": {"message": OPENAI, "code": "context_length_exceeded"}}).encode()),
    "anthropic": (400, json.dumps({"type": "error", "error": {"message": ANTHROPIC}}).encode()),
    "empty": (413, b""),
}
DONE = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}, "finish_reason": "stop"}],
    "object": "chat.completion",
}
HISTORY = [
    {"role": role, "content": f"{role} {number}. {FILLER}"}
    for number in range(8)
    for role in ("user", "assistant")
]


class Refusing:
    """An upstream that refuses what has more than so many messages."""

    def __init__(self, refusal, most):
        self.refusal, self.most, self.sent = refusal, most, []

    async def __call__(self, scope, receive, send):
        body = b""
        while (event := await receive()).get("more_body") or event.get("body"):
            body += event["body"]
            if not event.get("more_body"):
                break
        messages = json.loads(body)["messages"]
        self.sent.append(messages)
        status, kind, answer = self.refusal if len(messages) > self.most else self.answer(json.loads(body))
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def answer(self, body):
        del body
        return 200, b"application/json", json.dumps(DONE).encode()


def asked_of(model, **more):
    """Ask such a model through the gateway with a history that it refuses."""
    with (
        upstream(model) as (url, _),
        run_service(openai_upstream=url, store="memory://", window=200_000) as at,
    ):
        return asked(at, [*HISTORY, {"role": "user", "content": "Go on."}], **more)


def asked(url, messages, headers=None, **more):
    body = {"model": "scripted", "messages": messages, **more}
    return httpx2.post(
        f"{url}/v1/chat/completions",
        json=body,
        headers={"authorization": "Bearer k", **(headers or {})},
        timeout=60,
    )


@pytest.mark.parametrize("kind", REFUSALS)
def test_an_overflow_is_mended_inside(kind):
    status, body = REFUSALS[kind]
    model = Refusing((status, b"application/json", body), 10)
    answer = asked_of(model)
    assert answer.status_code == 200
    assert answer.json() == DONE
    assert "reason=overflow" in answer.headers["foldline-view"]
    whole, folded = model.sent
    assert len(folded) < 10 < len(whole) == 17


def thinking(asked):
    return Answer(text=f"Answer {asked.index}. " + FILLER, thinking="I think so.")


@pytest.mark.parametrize("budget", [1_024, 7_999])
def test_a_reply_made_shorter_keeps_a_budget_for_thinking_below_it(budget):
    with run_gateway(thinking, window=14_000) as (url, model):
        given = {"max_tokens": 8_000, "thinking": {"type": "enabled", "budget_tokens": budget}}
        with claude(url) as ask:
            for number in range(24):
                ask(f"Question {number}. {FILLER}", **given)
    sent = [(one.max_tokens, one.body["thinking"]["budget_tokens"]) for one in model.requests]
    assert sent[0] == (8_000, budget)
    shorter = [one for one in sent if one[0] < 8_000]
    assert shorter
    assert all(1_024 <= thought < most for most, thought in shorter)
    assert {one.refused[:12] for one in model.requests if one.refused} == {"input length"}


def test_a_limit_that_a_longer_reply_was_given_never_raises_a_shorter_one():
    with run_gateway(answers, window=14_000) as (url, model):
        limits = [8_000 if number % 2 else 700 for number in range(12)]
        with claude(url) as ask:
            for number, limit in enumerate(limits):
                ask(f"Question {number}. {FILLER}", max_tokens=limit)
    answered = [one.max_tokens for one in model.requests if not one.refused]
    assert all(sent <= given for sent, given in zip(answered, limits, strict=True))
    assert any(sent < given for sent, given in zip(answered, limits, strict=True))


def test_an_overflow_that_remains_is_told_as_it_came():
    status, body = REFUSALS["openai"]
    model = Refusing((status, b"application/json", body), 0)
    answer = asked_of(model)
    assert (answer.status_code, answer.content) == (status, body)
    assert len(model.sent) == 2


def test_an_overflow_inside_a_stream_is_mended_before_a_byte_is_sent():
    failed = (
        b'data: {"error": {"message": "prompt is too long: 9400 tokens > 9000 maximum", "code": 400}}\n\n'
    )
    model = Refusing((200, b"text/event-stream", failed), 10)
    said = b'data: {"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    model.answer = lambda _: (200, b"text/event-stream", said)
    answer = asked_of(model, stream=True)
    assert answer.content.startswith(said)
    assert answer.content[len(said) :].startswith(b": foldline {")


@pytest.mark.slow
def test_a_failed_compaction_never_fails_the_request(chat):
    def says(asked):
        return Refusal(500, "no summary today") if "checkpoint" in str(asked.messages[0]) else answers(asked)

    with run_gateway(says, window=12_000, summaries="upstream") as (url, _):
        talk = chat(url)
        for number in range(30):
            talk.ask(f"Question {number}. {FILLER}")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("headers", [{}, {"foldline-session": "mine", "foldline-user": "ann"}])
async def test_a_session_whose_first_request_is_refused_is_not_stored(chat, tmp_path, headers, streamed):
    file = tmp_path / "s.db"
    script = Scripted([Refusal(429), "Hello.", Refusal(429)], window=12_000)
    with run_gateway(script, store=f"sqlite:///{file}") as (url, _):
        talk = chat(url, **headers)
        messages = [{"role": "user", "content": "Hello."}]
        with pytest.raises(openai.RateLimitError):
            talk.client.chat.completions.create(model="scripted", messages=messages, stream=streamed)
        assert await stored(file) == []
        talk.ask("Hello.")
        with pytest.raises(openai.RateLimitError):
            talk.ask("Again.")
    ((messages, _, _),) = await stored(file)
    assert messages == 3


async def test_a_session_whose_model_cannot_be_reached_is_not_stored(tmp_path):
    file = tmp_path / "s.db"
    with run_service(openai_upstream="http://127.0.0.1:1", store=f"sqlite:///{file}") as url:
        assert asked(url, [{"role": "user", "content": "Hello."}]).status_code == 502
    assert await stored(file) == []


@pytest.mark.parametrize("wrong", [{"policy": "none"}, {"summaries": "nobody"}, {"tokens": {"t": "A B"}}])
def test_what_is_set_wrongly_is_told_at_the_start(wrong):
    with pytest.raises(InputError), run_service(**wrong):
        pass


# ---- who may ask


def test_an_upstream_that_is_not_there_is_an_error_in_the_clients_form():
    with run_service(openai_upstream="http://127.0.0.1:9/v1", store="memory://") as at:
        answer = asked(at, [{"role": "user", "content": "Hello."}])
    assert answer.status_code == 502
    assert "cannot be reached" in answer.json()["error"]["message"]


def test_a_token_is_needed_where_tokens_are_set_and_never_goes_on_to_the_model(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-server")
    with (
        upstream() as (url, model),
        run_service(
            openai_upstream=url,
            store="memory://",
            tokens={"secret-of-tenant-a": "a", "secret-of-tenant-b": "b"},
        ) as at,
    ):
        model.prepared[""] = Prepared(200, JSON, [json.dumps(DONE).encode()])
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
        path = f"{at}/v1/chat/completions"
        assert patient.post(path, json=body).status_code == 401
        assert patient.post(path, json=body, headers={"authorization": "Bearer wrong"}).status_code == 401
        assert (
            patient.post(path, json=body, headers={"authorization": "Bearer secret-of-tenant-a"}).status_code
            == 200
        )
        own = {"authorization": "Bearer mine", "foldline-token": "secret-of-tenant-b"}
        assert patient.post(path, json=body, headers=own).status_code == 200
        first, second = model.received[""]
        assert ("authorization", "Bearer key-of-the-server") in first.headers
        assert ("authorization", "Bearer mine") in second.headers
        assert "secret" not in str((first, second))


def test_a_body_over_the_limit_and_too_many_requests_are_refused(monkeypatch):
    freeze_rate_clock(monkeypatch)
    with served_upstream(store="memory://", max_body=1_000, rate=2) as (at, model):
        model.prepared[""] = Prepared(200, JSON, [json.dumps(DONE).encode()])
        assert asked(at, HISTORY).status_code == 413
        small = [{"role": "user", "content": "Hello."}]
        assert asked(at, small).status_code == 200
        refused = asked(at, small)
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1


def test_who_asks_for_a_websocket_is_told_at_once_that_there_is_none():
    with run_service() as url:
        headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        assert patient.get(f"{url}/v1/responses", headers=headers).status_code == 426
