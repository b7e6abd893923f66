"""Lists in the forms of other libraries and APIs: read, written as Chat Completions, or refused by name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.cli.calling import run_command
from tests.transcripts.reading import facts, records

import foldline
from foldline.dialects import get
from foldline.errors import DialectError

CALL = {"boat": "Ida"}
GEMINI = [{"role": "user", "parts": [{"text": "Where is Ida?"}]}]
MODEL_MESSAGES = [
    {"role": "user", "content": "Where is Ida?"},
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "Ask the log."},
            {"type": "text", "text": "I look."},
            {"type": "tool-call", "toolCallId": "u1", "toolName": "find", "input": CALL},
        ],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "u1",
                "toolName": "find",
                "output": {"type": "error-text", "value": "Quay 7"},
            }
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "At quay 7."}]},
]
CORE_MESSAGES = [
    *MODEL_MESSAGES[:1],
    {
        "role": "assistant",
        "content": [
            *MODEL_MESSAGES[1]["content"][:2],
            {"type": "tool-call", "toolCallId": "u1", "toolName": "find", "args": CALL},
        ],
    },
    {
        "role": "tool",
        "content": [{"type": "tool-result", "toolCallId": "u1", "result": "Quay 7", "isError": True}],
    },
    *MODEL_MESSAGES[3:],
]
LANGCHAIN = [
    {"type": "human", "content": "Where is Ida?"},
    {
        "type": "ai",
        "content": "I look.",
        "additional_kwargs": {"reasoning_content": "Ask the log."},
        "tool_calls": [{"name": "find", "args": CALL, "id": "u1", "type": "tool_call"}],
    },
    {"type": "tool", "content": "Quay 7", "tool_call_id": "u1", "status": "error"},
    {"type": "ai", "content": [{"type": "text", "text": "At quay 7."}]},
]
PYDANTIC_AI = [
    {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Where is Ida?"}]},
    {
        "kind": "response",
        "parts": [
            {"part_kind": "thinking", "content": "Ask the log."},
            {"part_kind": "text", "content": "I look."},
            {"part_kind": "tool-call", "tool_name": "find", "args": CALL, "tool_call_id": "u1"},
        ],
    },
    {
        "kind": "request",
        "parts": [
            {"part_kind": "tool-return", "tool_name": "find", "content": "Quay 7", "tool_call_id": "u1"}
            | {"outcome": "failed"}
        ],
    },
    {"kind": "response", "parts": [{"part_kind": "text", "content": "At quay 7."}]},
]
OLLAMA = [
    {"role": "user", "content": "Where is Ida?"},
    {
        "role": "assistant",
        "content": "I look.",
        "thinking": "Ask the log.",
        "tool_calls": [{"function": {"name": "find", "arguments": CALL}}],
    },
    {"role": "tool", "tool_name": "find", "content": "Quay 7"},
    {"role": "assistant", "content": "At quay 7."},
]
FORMS = {
    "the AI SDK's ModelMessage": MODEL_MESSAGES,
    "the AI SDK's ModelMessage, version 4": CORE_MESSAGES,
    "LangChain": LANGCHAIN,
    "LangChain, to_dict": [{"type": one["type"], "data": one} for one in LANGCHAIN],
    "LangChain, dumpd": [{"lc": 1, "type": "constructor", "id": ["x"], "kwargs": one} for one in LANGCHAIN],
    "pydantic-ai": PYDANTIC_AI,
    "Ollama": OLLAMA,
}


def of_all_calls(messages: list[Any]) -> list[Any]:
    """Return messages with their calls' ids made equal."""
    text = json.dumps(messages)
    for made in (made for one in messages for made in one.get("tool_calls", ())):
        text = text.replace(made["id"], "u1")
    return json.loads(text)


@pytest.mark.parametrize("name", FORMS)
def test_a_list_of_another_form_is_read_whole_and_its_form_is_named(name):
    done = foldline.compact(FORMS[name], target=4_000)
    assert done.dialect == "openai-chat"
    assert get("openai-chat").validate(done.messages) == []
    user, call, result, last = of_all_calls(done.messages)
    assert user == {"role": "user", "content": "Where is Ida?"}
    assert (call["content"], call["reasoning_content"]) == ("I look.", "Ask the log.")
    assert call["tool_calls"][0]["function"] == {"name": "find", "arguments": '{"boat":"Ida"}'}
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "u1", "Quay 7")
    assert foldline.convert([last], "anthropic").messages[-1]["content"] in (
        "At quay 7.",
        [{"type": "text", "text": "At quay 7."}],
    )
    assert name.partition(",")[0] in done.warnings[0]


@pytest.mark.parametrize(
    "name", [one for one in FORMS if one != "Ollama"]
)  # it has no mark for a failed result
def test_a_failed_result_stays_one(name):
    [*_, result, _] = foldline.convert(FORMS[name], "anthropic").messages
    assert result["content"][0]["is_error"] is True


@pytest.mark.parametrize("name", FORMS)
def test_a_file_of_it_is_read_as_a_list_and_as_lines(name, tmp_path, capfdbinary):
    whole, lines = tmp_path / "list.json", tmp_path / "lines.jsonl"
    whole.write_text(json.dumps(FORMS[name], indent=1))
    lines.write_text("\n".join(map(json.dumps, FORMS[name])))
    parsed = []
    for path in (whole, lines):
        told = run_command(capfdbinary, "compact", path, "--target", "4000", "--json")
        assert told.code == 0
        parsed.append(of_all_calls(told.json["messages"]))
        assert name.partition(",")[0] in told.err
    assert parsed[0] == parsed[1]


@pytest.mark.parametrize("name", FORMS)
async def test_a_session_takes_them_one_by_one_and_keeps_them_as_they_came(name):
    async with foldline.open("memory://", "one") as session:
        for message in FORMS[name]:
            await session.append(message)
        sent = await session.context()
        assert of_all_calls(sent)[2]["content"] == "Quay 7"
        assert get(session.dialect).validate(sent) == []
        entry = [e.message async for e in session.store.path("one") if hasattr(e, "message")][1]
        assert json.loads(entry.native.received) == FORMS[name][1]


def test_pairs_and_objects_are_read():
    @dataclass
    class Prompt:
        content: str
        part_kind: str = "user-prompt"

    @dataclass
    class Request:
        parts: list[Prompt]
        kind: str = field(default="request")

    class Human:
        type = "human"

        def model_dump(self, **_: Any) -> dict[str, Any]:
            return {"content": "hi"}

    for given in (("user", "hi"), ("human", "hi"), Human(), Request([Prompt("hi")])):
        assert foldline.compact([given], target=2_000).messages == [{"role": "user", "content": "hi"}]


def test_what_chat_completions_cannot_carry_is_counted():
    given = [
        {
            "role": "user",
            "content": [
                {"text": "See."},
                {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
                {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/v.mp4"}}}},
            ],
        }
    ]
    done = foldline.convert(given, "openai-chat")
    kinds = [part["type"] for part in done.messages[0]["content"]]
    assert kinds == ["text", "image_url", "text"]
    assert "video left out (1)" in done.warnings


def test_a_message_of_role_and_text_keeps_its_text():
    done = foldline.compact([{"role": "user", "text": "Never moor at quay 3."}], target=2_000)
    assert done.messages == [{"role": "user", "content": "Never moor at quay 3."}]


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({"role": "user", "body": "hi"}, "'body'"),
        ({"role": "user", "blocks": [{"block_type": "text", "text": "hi"}]}, "'blocks'"),
        ({"role": "user", "content": [{"words": "hi"}]}, "'words'"),
        ({"kind": "request", "parts": [{"part_kind": "hologram"}]}, "pydantic-ai"),
        ({"type": "human", "content": [{"hologram": 1}]}, "LangChain"),
    ],
)
def test_what_no_form_has_is_refused_by_name(message, names, tmp_path, capfdbinary):
    with pytest.raises(DialectError, match=names):
        foldline.compact([message], target=2_000)
    path = tmp_path / "list.json"
    path.write_text(json.dumps([message]))
    told = run_command(capfdbinary, "compact", path, "--target", "2000")
    assert told.code == 2
    assert names in told.err


async def test_a_session_refuses_it_too():
    async with foldline.open("memory://", "one") as session:
        with pytest.raises(DialectError, match="'body'"):
            await session.append({"role": "user", "body": "hi"})


@pytest.mark.parametrize(
    ("body", "system"),
    [
        ({"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": GEMINI}, "Be brief."),
        (
            {"system": [{"text": "Be brief."}], "messages": [{"role": "user", "content": [{"text": "hi"}]}]},
            [{"text": "Be brief."}],
        ),
    ],
)
def test_requests_to_gemini_and_bedrock_bring_their_system_prompt(body, system):
    for raw in (json.dumps(body), json.dumps(body, indent=1)):
        assert facts(records(raw.encode()), "system") == [{"system": system}]
