"""A tool that answers twice: a first word, and much later the result; a list keeps it as a session does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.integration.test_equal_ids import WRITERS

import foldline
from foldline.dialects import get


def slow(dialect: str, text: str) -> list[dict[str, Any]]:
    """The result that comes at last."""
    return {
        "openai-chat": [{"role": "tool", "tool_call_id": "s", "content": text}],
        "anthropic": [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "s", "content": text}]}
        ],
        "openai-responses": [{"type": "function_call_output", "call_id": "s", "output": text}],
    }[dialect]


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "openai-responses"])
@pytest.mark.parametrize("target", [20_000, 1_200])
async def test_the_last_word_of_a_tool_is_kept_and_the_list_ends_with_it(dialect, target):
    talk: list[dict[str, Any]] = [{"role": "user", "content": "Count the crates."}, *WRITERS[dialect]("s")]
    for number in range(6):
        talk += [
            {"role": "assistant", "content": f"Crate {number}. " + "dry quay " * 100},
            {"role": "user", "content": f"And crate {number}?"},
        ]
    talk += [{"role": "assistant", "content": "Soon."}, *slow(dialect, "4217 crates")]
    done = foldline.compact(talk, target=target)
    assert get(dialect).validate(done.messages) == []
    assert json.dumps(done.messages).count("4217 crates") == 1
    assert done.messages[-1]["role"] == "user"
    async with foldline.open("memory://", "late", window=100_000, dialect=dialect) as session:
        await session.append(*talk)
        assert target < 20_000 or await session.context() == done.messages
