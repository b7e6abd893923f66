"""Chat Completions messages -> parts with their places in the native message."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import PlacedPart
from foldline.dialects.media import from_openai
from foldline.dialects.openai_chat.form import MEDIA, ROLES, TEXTS
from foldline.dialects.payload import Fields, arguments_of, role_in, string
from foldline.dialects.values import OPENAI_CHAT
from foldline.errors import DialectError

REASONING = ("reasoning_content", "reasoning")


def role_of(body: Fields, index: int | None = None) -> Role:
    """Return the role of a message; raises DialectError (with `index`) for an unknown role."""
    return role_in(ROLES, body, index)


def slots(body: Fields, index: int | None = None) -> list[PlacedPart]:
    """Return the parts of a message in order, each with its place; unknown parts are opaque.

    Raises DialectError (with `index`) for a field of the wrong type.
    """
    role = role_of(body, index)
    if role == "tool":
        return [(_result(body, index), ("content", None))]
    if role != "assistant":
        return _content(body, index)
    return [
        *_reasoning(body),
        *_content(body, index),
        *_extras(body),
        *_calls(body, index),
    ]


def _reasoning(body: Fields) -> list[PlacedPart]:
    placed: list[PlacedPart] = []
    for key in REASONING:
        text = body.get(key)
        # some servers send the same text under both keys: read it once
        if isinstance(text, str) and text and all(part != Thinking(text) for part, _ in placed):
            placed.append((Thinking(text), (key, None)))
    details = body.get("reasoning_details")
    if isinstance(details, list) and details:
        placed.append((Opaque(OPENAI_CHAT, "reasoning_details", details), ("reasoning_details", None)))
    return placed


def _extras(body: Fields) -> list[PlacedPart]:
    placed: list[PlacedPart] = []
    refusal = body.get("refusal")
    if isinstance(refusal, str) and refusal:
        placed.append((Text(refusal), ("refusal", None)))
    if isinstance(body.get("audio"), dict):
        placed.append((Opaque(OPENAI_CHAT, "audio", body["audio"]), ("audio", None)))
    return placed


def _content(body: Fields, index: int | None) -> list[PlacedPart]:
    content = body.get("content")
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [(Text(content), ("content", None))]
    if not isinstance(content, list):
        raise DialectError("content must be a string, a list of parts or null", index=index)
    parts = cast("list[Any]", content)
    return [(_part(part, index), ("content", place)) for place, part in enumerate(parts)]


def _part(part: Any, index: int | None) -> Part:
    if not isinstance(part, dict):
        raise DialectError("a content part must be an object with a type", index=index)
    fields = cast("Fields", part)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise DialectError("the type of a content part must be a string", index=index)
    if kind in TEXTS:
        text = fields.get(kind)
        if not isinstance(text, str):
            raise DialectError(f"the {kind} of a content part must be a string", index=index)
        return Text(text)
    if kind in MEDIA:
        media = from_openai(fields)
        if media is None:
            raise DialectError(f"the {kind} of a {kind} part is invalid", index=index)
        return media
    return Opaque(OPENAI_CHAT, kind, fields)


def _result(body: Fields, index: int | None) -> ToolResult:
    legacy = body.get("role") == "function"
    key = "name" if legacy else "tool_call_id"
    call_id = body.get(key)
    if not isinstance(call_id, str):
        raise DialectError(f"a {body.get('role')} message needs a {key}", index=index)
    content = tuple(
        part if isinstance(part, Text | Media | Opaque) else Opaque(OPENAI_CHAT, "part", part)
        for part, _ in _content(body, index)
    )
    return ToolResult(call_id, content)


def _calls(body: Fields, index: int | None) -> list[PlacedPart]:
    placed: list[PlacedPart] = []
    if isinstance(legacy := body.get("function_call"), dict):
        fields = cast("Fields", legacy)
        name = string(fields, "name", "function_call", index)
        # the deprecated form has no ids: the result names the function
        placed.append((ToolCall(name, name, _arguments(fields, index)), ("function_call", None)))
    calls = body.get("tool_calls")
    if calls is None:
        return placed
    if not isinstance(calls, list):
        raise DialectError("tool_calls must be a list", index=index)
    for place, call in enumerate(cast("list[Any]", calls)):
        placed.append((_call(call, index), ("tool_calls", place)))
    return placed


def _call(call: Any, index: int | None) -> ToolCall:
    if not isinstance(call, dict):
        raise DialectError("a tool call must be an object", index=index)
    fields = cast("Fields", call)
    call_id = string(fields, "id", "tool call", index)
    custom = fields.get("type") == "custom"
    inner = fields.get("custom" if custom else "function")
    if not isinstance(inner, dict):
        raise DialectError(f"tool call {call_id!r} has no function", index=index)
    function = cast("Fields", inner)
    name = string(function, "name", f"tool call {call_id!r}", index)
    if custom:
        return ToolCall(call_id, name, string(function, "input", f"tool call {call_id!r}", index))
    return ToolCall(call_id, name, _arguments(function, index))


def _arguments(function: Fields, index: int | None) -> Fields | str:
    value = function.get("arguments")
    if value is not None and not isinstance(value, str | dict):
        raise DialectError("the arguments of a tool call must be JSON text", index=index)
    return arguments_of(value)
