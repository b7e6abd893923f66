"""Every rule of a list of UI messages has a list that breaks it, and that one alone."""

import pytest
from tests.dialects.ui_samples import STEP, UI, V4, answered, failed, file, reasoning, say, tool, ui
from tests.support.rule_sources import sourced_rules

from foldline.dialects import get

VERCEL = get("ui-message")
ASKED = {"id": "p"}
YES, NO = {"id": "p", "approved": True}, {"id": "p", "approved": False, "reason": "no"}

BAD = [
    ("text-surrogate", [ui("user", {"type": "text", "text": "half \ud83d"})]),
    ("message", ["hi"]),
    ("id", [{"role": "user", "parts": [say("x")]}]),
    ("role", [ui("tool", "x")]),
    ("parts", [{"id": "1", "role": "user", "content": "x"}]),
    ("parts-empty", [ui("user")]),
    ("part-type", [ui("assistant", {"type": "image"})]),
    ("part-type", [ui("assistant", 5)]),
    ("part-role", [ui("user", answered())]),
    ("part-role", [ui("user", reasoning())]),
    ("part-role", [ui("system", file())]),
    ("part-shape", [ui("user", {"type": "text"})]),
    ("part-shape", [ui("user", {"type": "file", "url": "x"})]),
    ("part-shape", [ui("user", file(filename=5))]),
    ("part-shape", [ui("assistant", {"type": "source-url", "sourceId": "s"})]),
    ("part-shape", [ui("assistant", {"type": "source-document", "sourceId": "s", "mediaType": "x"})]),
    ("part-shape", [ui("assistant", {"type": "data-x"})]),
    ("part-shape", [ui("assistant", {"type": "data-x", "data": 1, "id": 5})]),
    ("part-shape", [ui("assistant", answered(preliminary="yes"))]),
    ("part-shape", [ui("assistant", answered(toolMetadata=5))]),
    ("part-state", [ui("assistant", say("x", state="input-available"))]),
    ("metadata-shape", [ui("assistant", say("x", providerMetadata={"openai": "id"}))]),
    ("metadata-shape", [ui("assistant", answered(callProviderMetadata=None))]),
    ("call-id", [ui("assistant", answered(""))]),
    ("call-name", [ui("assistant", {**answered(), "type": "dynamic-tool"})]),
    ("call-name", [ui("assistant", {**answered(), "type": "tool-"})]),
    ("call-state", [ui("assistant", tool(state="call"))]),
    ("call-input", [ui("assistant", {"type": "tool-x", "toolCallId": "c", "state": "input-available"})]),
    ("call-output", [ui("assistant", tool(state="output-available"))]),
    ("call-error", [ui("assistant", tool(state="output-error"))]),
    ("call-mixed", [ui("assistant", tool(output="x"))]),
    ("call-mixed", [ui("assistant", answered(errorText="x"))]),
    ("call-approval", [ui("assistant", tool(state="approval-requested"))]),
    ("call-approval", [ui("assistant", tool(state="approval-requested", approval=YES))]),
    ("call-approval", [ui("assistant", tool(state="approval-responded", approval=ASKED))]),
    ("call-approval", [ui("assistant", tool(state="output-denied", approval=YES))]),
    ("call-approval", [ui("assistant", answered(approval=NO))]),
    ("call-approval", [ui("assistant", tool(approval=ASKED))]),
    ("call-approval", [ui("assistant", answered(approval={"approved": True}))]),
    ("call-duplicate", [ui("assistant", answered(), answered())]),
    ("result-missing", [ui("assistant", tool()), ui("user", "go on")]),
    ("result-missing", [ui("assistant", tool("a"), STEP, "Done.")]),
]


@pytest.mark.parametrize(("rule", "messages"), BAD, ids=[f"{n}-{rule}" for n, (rule, _) in enumerate(BAD)])
def test_a_bad_list_breaks_its_rule_alone(rule, messages):
    problems = VERCEL.validate(messages)
    assert [problem.rule for problem in problems] == [rule]
    assert problems[0].index == 0
    assert problems[0].text


GOOD = [
    UI,
    [ui("assistant", tool(state="input-streaming"), answered())],
    [ui("assistant", "Hello.")],
    [ui("assistant", "x"), ui("assistant", "y")],
    [ui("user", {"type": "data-x", "data": None})],
    [ui("assistant", tool(state="approval-requested", approval=ASKED))],
    [ui("assistant", tool(state="approval-responded", approval=NO))],
    [ui("assistant", tool(state="output-denied", approval=NO)), ui("user", "ok")],
    [ui("assistant", answered(approval=YES), failed("c2", approval=YES)), ui("user", "ok")],
    [ui("assistant", tool(state="input-streaming"), "x"), ui("user", "stop")],
    [ui("assistant", tool(providerExecuted=True), "x"), ui("user", "ok")],
    [ui("assistant", answered()), ui("user", "x"), ui("assistant", answered())],
    [ui("assistant", {"type": "reasoning-file", "mediaType": "image/png", "url": "x"}, {"type": "custom", "kind": "k"})],
    [ui("assistant", {"type": "dynamic-tool", "toolName": "t", "toolCallId": "c", "state": "output-error", "rawInput": "{", "errorText": ""})],
]  # fmt: skip


@pytest.mark.parametrize("messages", GOOD)
def test_good_lists(messages):
    assert VERCEL.validate(messages) == []


def test_the_list_of_rules_and_their_sources_is_whole():
    assert set(sourced_rules("ui-message")) == {*(rule for rule, _ in BAD), "list", "system"}


def test_the_form_of_sdk_4_is_read_but_is_not_todays():
    assert {problem.rule for problem in VERCEL.validate(V4[:2])} == {"parts"}
    assert {"call-state", "part-shape"} <= {problem.rule for problem in VERCEL.validate(V4[2:])}


def test_the_system_prompt_is_text():
    assert VERCEL.validate(UI, "Be brief.") == []
    assert [(p.index, p.rule) for p in VERCEL.validate(UI, [say("x")])] == [(-1, "system")]
