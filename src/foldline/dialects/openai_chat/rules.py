"""The documented rules of a Chat Completions message list, one name each; see docs/dialects.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from foldline.dialects.openai_chat.read import ROLES
from foldline.dialects.openai_chat.write import INSTEAD
from foldline.dialects.payload import Fields, filled
from foldline.dialects.values import Problem

_PARTS = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
    "function": (),
}


class _ChatCheck:
    """One pass over a list; `open` are the calls that still wait for their tool message."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        self.index = -1
        self.open: dict[str, int] = {}
        self.answered: set[str] = set()

    def say(self, rule: str, text: str, index: int | None = None) -> None:
        self.problems.append(Problem(self.index if index is None else index, rule, text))


def check(problems: list[Problem], bodies: Sequence[tuple[int, Fields]]) -> None:
    """Add every rule that messages, each with its index, break."""
    found = _ChatCheck(problems)
    for found.index, body in bodies:
        _message(found, body)
    _close(found)


def _message(check: _ChatCheck, body: Fields) -> None:
    role = body.get("role")
    if not isinstance(role, str) or role not in ROLES:
        check.say("role", f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        return
    if role == "tool":
        _tool(check, body)
    else:
        _close(check)
    _name(check, role, body)
    _content(check, role, body)
    if role == "assistant":
        _calls(check, body)
    elif "tool_calls" in body:
        check.say("calls-role", f"a {role} message cannot have tool_calls")


def _close(check: _ChatCheck) -> None:
    """Report calls whose results did not follow immediately."""
    for call_id, index in check.open.items():
        check.say("result-missing", f"no tool message follows for call {call_id!r}", index)
    check.open = {}
    check.answered = set()


def _tool(check: _ChatCheck, body: Fields) -> None:
    call_id = body.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        check.say("result-id", "a tool message needs a tool_call_id")
    elif call_id in check.answered:
        check.say("result-duplicate", f"call {call_id!r} already has a result")
    elif call_id not in check.open:
        check.say("result-orphan", f"no call {call_id!r} waits for a result here")
    else:
        del check.open[call_id]
        check.answered.add(call_id)


def _name(check: _ChatCheck, role: str, body: Fields) -> None:
    if "name" not in body and role != "function":
        return
    name = body.get("name")
    if not isinstance(name, str) or not name:
        check.say("name", "name must be a non-empty string")


def _content(check: _ChatCheck, role: str, body: Fields) -> None:
    content = body.get("content")
    if content is None:
        may = role == "function" or (role == "assistant" and any(body.get(key) for key in INSTEAD))
        if not may:
            check.say("content-null", f"a {role} message needs content")
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list) or role == "function":
        check.say("content-type", "content must be a string or a list of parts")
        return
    if not content:
        check.say("content-empty", "a list of content parts must not be empty")
    for part in cast("list[Any]", content):
        _part(check, role, part)


def _part(check: _ChatCheck, role: str, part: Any) -> None:
    if not isinstance(part, dict):
        check.say("part-type", "a content part must be an object")
        return
    fields = cast("Fields", part)
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in _PARTS[role]:
        check.say("part-type", f"a {role} message cannot have a content part of type {kind!r}")
        return
    value = fields.get(kind)
    if kind in {"text", "refusal"}:
        if not isinstance(value, str):
            check.say("part-shape", f"the {kind} of a part must be a string")
        elif not value:
            check.say("text-empty", f"a {kind} part must not be empty")
        return
    if not isinstance(value, dict) or not _media_fits(kind, cast("Fields", value)):
        check.say("part-shape", f"the {kind} of a part is not as documented")


def _media_fits(kind: str, value: Fields) -> bool:
    if kind == "image_url":
        return filled(value, "url")
    if kind == "input_audio":
        return filled(value, "data") and value.get("format") in ("wav", "mp3")
    return filled(value, "file_id") or filled(value, "file_data")


def _calls(check: _ChatCheck, body: Fields) -> None:
    legacy = body.get("function_call")
    if legacy is not None:
        _function(check, legacy, "function_call", "arguments")
    if "tool_calls" not in body:
        return
    calls = body["tool_calls"]
    if not isinstance(calls, list):
        check.say("calls-type", "tool_calls must be a list")
        return
    if not calls:
        check.say("calls-empty", "tool_calls must not be an empty list; leave the key out")
    for call in cast("list[Any]", calls):
        _call(check, call)


def _call(check: _ChatCheck, call: Any) -> None:
    if not isinstance(call, dict):
        check.say("call-type", "a tool call must be an object")
        return
    fields = cast("Fields", call)
    kind = fields.get("type")
    if kind not in ("function", "custom"):
        check.say("call-type", f"the type of a tool call is {kind!r}; it must be function or custom")
    else:
        _function(check, fields.get(kind), str(kind), "arguments" if kind == "function" else "input")
    call_id = fields.get("id")
    if not isinstance(call_id, str) or not call_id:
        check.say("call-id", "a tool call needs an id, a non-empty string")
    elif call_id in check.open:
        check.say("call-duplicate", f"two calls of one message have the id {call_id!r}")
    else:
        check.open[call_id] = check.index


def _function(check: _ChatCheck, value: Any, what: str, key: str) -> None:
    if not isinstance(value, dict):
        check.say("call-type", f"{what} must be an object")
        return
    fields = cast("Fields", value)
    if not filled(fields, "name"):
        check.say("call-name", f"{what} needs a name, a non-empty string")
    if not isinstance(fields.get(key), str):
        check.say("call-arguments", f"the {key} of a call must be a string (JSON text)")
