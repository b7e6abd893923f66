"""One bad example for every rule of a list of Responses items, and good ones that break none."""

import pytest
from tests.dialects.items import RESPONSES, call, message, output, reasoning, spoke
from tests.dialects.samples import as_json, user
from tests.support.rule_sources import sourced_rules

from foldline.dialects import get

SHELL = {"type": "shell_call", "call_id": "s1", "action": {"commands": ["ls"]}}
RAN = {"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}

SHARED = "text-surrogate"  # a rule of all dialects
BAD = {
    "list": [],
    "text-surrogate": [user("half \ud83d")],
    "item": [user("hi"), 5],
    "item-type": [user("hi"), {"type": "telepathy", "id": "t1"}],
    "item-shape": [user("hi"), {"type": "web_search_call", "status": "completed"}],
    "item-duplicate": [user("hi"), spoke("a", id="msg_1"), spoke("b", id="msg_1")],
    "role": [{"role": "tool", "content": "hi"}],
    "content-type": [{"role": "user", "content": None}],
    "content-empty": [{"role": "user", "content": []}],
    "part-type": [message("user", {"type": "output_text", "text": "hi"})],
    "part-shape": [message("user", {"type": "input_text", "text": 5})],
    "text-empty": [message("user", {"type": "input_text", "text": ""})],
    "image-source": [message("user", {"type": "input_image", "detail": "auto"})],
    "file-source": [message("user", {"type": "input_file", "filename": "a.pdf"})],
    "reasoning-shape": [user("hi"), {**reasoning(), "summary": "hm"}, spoke("ok")],
    "reasoning-last": [user("hi"), reasoning(), user("and?")],
    "call-id": [user("hi"), call("")],
    "call-name": [user("hi"), call("c1", name="two words"), output("c1")],
    "call-arguments": [user("hi"), call("c1", arguments={"a": 1}), output("c1")],
    "call-action": [
        user("hi"),
        {**SHELL, "action": {}},
        {**output("s1", [RAN]), "type": "shell_call_output"},
    ],
    "call-duplicate": [user("hi"), call("c1"), output("c1"), call("c1")],
    "result-id": [user("hi"), {"type": "function_call_output", "output": "x"}],
    "result-orphan": [user("hi"), output("c1")],
    "result-duplicate": [user("hi"), call("c1"), output("c1"), output("c1")],
    "result-kind": [user("hi"), call("c1"), {**output("c1"), "type": "custom_tool_call_output"}],
    "result-missing": [user("hi"), call("c1"), user("next")],
    "output-shape": [user("hi"), SHELL, {**output("s1", "a.py"), "type": "shell_call_output"}],
    "program-orphan": [user("hi"), {"type": "program_output", "id": "po", "call_id": "p1", "result": "1"}],
    "trigger-last": [{"type": "compaction_trigger"}, user("hi")],
}

GOOD = [
    RESPONSES,
    [user("hi")],
    [spoke("I begin.")],
    [{"role": "developer", "content": "x"}, {"role": "system", "content": "y"}, user("hi")],
    [user("hi"), call("c1"), call("c2"), output("c2", ""), output("c1")],
    [user("hi"), call("c1"), {"role": "developer", "content": "x"}, output("c1")],
    [user("hi"), call("c1", arguments="{oops"), output("c1", [{"type": "input_text", "text": "x"}])],
    [user("hi"), call("c1"), output("c1", [{"type": "input_image", "file_id": "f1"}])],
    [user("hi"), reasoning(), reasoning(id="rs_2"), call("c1"), output("c1"), reasoning(id="rs_3"), spoke("ok")],
    [user("hi"), {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}, spoke("ok")],
    [user("hi"), SHELL, {**output("s1", [RAN]), "type": "shell_call_output"}],
    [user("hi"), {"id": "msg_1"}, {"type": "item_reference", "id": "fc_1"}, output("c1")],
    [user("hi"), spoke({"type": "refusal", "refusal": "no"}), {"type": "compaction_trigger"}],
    [{"type": "compaction", "encrypted_content": "gAAA"}, user("hi")],
    [user("hi"), {"type": "mcp_approval_request", "id": "m1", "server_label": "s", "name": "f", "arguments": "{}"},
     {"type": "mcp_approval_response", "approval_request_id": "m1", "approve": True}],
    [user("hi"), {"type": "program", "id": "p", "call_id": "p1", "code": "1", "fingerprint": "f"},
     {"type": "program_output", "id": "po", "call_id": "p1", "result": "1", "status": "completed"}],
    [user("hi"), {"type": "computer_call", "id": "cu", "call_id": "k1", "action": {"type": "screenshot"},
                  "pending_safety_checks": [], "status": "completed"},
     {"type": "computer_call_output", "call_id": "k1",
      "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}}],
    [user("hi"), {"type": "apply_patch_call", "call_id": "a1", "status": "completed",
                  "operation": {"type": "delete_file", "path": "a.py"}},
     {"type": "apply_patch_call_output", "call_id": "a1", "status": "failed"}],
    [user("hi"), {"type": "local_shell_call", "id": "l", "call_id": "l1", "status": "completed",
                  "action": {"type": "exec", "command": ["ls"], "env": {}}},
     {"type": "local_shell_call_output", "id": "l1", "output": "a.py"}],
    [user("hi"), {"type": "tool_search_call", "call_id": "t1", "execution": "client", "arguments": {"q": "x"}},
     {"type": "tool_search_output", "call_id": "t1", "execution": "client", "tools": []}],
    [user("hi"), {"type": "function_call_output", "name": "watcher", "output": "the build is red"}],
]  # fmt: skip


@pytest.mark.parametrize(("rule", "items"), BAD.items(), ids=BAD)
def test_every_rule_has_a_bad_example(rule, items):
    problems = get("openai-responses").validate(items)
    assert [problem.rule for problem in problems] == [rule], problems
    assert problems[0].text


@pytest.mark.parametrize("items", GOOD)
def test_good_lists_break_no_rule(items):
    assert get("openai-responses").validate(items) == []
    assert get("openai-responses").validate([as_json(item) for item in items], "Be kind.") == []


def test_a_call_at_the_end_waits_for_its_output():
    problems = get("openai-responses").validate([user("hi"), call("c1")])
    assert [(problem.index, problem.rule) for problem in problems] == [(1, "result-missing")]


def test_instructions_are_text():
    problems = get("openai-responses").validate([user("hi")], [{"type": "input_text", "text": "x"}])
    assert [(problem.index, problem.rule) for problem in problems] == [(-1, "system")]


def test_the_list_of_rules_and_their_sources_is_whole():
    assert set(sourced_rules("openai-responses")) == {*BAD, "system"}


STORED = [user("hi"), {"type": "item_reference", "id": "rs_1"}, {"type": "item_reference", "id": "fc_1"}]


def test_a_reference_is_answered_by_one_output_and_no_more():
    def rules(*items):
        return [(p.index, p.rule) for p in get("openai-responses").validate([*STORED, *items])]

    assert rules(output("c1")) == []
    assert rules() == [(2, "result-missing")]
    assert rules(user("and?"), output("c1")) == [(2, "result-missing"), (4, "result-orphan")]
    assert rules(output("c1"), output("c2")) == [(4, "result-orphan")]
    assert rules(output("c1"), output("c1")) == [(4, "result-duplicate")]
