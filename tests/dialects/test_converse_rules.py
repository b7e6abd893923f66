"""One bad example for every rule of the Converse API, and good ones that break none."""

from __future__ import annotations

import pytest
from tests.dialects.converse_samples import ALL, POINT, asked, document, image, result, thought, told, use
from tests.dialects.samples import dumped
from tests.support.rule_sources import sourced

from foldline.dialects import get

CONVERSE = get("bedrock-converse")


def after_call(*blocks):
    return [asked("hi"), told(use("t1")), asked(*blocks)]


BAD = {
    "list": [],
    "cache-marks": [asked("hi", *[POINT] * 5)],
    "cache-after-thinking": [asked("hi"), told(thought(), POINT, "yes")],
    "text-surrogate": [asked("half \ud83d")],
    "message": [asked("hi"), "hello"],
    "role": [asked("hi"), {"role": "tool", "content": [{"text": "x"}]}],
    "first-user": [told("hi"), asked("yes")],
    "alternate": [asked("hi"), asked("again")],
    "content-type": [{"role": "user", "content": "hi"}],
    "content-empty": [asked("hi"), told(POINT), asked("so?")],
    "block-kind": [asked({"a": 1, "b": 2})],
    "block-role": [asked("hi"), told(image(), "see")],
    "block-shape": [asked({"text": 5})],
    "text-empty": [asked("hi", " \n")],
    "trailing-space": [asked("hi"), told("Sure: ")],
    "thinking-last": [asked("hi"), told("yes", thought()), asked("go")],
    "call-id": [asked("hi"), told(use("a b")), asked(result("t2"))],
    "call-name": [asked("hi"), told(use(name="read file")), asked(result())],
    "call-input": [asked("hi"), told(use(arguments="{}")), asked(result())],
    "call-duplicate": [*after_call(result()), told(use()), asked(result())],
    "result-missing": [asked("hi"), told(use("t1"), use("t2")), asked(result("t2"))],
    "result-orphan": after_call(result("t1"), result("t9")),
    "result-duplicate": after_call(result("t1"), result("t1")),
    "result-id": after_call(result("t1"), result(None)),
    "results-first": after_call("here:", result("t1")),
    "error-result-empty": after_call(result("t1", status="error")),
    "media-format": [asked(image(form="tiff"))],
    "media-source": [asked({"image": {"format": "png", "source": {"bytes": b""}}})],
    "document-name": [asked("see", document("a.txt"))],
    "document-duplicate": [asked("see", document()), told("yes"), asked("and", document())],
    "document-text": [asked(document())],
}
ALSO = {"call-id": {"result-missing", "result-orphan"}}  # such an id cannot be answered either


@pytest.mark.parametrize(("rule", "messages"), BAD.items(), ids=BAD)
def test_every_rule_has_a_bad_example(rule, messages):
    rules = {problem.rule for problem in CONVERSE.validate(messages)}
    assert rules - ALSO.get(rule, set()) == {rule}


@pytest.mark.parametrize("messages", [ALL, [asked("hi")], after_call(result()), after_call(result(), "so?")])
def test_good_lists_break_no_rule(messages):
    assert CONVERSE.validate(messages) == []


def test_json_bytes_are_read_as_well():
    assert CONVERSE.validate([dumped(message) for message in after_call(result("t1", {"json": [1]}))]) == []


@pytest.mark.parametrize("system", [None, "Be kind.", [{"text": "Be kind."}, POINT]])
def test_good_system_prompts(system):
    assert CONVERSE.validate([asked("hi")], system) == []


@pytest.mark.parametrize(
    ("system", "rule"), [(5, "system"), ([image()], "system"), ([{"text": ""}], "text-empty")]
)
def test_bad_system_prompts(system, rule):
    assert [(p.index, p.rule) for p in CONVERSE.validate([asked("hi")], system)] == [(-1, rule)]


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
    assert set(sourced("bedrock-converse")) == {*BAD, "system"}
