"""The words in which the Anthropic API refuses what a rule of the dialect finds.

The texts are those of error reports in public issue trackers (2025 and 2026); where none was found the field
is named in the form of the API's other messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from foldline.dialects.values import Problem

_QUOTED: Final = re.compile(r"'([^']*)'")
_ID: Final = "String should match pattern '^[a-zA-Z0-9_-]+$'"
_NAME: Final = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"

# Rules that name a block of one type and a field of it: (type, field, words).
_FIELDS: Final = {
    "thinking-signature": ("thinking", ".thinking.signature", "Field required"),
    "call-id": ("tool_use", ".tool_use.id", _ID),
    "call-name": ("tool_use", ".tool_use.name", _NAME),
    "call-input": ("tool_use", ".tool_use.input", "Input should be a valid dictionary"),
    "result-id": ("tool_result", ".tool_result.tool_use_id", _ID),
    "error-result-empty": ("tool_result", ".tool_result", "content cannot be empty if `is_error` is true"),
    "error-result-text": (
        "tool_result",
        ".tool_result",
        'all content must be type "text" if `is_error` is true',
    ),
    "image-source": (
        "image",
        ".image.source",
        "Input should be a valid dictionary or object to extract fields from",
    ),
    "document-source": ("document", ".document.source", "Input should be a valid dictionary"),
}
# Rules about a message, said without looking at its blocks.
_PLAIN: Final = {
    "text-surrogate": "The request body is not valid JSON: no low surrogate in string",
    "first-user": 'messages: first message must use the "user" role',
    "trailing-space": "messages: final assistant content cannot end with trailing whitespace",
    "thinking-role": "messages.{n}: `thinking` blocks can only be in `assistant` messages",
    "call-role": "messages.{n}: `tool_use` blocks can only be in `assistant` messages",
    "result-role": "messages.{n}: `tool_result` blocks can only be in `user` messages",
    "content-type": "messages.{n}.content: Input should be a valid list",
    "message": "messages.{n}: Input should be a valid dictionary",
    "thinking-last": "messages.{n}: The final block in an assistant message cannot be `thinking`.",
    "content-empty": "messages.{n}: all messages must have non-empty content except for the optional final "
    "assistant message",
}


def say(problems: Sequence[Problem], messages: Sequence[Any]) -> str | None:
    """Return what the API says of the first problem; None where the API would take the list all the same."""
    for problem in problems:
        if problem.rule == "content-empty" and _final_assistant(problem, messages):
            continue
        return _one(problem, problems, messages)
    return None


def _one(problem: Problem, problems: Sequence[Problem], messages: Sequence[Any]) -> str:
    n, rule = problem.index, problem.rule
    if rule == "list":
        return "messages: at least one message is required"
    if rule == "cache-marks":
        found = problem.text.partition(" ")[0]
        return f"A maximum of 4 blocks with cache_control may be provided. Found {found}."
    if n < 0:
        return _system(problem)
    if rule in _PLAIN:
        return _PLAIN[rule].format(n=n)
    if rule in _FIELDS:
        kind, field, words = _FIELDS[rule]
        return f"messages.{n}.content.{_place(messages[n], kind)}{field}: {words}"
    if rule == "role":
        return _role(messages[n])
    if rule == "text-empty":
        return _empty(messages[n])
    if rule in ("result-missing", "results-first"):
        return _missing(problem, problems, messages)
    return _paired(problem, messages)


def _paired(problem: Problem, messages: Sequence[Any]) -> str:
    n, rule = problem.index, problem.rule
    named = _QUOTED.search(problem.text)
    call_id = named[1] if named else ""
    if rule == "result-orphan":
        place = _place(messages[n], "tool_result", call_id)
        return (
            f"messages.{n}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{call_id}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    if rule == "result-duplicate":
        place = _place(messages[n], "tool_result", call_id, last=True)
        return (
            f"messages.{n}.content.{place}: each tool_use must have a single result. "
            f"Found multiple `tool_result` blocks with id: {call_id}"
        )
    if rule == "call-duplicate":
        place = _place(messages[n], "tool_use", call_id, last=True)
        return f"messages.{n}.content.{place}: `tool_use` ids must be unique"
    if rule == "server-result-orphan":
        kind = problem.text.split(" ", 1)[0]
        place = _place(messages[n], kind, call_id)
        return (
            f"messages.{n}.content.{place}: unexpected `tool_use_id` found in `{kind}` blocks: {call_id}. "
            f"Each `{kind}` block must have a corresponding `server_tool_use` block before it."
        )
    return f"messages.{n}.content: {problem.text}"


def _missing(problem: Problem, problems: Sequence[Problem], messages: Sequence[Any]) -> str:
    """Return the calls without results right after them; results behind other blocks count as missing."""
    if problem.rule == "results-first":
        n = problem.index - 1
        blocks = [block for block in _blocks(messages[n + 1]) if block.get("type") == "tool_result"]
        ids = [str(block.get("tool_use_id")) for block in blocks]
    else:
        n = problem.index
        same = [p for p in problems if p.rule == "result-missing" and p.index == n]
        ids = [found[1] for p in same if (found := _QUOTED.search(p.text))]
    return (
        f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _role(message: Any) -> str:
    role = cast("dict[str, Any]", message).get("role") if isinstance(message, dict) else None
    return (
        f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, '
        'not "system" as an input message role.'
        if role == "system"
        else f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
    )


def _empty(message: Any) -> str:
    texts = [block.get("text") for block in _blocks(message) if block.get("type") == "text"]
    blank = all(texts) and any(isinstance(text, str) and not text.strip() for text in texts)
    what = "contain non-whitespace text" if blank else "be non-empty"
    return f"messages: text content blocks must {what}"


def _system(problem: Problem) -> str:
    if problem.rule == "text-empty":
        return "system: text content blocks must be non-empty"
    return "system: Input should be a valid string or list of text blocks"


def _final_assistant(problem: Problem, messages: Sequence[Any]) -> bool:
    last = messages[-1]
    is_assistant = isinstance(last, dict) and cast("dict[str, Any]", last).get("role") == "assistant"
    return is_assistant and problem.index == len(messages) - 1


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = cast("dict[str, Any]", message).get("content") if isinstance(message, dict) else None
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("dict[str, Any]", block) if isinstance(block, dict) else {} for block in blocks]


def _place(message: Any, kind: str, call_id: str = "", *, last: bool = False) -> int:
    """Return the index of the block of a type (with an id) in a message; 0 if there is none."""
    found = [
        place
        for place, block in enumerate(_blocks(message))
        if block.get("type") == kind and call_id in ("", block.get("tool_use_id"), block.get("id"))
    ]
    return found[-1 if last else 0] if found else 0
