"""Calls that OpenAI keeps and a list only refers to: their results stay, and fold with the references."""

from __future__ import annotations

import json
from typing import Any

import pytest

import foldline
from foldline.dialects import get

RESPONSES = "openai-responses"


def turn(k: int) -> list[dict[str, Any]]:
    """A turn as the AI SDK sends it with `store`: two calls by name, their outputs, the answer by name."""
    names = [f"rs_{k}", f"fc_{k}a", f"fc_{k}b"]
    outputs = [{"type": "function_call_output", "call_id": f"c{k}{which}", "output": f"BERTH-{k}{which} " * 30}
               for which in "ab"]  # fmt: skip
    return [
        {"role": "user", "content": f"Which berths are free on day {k}?"},
        *({"type": "item_reference", "id": name} for name in names),
        *outputs,
        {"type": "item_reference", "id": f"msg_{k}"},
    ]


TALK = [item for k in range(8) for item in turn(k)]
ASKED = {"role": "user", "content": "Sum up."}


def pairs(messages: list[Any]) -> None:
    """Check that each reference to a call has its output, and nothing was quoted as late."""
    assert get(RESPONSES).validate(messages) == []
    told = json.dumps(messages)
    assert "Late result" not in told
    assert {i["id"][3:] for i in messages if i.get("id", "").startswith("fc_")} == {
        i["call_id"][1:] for i in messages if i.get("type") == "function_call_output"
    }


@pytest.mark.parametrize("target", [90_000, 1_700, 1_200, 800])
def test_every_output_stays_with_its_reference_whatever_is_folded(target):
    result = foldline.compact([*TALK, ASKED], target=target)
    pairs(result.messages)
    assert result.warnings == ()
    assert target < 90_000 or result.messages == [*TALK, ASKED]


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "bedrock-converse", "ui-message"])
def test_other_dialects_are_told_the_results_in_words(dialect):
    result = foldline.convert([*TALK, ASKED], dialect)
    assert get(dialect).validate(result.messages, result.system) == []
    assert all(f"BERTH-{k}{which}" in json.dumps(result.messages) for k in range(8) for which in "ab")


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "bedrock-converse"])
def test_a_call_beside_them_keeps_its_result_right_behind_it(dialect):
    call = {"type": "function_call", "call_id": "own", "name": "look", "arguments": "{}"}
    asked, *references, first, second, _ = turn(1)
    own = {"type": "function_call_output", "call_id": "own", "output": "quay 7"}
    result = foldline.convert([asked, call, *references, first, own, second, ASKED], dialect)
    assert get(dialect).validate(result.messages, result.system) == []
    assert all(text in json.dumps(result.messages) for text in ("BERTH-1a", "BERTH-1b", "quay 7"))


async def test_a_session_keeps_them_item_by_item_and_through_folds():
    async with foldline.open("memory://", "stored", window=2_000) as session:
        for item in [*TALK, ASKED]:
            if item.get("role") == "user":
                await session.context()
            await session.append(item)
        pairs(await session.context())
        assert (await session.stats()).summaries
