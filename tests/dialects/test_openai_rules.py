"""One bad example for every rule of Chat Completions, and good ones that break none."""

import pytest
from tests.dialects.samples import OPENAI, as_json, assistant, call, calling, tool_answer, user
from tests.support.rule_sources import sourced_rules

from foldline.dialects import get

SHARED = "text-surrogate"  # a rule of all dialects

BAD = {
    "list": [],
    "text-surrogate": [user("half \ud83d")],
    "message": [user("hi"), 5],
    "role": [{"role": "robot", "content": "hi"}],
    "calls-role": [{"role": "user", "content": "hi", "tool_calls": []}],
    "result-missing": [user("hi"), calling(call("c1"), call("c2")), tool_answer("c1"), user("next")],
    "result-id": [user("hi"), calling(call("c1")), tool_answer("c1"), {"role": "tool", "content": "x"}],
    "result-duplicate": [user("hi"), calling(call("c1")), tool_answer("c1"), tool_answer("c1")],
    "result-orphan": [user("hi"), tool_answer("c1")],
    "name": [{"role": "user", "name": "", "content": "hi"}],
    "content-null": [{"role": "user", "content": None}],
    "content-type": [{"role": "user", "content": 5}],
    "content-empty": [{"role": "user", "content": []}],
    "part-type": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
    "part-shape": [{"role": "user", "content": [{"type": "image_url", "image_url": "http://x"}]}],
    "text-empty": [{"role": "user", "content": [{"type": "text", "text": ""}]}],
    "calls-type": [{"role": "assistant", "content": "hi", "tool_calls": {}}],
    "calls-empty": [{"role": "assistant", "content": "hi", "tool_calls": []}],
    "call-type": [calling(call("c1", type="retrieval")), tool_answer("c1")],
    "call-id": [{"role": "assistant", "content": "x", "tool_calls": [call("")]}],
    "call-duplicate": [calling(call("c1"), call("c1")), tool_answer("c1")],
    "call-name": [calling(call("c1", name="")), tool_answer("c1")],
    "call-arguments": [calling(call("c1", arguments={"a": 1})), tool_answer("c1")],
}

GOOD = [
    OPENAI,
    [user("hi")],
    [{"role": "system", "content": "x"}],
    [assistant("I begin.")],
    [calling(call("c1")), tool_answer("c1"), calling(call("c1")), tool_answer("c1")],  # ids reused in a later batch
    [calling(call("c1"), call("c2")), tool_answer("c2"), tool_answer("c1", "")],
    [{"role": "assistant", "audio": {"id": "a1"}}],
    [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
     {"role": "function", "name": "f", "content": None}],
    [calling({"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** x"}}), tool_answer("c1")],
    [{"role": "user", "content": [
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ]}],
]  # fmt: skip


@pytest.mark.parametrize(("rule", "messages"), BAD.items(), ids=BAD)
def test_every_rule_has_a_bad_example(rule, messages):
    problems = get("openai-chat").validate(messages)
    assert [problem.rule for problem in problems] == [rule], problems
    assert problems[0].text


@pytest.mark.parametrize("messages", GOOD)
def test_good_lists_break_no_rule(messages):
    assert get("openai-chat").validate(messages) == []
    assert get("openai-chat").validate([as_json(message) for message in messages]) == []


def test_problems_name_the_message():
    problems = get("openai-chat").validate(
        [user("a"), calling(call("c1"), call("c2")), user("b"), tool_answer("c1")]
    )
    assert [(problem.index, problem.rule) for problem in problems] == [
        (1, "result-missing"),
        (1, "result-missing"),
        (3, "result-orphan"),
    ]


def test_calls_open_at_the_end_are_reported():
    assert [p.index for p in get("openai-chat").validate([user("a"), calling(call("c1"))])] == [1]


def test_a_system_prompt_given_apart_is_text():
    assert get("openai-chat").validate([user("hi")], system="Be kind.") == []
    assert get("openai-chat").validate([user("hi")], system=[1])[0].rule == "system"


@pytest.mark.parametrize(
    ("rule", "body"),
    [
        ("part-type", {"role": "user", "content": [5]}),
        ("part-shape", {"role": "user", "content": [{"type": "text", "text": 5}]}),
        ("part-shape", {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "A"}}]}),
        ("part-shape", {"role": "user", "content": [{"type": "file", "file": {"filename": "a"}}]}),
        ("content-type", {"role": "function", "name": "f", "content": ["x"]}),
        ("name", {"role": "function", "content": "x"}),
        ("call-type", {"role": "assistant", "content": "x", "tool_calls": [5]}),
        ("call-type", {"role": "assistant", "content": "x", "function_call": 5}),
        ("call-name", {"role": "assistant", "function_call": {"arguments": "{}"}}),
        ("role", {"role": ["user"], "content": "x"}),
    ],
)
def test_other_bad_forms(rule, body):
    assert [problem.rule for problem in get("openai-chat").validate([body])] == [rule]


def test_the_list_of_rules_and_their_sources_is_whole():
    assert set(sourced_rules("openai-chat")) == {*BAD, "system"}
