"""One bad example for every rule of the Converse API, and good ones that break none."""

from __future__ import annotations

import pytest
from tests.dialects.converse_samples import ALL, POINT, document, image, reasoning, reply, result, use, user
from tests.dialects.samples import as_json
from tests.support.rule_sources import sourced_rules

from foldline.dialects import get

CONVERSE = get("bedrock-converse")


def after_call(*blocks):
    return [user("hi"), reply(use("t1")), user(*blocks)]


BAD = {
    "list": [],
    "cache-marks": [user("hi", *[POINT] * 5)],
    "cache-after-thinking": [user("hi"), reply(reasoning(), POINT, "yes")],
    "text-surrogate": [user("half \ud83d")],
    "message": [user("hi"), "hello"],
    "role": [user("hi"), {"role": "tool", "content": [{"text": "x"}]}],
    "first-user": [reply("hi"), user("yes")],
    "alternate": [user("hi"), user("again")],
    "content-type": [{"role": "user", "content": "hi"}],
    "content-empty": [user("hi"), reply(POINT), user("so?")],
    "block-kind": [user({"a": 1, "b": 2})],
    "block-role": [user("hi"), reply(image(), "see")],
    "block-shape": [user({"text": 5})],
    "text-empty": [user("hi", " \n")],
    "trailing-space": [user("hi"), reply("Sure: ")],
    "thinking-last": [user("hi"), reply("yes", reasoning()), user("go")],
    "call-id": [user("hi"), reply(use("a b")), user(result("t2"))],
    "call-name": [user("hi"), reply(use(name="read file")), user(result())],
    "call-input": [user("hi"), reply(use(arguments="{}")), user(result())],
    "call-duplicate": [*after_call(result()), reply(use()), user(result())],
    "result-missing": [user("hi"), reply(use("t1"), use("t2")), user(result("t2"))],
    "result-orphan": after_call(result("t1"), result("t9")),
    "result-duplicate": after_call(result("t1"), result("t1")),
    "result-id": after_call(result("t1"), result(None)),
    "results-first": after_call("here:", result("t1")),
    "error-result-empty": after_call(result("t1", status="error")),
    "media-format": [user(image(form="tiff"))],
    "media-source": [user({"image": {"format": "png", "source": {"bytes": b""}}})],
    "document-name": [user("see", document("a.txt"))],
    "document-duplicate": [user("see", document()), reply("yes"), user("and", document())],
    "document-text": [user(document())],
}
ALSO = {"call-id": {"result-missing", "result-orphan"}}  # such an id cannot be answered either


@pytest.mark.parametrize(("rule", "messages"), BAD.items(), ids=BAD)
def test_every_rule_has_a_bad_example(rule, messages):
    rules = {problem.rule for problem in CONVERSE.validate(messages)}
    assert rules - ALSO.get(rule, set()) == {rule}


@pytest.mark.parametrize("messages", [ALL, [user("hi")], after_call(result()), after_call(result(), "so?")])
def test_good_lists_break_no_rule(messages):
    assert CONVERSE.validate(messages) == []


def test_json_bytes_are_read_as_well():
    assert CONVERSE.validate([as_json(message) for message in after_call(result("t1", {"json": [1]}))]) == []


@pytest.mark.parametrize("system", [None, "Be kind.", [{"text": "Be kind."}, POINT]])
def test_good_system_prompts(system):
    assert CONVERSE.validate([user("hi")], system) == []


@pytest.mark.parametrize(
    ("system", "rule"), [(5, "system"), ([image()], "system"), ([{"text": ""}], "text-empty")]
)
def test_bad_system_prompts(system, rule):
    assert [(p.index, p.rule) for p in CONVERSE.validate([user("hi")], system)] == [(-1, rule)]


@pytest.mark.parametrize(
    ("rule", "block"),
    [
        ("block-kind", result("t1", POINT)),
        ("block-shape", result("t1", "x", status="bad")),
        ("content-type", {"toolResult": {"toolUseId": "t1", "content": "x"}}),
        ("text-empty", result("t1", "")),
        ("media-format", result("t1", image(form="bmp"))),
    ],
)
def test_other_bad_results(rule, block):
    assert [problem.rule for problem in CONVERSE.validate(after_call(block))] == [rule]


def test_the_list_of_rules_and_their_sources_is_whole():
    assert set(sourced_rules("bedrock-converse")) == {*BAD, "system"}
