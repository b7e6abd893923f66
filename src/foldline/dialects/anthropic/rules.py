"""The documented rules of an Anthropic message list, one name each; see docs/dialects.md.

Here the order of messages and turns, and what answers what; each block is checked by its form (`form.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from foldline.dialects.anthropic.form import FORMS, THOUGHTS, Block
from foldline.dialects.forms import look_at
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.values import Problem, Say


class _Turn(NamedTuple):
    """Consecutive messages of one role, which the API combines: blocks with the index of their message."""

    role: str
    blocks: list[tuple[int, Block]]

    def of(self, kind: str) -> list[tuple[int, Block]]:
        return [(index, block) for index, block in self.blocks if block.get("type") == kind]

    def ids(self, kind: str, key: str) -> frozenset[str]:
        return frozenset(value for _, block in self.of(kind) if isinstance(value := block.get(key), str))


def check(problems: list[Problem], bodies: Sequence[tuple[int, Block]], last: int) -> None:
    """Add every rule that messages, each with its index, break; `last` is that of the end of the list."""
    turns: list[_Turn] = []
    for index, body in bodies:
        role = body.get("role")
        if role not in ("user", "assistant"):
            continue
        if not turns and role != "user":
            problems.append(Problem(index, "first-user", "the first message must have role user"))
        if not turns or turns[-1].role != role:
            turns.append(_Turn(cast("str", role), []))
        blocks = _blocks(body)
        turns[-1].blocks.extend((index, block) for block in blocks)
        text = blocks[-1].get("text") if index == last and role == "assistant" and blocks else None
        if isinstance(text, str) and text != text.rstrip():
            said = "the last assistant message must not end in whitespace"
            problems.append(Problem(index, "trailing-space", said))
    _check_turns(problems, turns)


def _blocks(body: Block) -> list[Block]:
    """Return the blocks of a message; a string counts as one text block."""
    content = body.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in items_of(content) if isinstance(block, dict)]


def _check_turns(problems: list[Problem], turns: list[_Turn]) -> None:
    seen: set[str] = set()
    for number, turn in enumerate(turns):
        if turn.role == "user":
            before = turns[number - 1] if number else None
            _check_results(problems, turn, before)
            continue
        if turn.blocks and turn.blocks[-1][1].get("type") in THOUGHTS:
            index, block = turn.blocks[-1]
            text = f"an assistant turn must not end in {block['type']}"
            problems.append(Problem(index, "thinking-last", text))
        after = turns[number + 1] if number + 1 < len(turns) else None
        _check_calls(problems, turn, after, seen)
        _check_server_results(problems, turn)


def _check_calls(problems: list[Problem], turn: _Turn, after: _Turn | None, seen: set[str]) -> None:
    answers = after.ids("tool_result", "tool_use_id") if after else frozenset[str]()
    for index, block in turn.of("tool_use"):
        call_id = block.get("id")
        if not isinstance(call_id, str):
            continue
        if call_id in seen:
            problems.append(Problem(index, "call-duplicate", f"tool_use id {call_id!r} is used twice"))
        seen.add(call_id)
        if call_id not in answers:
            text = f"no tool_result for {call_id!r} in the next message"
            problems.append(Problem(index, "result-missing", text))


def _check_results(problems: list[Problem], turn: _Turn, before: _Turn | None) -> None:
    calls = before.ids("tool_use", "id") if before else frozenset[str]()
    answered: set[str] = set()
    other = False
    for index, block in turn.blocks:
        if block.get("type") != "tool_result":
            other = True
            continue
        if other:
            problems.append(Problem(index, "results-first", "tool_result blocks must come before all others"))
        call_id = block.get("tool_use_id")
        if not isinstance(call_id, str):
            continue
        if call_id in answered:
            problems.append(Problem(index, "result-duplicate", f"{call_id!r} already has a result"))
        elif call_id not in calls:
            text = f"no tool_use {call_id!r} in the assistant message before"
            problems.append(Problem(index, "result-orphan", text))
        answered.add(call_id)


def _check_server_results(problems: list[Problem], turn: _Turn) -> None:
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
