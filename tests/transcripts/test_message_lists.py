from __future__ import annotations

import json

import pytest
from tests.transcripts.reading import facts, messages_in, records, texts, warnings

from foldline.errors import FormatError

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "print(1)"}
USE = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a.py"}}],
}
USED = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "print(1)"}]}
USER = {"role": "user", "content": "Read a.py"}


def test_a_json_list_of_openai_messages():
    parsed = records(json.dumps([USER, CALL, RESULT]).encode())
    assert facts(parsed, "format") == [{"format": "json", "dialect": "openai-chat"}]
    assert texts(parsed) == ["user: Read a.py", "assistant: call c1", "tool: result c1: print(1)"]
    assert [record.line for record in messages_in(parsed)] == [1, 2, 3]


def test_an_object_around_a_list_gives_system_tools_and_model():
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    raw = json.dumps(
        {"model": "m-1", "system": "Be brief.", "tools": tools, "messages": [USER, USE, USED]}, indent=2
    )
    parsed = records(raw.encode())
    assert facts(parsed, "format")[0]["dialect"] == "anthropic"
    assert facts(parsed, "system") == [{"system": "Be brief."}]
    assert facts(parsed, "tools") == [{"tools": tools}]
    assert facts(parsed, "model") == [{"model": "m-1"}]
    assert texts(parsed)[1:] == ["assistant: call t1", "user: result t1: print(1)"]


def test_an_empty_list_is_read_as_no_messages():
    assert messages_in(records(b"[]")) == []


def test_json_lines_with_a_header():
    parsed = records({"system": "Be brief.", "title": "A try"}, USER, USE, USED)
    assert facts(parsed, "system") == [{"system": "Be brief."}]
    assert facts(parsed, "title") == [{"title": "A try"}]
    assert [record.line for record in messages_in(parsed)] == [2, 3, 4]


def test_the_dialect_is_found_however_late_it_shows():
    plain = [{"role": "user", "content": f"message {number}"} for number in range(500)]
    assert facts(records(*plain, USE, USED), "format")[0]["dialect"] == "anthropic"
    assert facts(records(*plain, CALL, RESULT), "format")[0]["dialect"] == "openai-chat"
    assert facts(records(*plain), "format")[0]["dialect"] == "openai-chat"


def test_a_header_may_name_the_dialect():
    assert facts(records({"dialect": "anthropic"}, USER), "format")[0]["dialect"] == "anthropic"


def test_an_unknown_dialect_is_an_error():
    with pytest.raises(FormatError, match="klingon"):
        records({"dialect": "klingon"}, USER)


def test_native_payloads_are_kept():
    parsed = records({"dialect": "openai-chat"}, {**CALL, "x_own": 1})
    assert json.loads(messages_in(parsed)[0].message.native.raw) == {**CALL, "x_own": 1}
    assert not warnings(parsed)
