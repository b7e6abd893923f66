"""One bad example for every rule of the Messages API, and good ones that break none."""

import pytest
from tests.dialects.samples import (
    ANTHROPIC,
    PNG,
    dumped,
    image,
    reply,
    result,
    said,
    text,
    thinking,
    turn,
    use,
    user,
)
from tests.support.rule_sources import sourced

from foldline.dialects import get


def after_call(*blocks):
    return [user("hi"), turn(use("t1")), reply(*blocks)]


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
    "first-user": [said("hi"), user("yes")],
    "content-type": [{"role": "user", "content": None}],
    "content-empty": [user("hi"), said("")],
    "block-type": [reply({"type": "input_audio"})],
    "block-shape": [reply({"type": "text", "text": 5})],
    "text-empty": [reply(text("hi"), text(" \n"))],
    "trailing-space": [user("hi"), said("Sure: ")],
    "thinking-role": [reply(thinking(), text("hi"))],
    "thinking-signature": [user("hi"), turn({"type": "thinking", "thinking": "hm"}, text("yes"))],
    "thinking-last": [user("hi"), turn(text("yes"), thinking()), user("go")],
    "call-role": [reply(use("t1"))],
    "call-id": [user("hi"), turn(use("a:b")), reply(result("t2"))],
    "call-name": [user("hi"), turn(use("t1", name="read file")), reply(result("t1"))],
    "call-input": [user("hi"), turn({**use("t1"), "input": "{}"}), reply(result("t1"))],
    "call-duplicate": [*after_call(result("t1")), turn(use("t1")), reply(result("t1"))],
    "result-missing": [user("hi"), turn(use("t1"), use("t2")), reply(result("t2"))],
    "result-orphan": after_call(result("t1"), result("t9")),
    "result-duplicate": after_call(result("t1"), result("t1")),
    "result-role": [user("hi"), turn(result("t1"), text("x"))],
    "result-id": after_call(result("t1"), result(None)),
    "results-first": after_call(text("here:"), result("t1")),
    "server-result-orphan": [user("hi"), turn({"type": "web_search_tool_result", "tool_use_id": "s1"})],
    "server-result-missing": [user("hi"), turn(text("I look."), searches("s1")), user("never mind")],
    "error-result-empty": after_call(result("t1", "", is_error=True)),
    "error-result-text": after_call(result("t1", [text("see"), image()], is_error=True)),
    "image-source": [reply(image(type="base64", media_type="image/tiff", data=PNG))],
    "document-source": [reply({"type": "document", "source": {"type": "base64", "data": "AA"}})],
}

# an id that breaks the pattern cannot be answered either: both are said
ALSO = {"call-id": {"result-missing", "result-orphan"}}

GOOD = [
    ANTHROPIC,
    [user("hi")],
    [user("hi"), user("again"), said("yes"), said("and no"), user("ok")],
    [user("hi"), turn(use("t1")), turn(use("t2")), reply(result("t2")), reply(result("t1"), text("so?"))],
    [user("hi"), turn(thinking()), turn(text("combined with the thinking before"))],
    after_call({"type": "tool_result", "tool_use_id": "t1"}),
    after_call(result("t1", "failed", is_error=True)),
    [user("hi"), turn(text("I look."), searches("s1"))],
    [user("hi"), turn(searches("s1")), turn(found("s1"), text("It rains.")), user("thanks")],
    [
        user("hi"),
        turn(searches("s1"), use("t1")),
        reply(result("t1")),
        turn(found("s1"), text("3")),
        user("ok"),
    ],
    [user("hi"), turn({"type": "fallback"}, {"type": "mcp_tool_listing"}, text("yes"))],
    after_call(result("t1", [{"type": "browser_state", "tabs": []}])),
]


@pytest.mark.parametrize(("rule", "messages"), BAD.items(), ids=BAD)
def test_every_rule_has_a_bad_example(rule, messages):
    rules = {problem.rule for problem in get("anthropic").validate(messages)}
    assert rules - ALSO.get(rule, set()) == {rule}


@pytest.mark.parametrize("messages", GOOD)
def test_good_lists_break_no_rule(messages):
    assert get("anthropic").validate(messages) == []
    assert get("anthropic").validate([dumped(message) for message in messages]) == []


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
        turn(use("t1")),
        reply(text("x")),
        turn(use("t2")),
        reply(result("t2"), result("t1")),
    ]
    assert [(p.index, p.rule) for p in get("anthropic").validate(messages)] == [
        (1, "result-missing"),
        (4, "result-orphan"),
    ]


def test_calls_open_at_the_end_are_reported():
    assert [p.rule for p in get("anthropic").validate([user("a"), turn(use("t1"))])] == ["result-missing"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("block-type", {"role": "user", "content": [5]}),
        ("block-shape", turn({"type": "thinking", "thinking": 5, "signature": "s"}, text("x"))),
        ("block-shape", turn({"type": "redacted_thinking", "data": ""}, text("x"))),
        ("block-type", turn(image())),
        ("document-source", reply({"type": "document", "source": {"type": "file"}})),
        ("image-source", reply({"type": "image"})),
        ("image-source", reply(image(type="base64", media_type=["image/png"], data=PNG))),
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
    assert get("anthropic").validate([reply({"type": "document", "source": source})]) == []


def test_the_list_of_rules_and_their_sources_is_whole():
    assert set(sourced("anthropic")) == {*BAD, "system"}
