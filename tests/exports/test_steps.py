from __future__ import annotations

import pytest
from tests.exports.moving import export, load, replies, said
from tests.exports.sessions import entries
from tests.support.openers import open_in_claude_code, open_in_codex, open_in_opencode, open_in_pi

OPEN = {
    "pi": open_in_pi,
    "claude-code": open_in_claude_code,
    "codex": open_in_codex,
    "opencode": open_in_opencode,
}
TOOL = {"type": "tool-bash", "state": "output-available"}
TURN = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "How many?"}]},
    {"id": "m2", "role": "assistant", "parts": [
        {"type": "step-start"},
        {"type": "text", "text": "I count."},
        {**TOOL, "toolCallId": "call_1", "input": {"command": "ls | wc -l"}, "output": "7"},
        {"type": "step-start"},
        {**TOOL, "toolCallId": "call_2", "input": {"command": "ls"}, "output": "a b c d e f g"},
        {"type": "step-start"},
        {"type": "text", "text": "Seven."},
    ]},
]  # fmt: skip


@pytest.mark.parametrize("form", sorted(OPEN))
def test_a_turn_that_is_one_message_is_told_step_by_step(form):
    raw, told = export(entries(TURN, dialect="ui-message", title=None), form)
    OPEN[form](raw)
    again = load(raw)
    shapes = [(role, type(part).__name__) for role, part in said(again)]

    assert shapes == [
        ("user", "Text"),
        ("assistant", "Text"),
        ("assistant", "ToolCall"),
        ("user", "ToolResult"),
        ("assistant", "ToolCall"),
        ("user", "ToolResult"),
        ("assistant", "Text"),
    ]
    assert [part.text for _, part in said(again) if hasattr(part, "text")] == [
        "How many?", "I count.", "7", "a b c d e f g", "Seven."
    ]  # fmt: skip
    assert [usage.total > 0 for _, usage, _, _ in replies(again)] == [False, False, True]
    assert not [warning for warning in told.warnings if "step-start" in warning]


@pytest.mark.parametrize("form", sorted(OPEN))
def test_calls_that_stand_one_by_one_before_their_results(form):
    items = [
        {"type": "message", "role": "user", "content": "Both."},
        {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'},
        {"type": "function_call", "call_id": "call_2", "name": "read", "arguments": '{"path":"b"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "A"},
        {"type": "function_call_output", "call_id": "call_2", "output": "B"},
        {"type": "message", "role": "assistant", "content": "A and B."},
    ]
    raw, told = export(entries(items, dialect="openai-responses", title=None), form)
    OPEN[form](raw)

    assert [part.text for _, part in said(load(raw)) if hasattr(part, "call_id")] == ["A", "B"]
    assert not [warning for warning in told.warnings if "late" in warning]
