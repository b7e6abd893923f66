"""The documented rules of an Anthropic message list, one name each; see docs/dialects.md.

A list is checked in turns, then each block by itself, by the form of its type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from foldline.dialects.media import IMAGE_TYPES, PDF, PLAIN
from foldline.dialects.payload import fields_of, filled
from foldline.dialects.values import Problem, Say, reporter

Block = dict[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_USER = ("text", "image", "document", "search_result", "tool_result", "container_upload")
_ASSISTANT = (
    "text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use",
    "container_upload", "compaction",
)  # fmt: skip
_IN_RESULT = ("text", "image", "document", "search_result", "tool_reference")
_THINKING = ("thinking", "redacted_thinking")


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
        say = reporter(problems, index)
        role = body.get("role")
        if role not in ("user", "assistant"):
            say("role", f"role is {role!r}; it must be user or assistant")
            continue
        if not turns and role != "user":
            say("first-user", "the first message must have role user")
        if not turns or turns[-1].role != role:
            turns.append(_Turn(cast("str", role), []))
        turns[-1].blocks.extend((index, block) for block in _blocks(say, body, index == last))
    _check_turns(problems, turns)


def _blocks(say: Say, body: Block, last: bool) -> list[Block]:
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
    blocks: list[Block] = []
    for value in cast("list[Any]", content):
        if not isinstance(value, dict):
            say("block-type", "a content block must be an object")
            continue
        blocks.append(cast("Block", value))
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


# ---- one block


def check_block(say: Say, role: str, block: Block) -> None:
    """Check one block of a message of `role` by itself; `say(rule, text)` takes what is wrong."""
    kind = block.get("type")
    server_result = isinstance(kind, str) and kind.endswith("_tool_result")
    allowed = kind in _USER if role == "user" else kind in _ASSISTANT or server_result
    if not allowed:
        if kind in ("thinking", "redacted_thinking"):
            say("thinking-role", f"{kind} belongs in an assistant message")
        elif kind == "tool_use":
            say("call-role", "tool_use belongs in an assistant message")
        elif kind == "tool_result":
            say("result-role", "tool_result belongs in a user message")
        else:
            say("block-type", f"a {role} message cannot have a block of type {kind!r}")
        return
    check = _CHECKS.get(str(kind))
    if check is not None:
        check(say, block)


def check_system(say: Say, system: Any) -> None:
    """Check a system prompt: absent, text, or a list of non-empty text blocks."""
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        say("system", "system must be a string or a list of text blocks")
        return
    for block in cast("list[Any]", system):
        if not isinstance(block, dict) or cast("Block", block).get("type") != "text":
            say("system", "system may hold only text blocks")
        else:
            _text(say, cast("Block", block))


def _text(say: Say, block: Block) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        say("block-shape", "the text of a text block must be a string")
    elif not text.strip():
        say("text-empty", "a text block must hold more than whitespace")


def _thinking(say: Say, block: Block) -> None:
    if not isinstance(block.get("thinking"), str):
        say("block-shape", "the thinking of a thinking block must be a string")
    signature = block.get("signature")
    if not isinstance(signature, str) or not signature:
        say("thinking-signature", "a thinking block needs its signature")


def _redacted(say: Say, block: Block) -> None:
    data = block.get("data")
    if not isinstance(data, str) or not data:
        say("block-shape", "a redacted_thinking block needs its data")


def _call(say: Say, block: Block) -> None:
    call_id, name = block.get("id"), block.get("name")
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        say("call-id", f"tool_use id {call_id!r} must match ^[a-zA-Z0-9_-]+$")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        say("call-name", f"tool_use name {name!r} must match ^[a-zA-Z0-9_-]{{1,128}}$")
    if not isinstance(block.get("input"), dict):
        say("call-input", "the input of a tool_use must be an object")


def _result(say: Say, block: Block) -> None:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        say("result-id", f"tool_use_id {call_id!r} must match ^[a-zA-Z0-9_-]+$")
    is_error = block.get("is_error")
    if is_error is not None and not isinstance(is_error, bool):
        say("block-shape", "is_error must be true or false")
    content = block.get("content")
    if content is not None and not isinstance(content, str | list):
        say("content-type", "the content of a tool_result must be a string or a list of blocks")
        return
    if not content and is_error is True:
        say("error-result-empty", "a tool_result with is_error must say something")
    if isinstance(content, list):
        for inner in cast("list[Any]", content):
            _inner(say, inner, is_error is True)


def _inner(say: Say, value: Any, in_error: bool) -> None:
    block = fields_of(value)
    kind = block.get("type")
    if kind not in _IN_RESULT:
        say("block-type", f"a tool_result cannot hold a block of type {kind!r}")
        return
    if in_error and kind != "text":
        say("error-result-text", "a tool_result with is_error may hold only text")
    check = _CHECKS.get(str(kind))
    if check is not None:
        check(say, block)


def _image(say: Say, block: Block) -> None:
    source = fields_of(block.get("source"))
    form = source.get("type")
    if form == "base64":
        if source.get("media_type") not in IMAGE_TYPES or not filled(source, "data"):
            say("image-source", f"an image needs data and a media_type of {', '.join(IMAGE_TYPES)}")
    elif not _linked(source):
        say("image-source", f"an image source of type {form!r} is not as documented")


def _document(say: Say, block: Block) -> None:
    source = fields_of(block.get("source"))
    form, mime = source.get("type"), source.get("media_type")
    fits = (
        (form == "base64" and mime == PDF and filled(source, "data"))
        or (form == "text" and mime == PLAIN and filled(source, "data"))
        or (form == "content" and isinstance(source.get("content"), str | list))
        or _linked(source)
    )
    if not fits:
        say("document-source", f"a document source of type {form!r} is not as documented")


def _linked(source: Block) -> bool:
    form = source.get("type")
    return (form == "url" and filled(source, "url")) or (form == "file" and filled(source, "file_id"))


_CHECKS: dict[str, Callable[[Say, Block], None]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _call,
    "tool_result": _result,
    "image": _image,
    "document": _document,
}
