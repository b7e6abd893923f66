"""The documented rules of an Anthropic message list, one name each; see docs/dialects.md.

Here what is Anthropic's own beside the rules of turns (`blocks.py`); each block is checked by its form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.dialects.anthropic.form import FORMS, Block
from foldline.dialects.anthropic.write import BLOCKS
from foldline.dialects.blocks import BlockTurn, check_turns
from foldline.dialects.forms import look_at
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.values import Problem, Say


def check(problems: list[Problem], bodies: Sequence[tuple[int, Block]], last: int) -> None:
    """Add every rule that messages, each with its index, break; `last` is that of the end of the list."""
    for turn in check_turns(problems, bodies, last, BLOCKS):
        if turn.role == "assistant":
            _check_server_results(problems, turn)


def _check_server_results(problems: list[Problem], turn: BlockTurn) -> None:
    """Check that results of server tools stand in the assistant's own turn, after their call."""
    calls: set[str] = set()
    for index, block in turn.blocks:
        kind = block.get("type")
        if kind in ("server_tool_use", "mcp_tool_use"):
            if isinstance(call_id := block.get("id"), str):
                calls.add(call_id)
        elif isinstance(kind, str) and kind.endswith("_tool_result"):
            call_id = block.get("tool_use_id")
            if not isinstance(call_id, str) or call_id not in calls:
                text = f"{kind} {call_id!r} has no server tool call before it"
                problems.append(Problem(index, "server-result-orphan", text))


def check_system(say: Say, system: Any) -> None:
    """Check a system prompt: absent, text, or a list of non-empty text blocks."""
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        say("system", "system must be a string or a list of text blocks")
        return
    for block in map(fields_of, items_of(system)):
        if block.get("type") != "text":
            say("system", "system may hold only text blocks")
        else:
            look_at(say, "system prompt", FORMS["text"], block)
