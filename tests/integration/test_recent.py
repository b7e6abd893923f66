"""What was said last stays in the view: a fold does not empty it because the next turn starts far ahead."""

from __future__ import annotations

import json

import pytest

import foldline
from foldline.core.log.entries import Compacted
from foldline.core.view_items import MessageItem

LINE = "def handler(request): return respond(request, status=200)\n"


def large_turn(steps: int, lines: int) -> list[dict]:
    """One request, and the many reads and edits that it takes."""
    talk: list[dict] = [{"role": "user", "content": "Port the whole service to the new interface, please."}]
    for step in range(steps):
        path = json.dumps({"path": f"src/service/part_{step}.py"})
        call = {"id": f"c{step}", "type": "function", "function": {"name": "read", "arguments": path}}
        talk.append({"role": "assistant", "content": f"Now part {step}.", "tool_calls": [call]})
        talk.append({"role": "tool", "tool_call_id": f"c{step}", "content": f"# {step}\n" + LINE * lines})
    return [*talk, {"role": "assistant", "content": "Everything is ported and the tests pass."}]


async def folded(talk: list[dict], policy: str, context: int = 200_000) -> tuple[int, int, Compacted]:
    """Return the tokens of what is kept, the messages kept, and the boundary that was made, of a session compacted by hand."""
    window = foldline.Window(context=context, output=8_000)
    async with foldline.open("memory://", "s", policy=policy, window=window) as session:
        for message in talk:
            await session.append(message)
        await session.compact()
        path = [entry async for entry in session.store.path(session.id)]
        boundary = next(entry for entry in path if isinstance(entry, Compacted))
        kept = [item for item in session.view() if isinstance(item, MessageItem)]
        tokens = sum(item.entry.tokens - sum(edit.saved for edit in item.edits) for item in kept)
        return tokens, len(kept), boundary


@pytest.mark.parametrize("policy", ["foldline", "coop", "klaude", "pi"])
async def test_after_one_large_turn_a_new_message_does_not_stand_alone(policy):
    talk = [*large_turn(steps=150, lines=75), {"role": "user", "content": "Thanks. Now write the changelog."}]
    kept, messages, boundary = await folded(talk, policy)
    assert boundary.receipt.tokens_before > 140_000
    assert kept >= 10_000
    assert messages > 12
    if policy in ("foldline", "pi"):
        assert any("a turn was split" in note for note in boundary.receipt.notes)


@pytest.mark.parametrize("policy", ["foldline", "pi"])
async def test_whole_turns_are_kept_where_they_hold_enough(policy):
    talk = [
        message
        for n in range(12)
        for message in (
            {"role": "user", "content": f"Look at part {n}. " + LINE * 100},
            {"role": "assistant", "content": f"Part {n} is fine. " + LINE * 500},
        )
    ]
    talk.append({"role": "user", "content": "And now the rest."})
    kept, messages, boundary = await folded(talk, policy)
    assert 10_000 <= kept <= 20_000
    assert messages == 5
    assert not any("a turn was split" in note for note in boundary.receipt.notes)


async def test_a_result_larger_than_all_that_is_kept_is_shortened_and_not_left_out():
    talk = large_turn(steps=3, lines=20)
    talk[4]["content"] = "the start of it\n" + LINE * 5_000 + "the end of it"
    talk.append({"role": "user", "content": "Thanks. Now write the changelog."})
    kept, _, boundary = await folded(talk, "foldline")
    assert 10_000 <= kept <= 40_000
    assert [edit.kind for edit in boundary.edits] == ["elided"]
