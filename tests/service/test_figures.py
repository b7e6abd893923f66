"""What operators see of the service: figures for Prometheus, spans for OpenTelemetry."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.service.api.client import api, talk, user
from tests.service.served import in_front_of, served
from tests.support import patient


def figures(url):
    """All samples by name and labels."""
    text = patient.get(f"{url}/metrics").text
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_answers_folds_and_open_sessions_are_counted():
    with api() as (client, _):
        client.begin("one", messages=talk(20))
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
    with in_front_of(["Hello."]) as (url, _):
        assert patient.post(f"{url}/v1/chat/completions", json=body, headers=key).status_code == 200
        assert figures(url)["foldline_added_seconds_count",] == 1
    with served(openai_upstream="http://127.0.0.1:9", store="memory://") as url:
        assert patient.post(f"{url}/v1/chat/completions", json=body, headers=key).status_code == 502
        assert figures(url)["foldline_upstream_failures_total", ("vendor", "openai")] == 1


def test_a_request_is_a_span_and_the_parent_of_its_compaction(spans):
    with api() as (client, _):
        client.begin("one", messages=talk(20))
        client.post("/sessions/one/compact")
    by_name = {one.name: one for one in spans()}
    asked, made = by_name["POST /api/sessions/{session}/compact"], by_name["compaction"]
    assert asked.attributes["http.response.status_code"] == 200
    assert asked.attributes["foldline.face"] == "api"
    assert made.parent.span_id == asked.context.span_id
    assert "Question" not in str([dict(one.attributes) for one in spans()])


def test_the_dashboard_and_the_docs_ask_for_figures_that_there_are():
    with served(store="memory://") as url:
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
