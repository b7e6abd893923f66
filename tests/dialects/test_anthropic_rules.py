"""One bad example for every rule of the Messages API, and good ones that break none."""

import pytest
from tests.dialects.samples import (
    ANTHROPIC,
    PNG,
    as_json,
    assistant,
    by_model,
    by_user,
    image,
    result,
    text,
    thinking,
    use,
    user,
)
from tests.support.rule_sources import sourced_rules

from foldline.dialects import get


def after_call(*blocks):
    return [user("hi"), by_model(use("t1")), by_user(*blocks)]


def searches(call_id):
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": "x"}}


def found(call_id):
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": []}


SHARED = "text-surrogate"  # a rule of all dialects
BAD = {
    "list": [],
    "cache-marks": [user([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 5)],
    "text-surrogate": [user("half \ud83d")],
    "message": [user("hi"), "hello"],
    "role": [user("hi"), {"role": "tool", "content": "x"}],
    "first-user": [assistant("hi"), user("yes")],
    "content-type": [{"role": "user", "content": None}],
    "content-empty": [user("hi"), assistant("")],
    "block-type": [by_user({"type": "input_audio"})],
    "block-shape": [by_user({"type": "text", "text": 5})],
    "text-empty": [by_user(text("hi"), text(" \n"))],
    "trailing-space": [user("hi"), assistant("Sure: ")],
    "thinking-role": [by_user(thinking(), text("hi"))],
    "thinking-signature": [user("hi"), by_model({"type": "thinking", "thinking": "hm"}, text("yes"))],
    "thinking-last": [user("hi"), by_model(text("yes"), thinking()), user("go")],
    "call-role": [by_user(use("t1"))],
    "call-id": [user("hi"), by_model(use("a:b")), by_user(result("t2"))],
    "call-name": [user("hi"), by_model(use("t1", name="read file")), by_user(result("t1"))],
    "call-input": [user("hi"), by_model({**use("t1"), "input": "{}"}), by_user(result("t1"))],
    "call-duplicate": [*after_call(result("t1")), by_model(use("t1")), by_user(result("t1"))],
    "result-missing": [user("hi"), by_model(use("t1"), use("t2")), by_user(result("t2"))],
    "result-orphan": after_call(result("t1"), result("t9")),
    "result-duplicate": after_call(result("t1"), result("t1")),
    "result-role": [user("hi"), by_model(result("t1"), text("x"))],
    "result-id": after_call(result("t1"), result(None)),
    "results-first": after_call(text("here:"), result("t1")),
    "server-result-orphan": [user("hi"), by_model({"type": "web_search_tool_result", "tool_use_id": "s1"})],
    "server-result-missing": [user("hi"), by_model(text("I look."), searches("s1")), user("never mind")],
    "error-result-empty": after_call(result("t1", "", is_error=True)),
    "error-result-text": after_call(result("t1", [text("see"), image()], is_error=True)),
    "image-source": [by_user(image(type="base64", media_type="image/tiff", data=PNG))],
    "document-source": [by_user({"type": "document", "source": {"type": "base64", "data": "AA"}})],
}

# an id that breaks the pattern cannot be answered either: both are said
ALSO = {"call-id": {"result-missing", "result-orphan"}}

GOOD = [
    ANTHROPIC,
    [user("hi")],
    [user("hi"), user("again"), assistant("yes"), assistant("and no"), user("ok")],
    [
        user("hi"),
        by_model(use("t1")),
        by_model(use("t2")),
        by_user(result("t2")),
        by_user(result("t1"), text("so?")),
    ],
    [user("hi"), by_model(thinking()), by_model(text("combined with the thinking before"))],
    after_call({"type": "tool_result", "tool_use_id": "t1"}),
    after_call(result("t1", "failed", is_error=True)),
    [user("hi"), by_model(text("I look."), searches("s1"))],
    [user("hi"), by_model(searches("s1")), by_model(found("s1"), text("It rains.")), user("thanks")],
    [
        user("hi"),
        by_model(searches("s1"), use("t1")),
        by_user(result("t1")),
        by_model(found("s1"), text("3")),
        user("ok"),
    ],
    [user("hi"), by_model({"type": "fallback"}, {"type": "mcp_tool_listing"}, text("yes"))],
    after_call(result("t1", [{"type": "browser_state", "tabs": []}])),
]


@pytest.mark.parametrize(("rule", "messages"), BAD.items(), ids=BAD)
def test_every_rule_has_a_bad_example(rule, messages):
    rules = {problem.rule for problem in get("anthropic").validate(messages)}
    assert rules - ALSO.get(rule, set()) == {rule}


@pytest.mark.parametrize("messages", GOOD)
def test_good_lists_break_no_rule(messages):
    assert get("anthropic").validate(messages) == []
    assert get("anthropic").validate([as_json(message) for message in messages]) == []


@pytest.mark.parametrize(
    "system", [None, "Be kind.", [text("Be kind.", cache_control={"type": "ephemeral"})]]
)
def test_good_system_prompts(system):
    assert get("anthropic").validate([user("hi")], system) == []


@pytest.mark.parametrize(
    ("system", "rule"), [(5, "system"), ([image()], "system"), ([text("")], "text-empty"), (["x"], "system")]
)
def test_bad_system_prompts(system, rule):
    assert [(p.index, p.rule) for p in get("anthropic").validate([user("hi")], system)] == [(-1, rule)]


def test_problems_name_the_message():
    messages = [
        user("hi"),
        by_model(use("t1")),
        by_user(text("x")),
        by_model(use("t2")),
        by_user(result("t2"), result("t1")),
    ]
    assert [(p.index, p.rule) for p in get("anthropic").validate(messages)] == [
        (1, "result-missing"),
        (4, "result-orphan"),
    ]


def test_calls_open_at_the_end_are_reported():
    assert [p.rule for p in get("anthropic").validate([user("a"), by_model(use("t1"))])] == ["result-missing"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("block-type", {"role": "user", "content": [5]}),
        ("block-shape", by_model({"type": "thinking", "thinking": 5, "signature": "s"}, text("x"))),
        ("block-shape", by_model({"type": "redacted_thinking", "data": ""}, text("x"))),
        ("block-type", by_model(image())),
        ("document-source", by_user({"type": "document", "source": {"type": "file"}})),
        ("image-source", by_user({"type": "image"})),
        ("image-source", by_user(image(type="base64", media_type=["image/png"], data=PNG))),
    ],
)
def test_other_bad_forms(rule, message):
    assert [problem.rule for problem in get("anthropic").validate([user("hi"), message])] == [rule]


@pytest.mark.parametrize(
    ("rule", "block"),
    [
        ("block-shape", result("t1", is_error="yes")),
        ("content-type", result("t1", 5)),
        ("block-type", result("t1", [{"type": "tool_use"}])),
        ("block-type", result("t1", [5])),
        ("text-empty", result("t1", [text("")])),
    ],
)
def test_other_bad_results(rule, block):
    assert [problem.rule for problem in get("anthropic").validate(after_call(block))] == [rule]


@pytest.mark.parametrize(
    "source",
    [
        {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
        {"type": "content", "content": [text("x")]},
        {"type": "url", "url": "http://x/a.pdf"},
        {"type": "file", "file_id": "f"},
    ],
)
def test_good_documents(source):
    assert get("anthropic").validate([by_user({"type": "document", "source": source})]) == []


def test_the_list_of_rules_and_their_sources_is_whole():
    assert set(sourced_rules("anthropic")) == {*BAD, "system"}
