"""Calls of one reply that share an id: both stay, each with its own result, in every dialect and face."""

from __future__ import annotations

import json
from typing import Any

import pytest

import foldline
from foldline.dialects import get


def chat(which: str) -> list[dict[str, Any]]:
    calls = [
        {"id": which, "type": "function", "function": {"name": "tide", "arguments": json.dumps({"quay": n})}}
        for n in (1, 2)
    ]
    results = [{"role": "tool", "tool_call_id": which, "content": text} for text in ("LOW", "HIGH")]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def anthropic(which: str) -> list[dict[str, Any]]:
    calls = [{"type": "tool_use", "id": which, "name": "tide", "input": {"quay": n}} for n in (1, 2)]
    results = [{"type": "tool_result", "tool_use_id": which, "content": text} for text in ("LOW", "HIGH")]
    return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def responses(which: str) -> list[dict[str, Any]]:
    calls = [
        {"type": "function_call", "call_id": which, "name": "tide", "arguments": json.dumps({"quay": n})}
        for n in (1, 2)
    ]
    outputs = [{"type": "function_call_output", "call_id": which, "output": text} for text in ("LOW", "HIGH")]
    return [*calls, *outputs]


def ui(which: str) -> list[dict[str, Any]]:
    parts = [
        {
            "type": "tool-tide",
            "toolCallId": which,
            "state": "output-available",
            "input": {"quay": n},
            "output": o,
        }
        for n, o in ((1, "LOW"), (2, "HIGH"))
    ]
    return [{"id": which, "role": "assistant", "parts": parts}]


WRITERS = {"openai-chat": chat, "anthropic": anthropic, "openai-responses": responses, "ui-message": ui}


def asked(dialect: str) -> dict[str, Any]:
    text = "And the tide?"
    if dialect == "ui-message":
        return {"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]}
    return {"role": "user", "content": text}


def talk(dialect: str) -> list[dict[str, Any]]:
    """Two replies, each with two calls of one id, the same id in both."""
    write = WRITERS[dialect]
    return [asked(dialect), *write("t"), asked(dialect), *write("t"), asked(dialect)]


def check(messages: list[Any], dialect: str) -> None:
    told = json.dumps(messages)
    assert get(dialect).validate(messages) == []
    assert [told.count(word) for word in ("LOW", "HIGH", "Late result")] == [2, 2, 0]
    assert told.index("LOW") < told.index("HIGH")
    assert '"t"' in told
    assert '"t_2"' in told


@pytest.mark.parametrize("dialect", WRITERS)
async def test_both_calls_stay_with_their_results_in_a_list_and_in_a_session(dialect):
    messages = talk(dialect)
    assert get(dialect).validate(messages)
    check(foldline.compact(messages, target=20_000).messages, dialect)
    for at_once in (True, False):
        async with foldline.open("memory://", "ids", window=20_000, dialect=dialect) as session:
            for several in [messages] if at_once else [[one] for one in messages]:
                await session.append(*several)
            check(await session.context(), dialect)
            assert (await session.verify()) == []
