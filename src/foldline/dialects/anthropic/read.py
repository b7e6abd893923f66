"""Anthropic messages -> parts, one for each content block."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.media import from_anthropic
from foldline.dialects.payload import Fields, role_in, string
from foldline.dialects.values import ANTHROPIC
from foldline.errors import DialectError

# system and developer: the API has no such message, it moves to the system prompt when it is sent
ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}


def role_of(body: Fields, index: int | None = None) -> Role:
    """Return the role of a message; raises DialectError for one that the Messages API lacks."""
    remedy = "; a tool message belongs to openai-chat" if body.get("role") == "tool" else ""
    return role_in(ROLES, body, index, remedy)


def parts_of(content: Any, index: int | None = None) -> list[Part]:
    """Read a message's content: a string is one text, a list gives one part for each block.

    Raises DialectError (with `index`) if a field that is read has the wrong type; unknown blocks are kept.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise DialectError("content must be a string or a list of blocks", index=index)
    return [_part(block, index) for block in cast("list[Any]", content)]


def _part(block: Any, index: int | None) -> Part:
    if not isinstance(block, dict):
        raise DialectError("a content block must be an object with a type", index=index)
    fields = cast("Fields", block)
    kind = fields.get("type")
    if kind == "text":
        return Text(string(fields, "text", "text block", index))
    if kind == "tool_use":
        return _call(fields, index)
    if kind == "tool_result":
        return _result(fields, index)
    if kind == "thinking":
        return _thinking(fields, index)
    if not isinstance(kind, str):
        raise DialectError("the type of a content block must be a string", index=index)
    if kind in {"image", "document"} and (media := from_anthropic(fields)):
        return media
    return Opaque(ANTHROPIC, kind, fields)


def _thinking(fields: Fields, index: int | None) -> Thinking:
    signature = fields.get("signature")
    if signature is not None and not isinstance(signature, str):
        raise DialectError("thinking block: signature must be a string", index=index)
    return Thinking(string(fields, "thinking", "thinking block", index), signature or None)


def _call(fields: Fields, index: int | None) -> ToolCall:
    call_id = string(fields, "id", "tool_use block", index)
    name = string(fields, "name", "tool_use block", index)
    arguments = fields.get("input", {})
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict | str):
        raise DialectError(f"tool_use {call_id!r}: input must be an object", index=index)
    return ToolCall(call_id, name, cast("Fields | str", arguments))


def _result(fields: Fields, index: int | None) -> ToolResult:
    call_id = string(fields, "tool_use_id", "tool_result block", index)
    content = fields.get("content")
    is_error = fields.get("is_error") is True
    if content is None or content == "":
        return ToolResult(call_id, (), is_error)
    if isinstance(content, str):
        return ToolResult(call_id, (Text(content),), is_error)
    if not isinstance(content, list):
        raise DialectError(f"tool_result {call_id!r}: content must be a string or blocks", index=index)
    return ToolResult(call_id, tuple(_inner(block, index) for block in cast("list[Any]", content)), is_error)


def _inner(block: Any, index: int | None) -> Text | Media | Opaque:
    part = _part(block, index)
    if isinstance(part, Text | Media | Opaque):
        return part
    return Opaque(ANTHROPIC, str(block.get("type")), block)
