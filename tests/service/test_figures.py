"""What operators see of the service: figures for Prometheus, spans for OpenTelemetry."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.service.api.client import api, chat, user
from tests.service.served import Held, run_gateway, run_service
from tests.support import patient

from foldline import tracing
from foldline.catalogue import Catalogue
from foldline.config import TokenGrant
from foldline.core.decide.price import cost
from foldline.core.log.messages import Usage


def figures(url, **headers):
    """All samples by name and labels."""
    text = patient.get(f"{url}/metrics", headers=headers).text
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_answers_folds_and_open_sessions_are_counted():
    with api() as (client, _):
        client.begin("one", messages=chat(20))
        receipt = client.post("/sessions/one/compact").json()["receipt"]
        client.get("/sessions/none", 404)
        found = figures(client.url)
    assert found["foldline_requests_total", ("face", "api"), ("status", "201")] == 1
    assert found["foldline_requests_total", ("face", "api"), ("status", "404")] == 1
    assert found["foldline_folds_total", ("reason", "manual")] == 1
    assert found["foldline_folded_tokens_total",] == receipt["tokens_before"] - receipt["tokens_after"]
    assert found["foldline_open_sessions",] == 1


def test_the_time_that_the_gateway_adds_and_its_failures_are_counted():
    body, key = {"model": "m", "messages": [user("Hello.")]}, {"authorization": "Bearer k"}
    with run_gateway(["Hello."]) as (url, _):
        assert patient.post(f"{url}/v1/chat/completions", json=body, headers=key).status_code == 200
        assert figures(url)["foldline_added_seconds_count",] == 1
    with run_service(openai_upstream="http://127.0.0.1:9", store="memory://") as url:
        assert patient.post(f"{url}/v1/chat/completions", json=body, headers=key).status_code == 502
        assert figures(url)["foldline_upstream_failures_total", ("vendor", "openai")] == 1


def test_tokens_price_and_time_are_counted_by_tenant_and_model():
    tokens = {"the-token-of-ada": "ada", "the-token-of-bob": "bob"}
    tokens["the-token-of-prometheus"] = TokenGrant(scopes=("metrics",))
    body = {"model": "gpt-5", "messages": [user("Hello.")]}
    with api(tokens=tokens, headers={"authorization": "Bearer the-token-of-bob"}) as (client, _):
        client.begin("one")
        client.turn("one", "Hello.")
        own, all_ = (
            figures(client.url, authorization=f"Bearer the-token-of-{one}") for one in ("bob", "prometheus")
        )
        others = figures(client.url, authorization="Bearer the-token-of-ada")
    name = next(labels for name, *labels in own if name == "foldline_reply_seconds_count")
    assert name[0][1].startswith("openai-compatible:scripted@")
    assert name[1] == ("tenant", "bob")
    counted = sum(value for (figure, *_), value in own.items() if figure == "foldline_tokens_total")
    assert counted > 0
    assert own.items() <= all_.items()
    assert not [labels for _, *labels in others if ("tenant", "bob") in labels]
    assert ("foldline_requests_total", ("face", "api"), ("status", "201")) in others
    with run_gateway(["Hello."], tokens=tokens) as (url, _):
        headers = {"foldline-token": "the-token-of-ada", "authorization": "Bearer k"}
        assert patient.post(f"{url}/v1/chat/completions", json=body, headers=headers).status_code == 200
        found = figures(url, authorization="Bearer the-token-of-prometheus")
    labels = (("model", "openai:gpt-5"), ("tenant", "ada"))
    assert found["foldline_reply_seconds_count", *labels] == 1
    assert found["foldline_usd_total", *labels] > 0
    assert found["foldline_tokens_total", ("kind", "output"), *labels] > 0


async def test_a_reply_has_the_price_of_the_model_that_gave_it_whichever_is_asked_next():
    headers = {"foldline-session": "mine", "authorization": "Bearer k"}
    held = Held(lambda asked: "Hello.", lambda asked: asked.model == "gpt-4o")

    def usd(url, model):
        return figures(url)["foldline_usd_total", ("model", f"openai:{model}"), ("tenant", "default")]

    with run_gateway(held) as (url, _):

        def ask(model, *texts):
            body = {"model": model, "messages": [user(text) for text in texts]}
            reply = patient.post(f"{url}/v1/chat/completions", json=body, headers=headers)
            return reply.json()["usage"]

        first = asyncio.ensure_future(asyncio.to_thread(ask, "gpt-4o", "Hello."))
        try:
            assert await asyncio.to_thread(held.begun.wait, 60)
            await asyncio.to_thread(ask, "gpt-4o-mini", "Hello.", "Are you there?")
        finally:
            held.gate.open()
        usage = await first
        price = Catalogue().look_up("openai:gpt-4o").price
        paid = Usage(input=usage["prompt_tokens"], output=usage["completion_tokens"])
        assert usd(url, "gpt-4o") == pytest.approx(cost(paid, price))


def test_a_request_is_a_span_and_the_parent_of_its_compaction(spans):
    with api() as (client, _):
        client.begin("one", messages=chat(20))
        client.post("/sessions/one/compact")
    by_name = {one.name: one for one in spans()}
    asked, made = by_name["POST /api/sessions/{session}/compact"], by_name["compaction"]
    assert asked.attributes["http.response.status_code"] == 200
    assert asked.attributes["foldline.face"] == "api"
    assert made.parent.span_id == asked.context.span_id
    assert "Question" not in str([dict(one.attributes) for one in spans()])


def test_each_request_is_a_trace_of_its_own_with_the_calls_of_its_model(spans):
    with api() as (client, _):  # one connection for all of them
        client.begin("one", messages=[*chat(2), user("x" * 200_000)])
        client.turn("one", "Hello.")
    made = {one.name: one for one in spans()}
    asked, call = made["POST /api/sessions/{session}/turns"], made["chat scripted"]
    assert [one.parent for one in (made["POST /api/sessions"], asked)] == [None, None]
    assert call.parent.span_id == asked.context.span_id
    assert asked.start_time <= call.start_time <= call.end_time <= asked.end_time


@pytest.mark.parametrize("stream", [True, False])
def test_what_an_agent_asks_through_the_gateway_is_the_call_of_a_model(spans, stream):
    body = {"model": "gpt-5", "messages": [user("Hello.")]}
    body |= {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    with run_gateway(["Hello again."]) as (url, _):
        headers = {"authorization": "Bearer k", "foldline-session": "one"}
        assert patient.post(f"{url}/v1/chat/completions", json=body, headers=headers).status_code == 200
    made = {one.name: one for one in spans()}
    asked, call = made["POST /v1/chat/completions"], made["chat gpt-5"]
    assert call.parent.span_id == asked.context.span_id
    assert asked.start_time <= call.start_time <= call.end_time <= asked.end_time
    told = call.attributes
    assert (told[tracing.OPERATION], told[tracing.CONVERSATION]) == ("chat", "one")
    assert (told[tracing.PROVIDER], told[tracing.REQUEST_MODEL]) == ("openai", "gpt-5")
    assert told[tracing.INPUT_TOKENS] > 0
    assert told[tracing.OUTPUT_TOKENS] > 0
    assert "Hello" not in str(told)


def test_the_dashboard_and_the_docs_ask_for_figures_that_there_are():
    with run_service(store="memory://") as url:
        text = patient.get(f"{url}/metrics").text
    known = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    board = json.loads(Path("docs/grafana.json").read_text(encoding="utf-8"))
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    for words in (*asked, Path("docs/service.md").read_text(encoding="utf-8")):
        for name in re.findall(r"\bfoldline_\w+", words):
            assert name.removesuffix("_bucket") in known, name
    for name in known:
        if not name.endswith("_created"):
            assert any(name in one for one in asked), name
