"""The documented rules of an Anthropic message list, one name each; see docs/dialects.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from foldline.dialects.anthropic.block_rules import check_block, check_system
from foldline.dialects.cache_marks import MARKS, marks
from foldline.dialects.payload import is_list, read
from foldline.dialects.values import Problem, Say, check_text, reporter
from foldline.errors import DialectError

_THINKING = ("thinking", "redacted_thinking")


class _Turn(NamedTuple):
    """Consecutive messages of one role, which the API combines: blocks with the index of their message."""

    role: str
    blocks: list[tuple[int, dict[str, Any]]]

    def of(self, kind: str) -> list[tuple[int, dict[str, Any]]]:
        return [(index, block) for index, block in self.blocks if block.get("type") == kind]

    def ids(self, kind: str, key: str) -> frozenset[str]:
        return frozenset(value for _, block in self.of(kind) if isinstance(value := block.get(key), str))


def validate(messages: Sequence[Any], system: Any = None) -> list[Problem]:
    """Return every rule that a message list (and its system prompt) breaks; empty if it may be sent.

    Reads dicts, JSON bytes and SDK objects; never raises.
    """
    problems: list[Problem] = []
    check_system(reporter(problems, -1), system)
    check_text(reporter(problems, -1), system)
    if not is_list(messages) or not messages:
        problems.append(Problem(-1, "list", "messages must be a list with at least one message"))
        return problems
    turns: list[_Turn] = []
    for index, payload in enumerate(messages):
        say = reporter(problems, index)
        try:
            body, _ = read(payload, index)
        except DialectError as error:
            say("message", str(error))
            continue
        check_text(say, body)
        role = body.get("role")
        if role not in ("user", "assistant"):
            say("role", f"role is {role!r}; it must be user or assistant")
            continue
        if not turns and role != "user":
            say("first-user", "the first message must have role user")
        if not turns or turns[-1].role != role:
            turns.append(_Turn(cast("str", role), []))
        turns[-1].blocks.extend((index, block) for block in _blocks(say, body, index == len(messages) - 1))
    _check_turns(problems, turns)
    if (given := marks(messages, system)) > MARKS:
        problems.append(Problem(-1, "cache-marks", f"{given} blocks have cache_control; {MARKS} may"))
    return sorted(problems, key=lambda problem: problem.index)


def _blocks(say: Say, body: dict[str, Any], last: bool) -> list[dict[str, Any]]:
    """Check the blocks of one message one by one and return them; a string counts as one text block."""
    content = body.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        say("content-type", "content must be a string or a list of blocks")
        return []
    if not content:
        say("content-empty", "a message must say something")
    role = str(body["role"])
    blocks: list[dict[str, Any]] = []
    for value in cast("list[Any]", content):
        if not isinstance(value, dict):
            say("block-type", "a content block must be an object")
            continue
        blocks.append(cast("dict[str, Any]", value))
        check_block(say, role, blocks[-1])
    if last and role == "assistant" and blocks:
        text = blocks[-1].get("text")
        if isinstance(text, str) and text != text.rstrip():
            say("trailing-space", "the last assistant message must not end in whitespace")
    return blocks


def _check_turns(problems: list[Problem], turns: list[_Turn]) -> None:
    seen: set[str] = set()
    for number, turn in enumerate(turns):
        if turn.role == "user":
            before = turns[number - 1] if number else None
            _check_results(problems, turn, before)
            continue
        if turn.blocks and turn.blocks[-1][1].get("type") in _THINKING:
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
