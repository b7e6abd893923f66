"""Responses items -> parts, each with its place in the item."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import PlacedPart
from foldline.dialects.media import from_responses
from foldline.dialects.payload import arguments_of, fields_of, string
from foldline.dialects.responses.items import (
    CALLS,
    SEALED,
    TEXTS,
    Item,
    answered_id,
    is_call,
    is_output,
    kind_of,
)
from foldline.dialects.values import OPENAI_RESPONSES
from foldline.errors import DialectError

_MEDIA = ("input_image", "input_file")


def slots(item: Item, index: int | None = None) -> list[PlacedPart]:
    """Return the parts of an item in order, each with its place.

    Raises DialectError (with `index`) if a field that is read has the wrong type; unknown items are kept.
    """
    kind = kind_of(item)
    if kind == "message":
        return _content(item.get("content"), index)
    if kind == "reasoning":
        return _reasoning(item, index)
    if is_call(item):
        return [(_call(item, index), (CALLS[str(kind)].arguments, None))]
    if is_output(item):
        return [(_result(item, index), ("output", None))]
    return [(Opaque(OPENAI_RESPONSES, str(kind), item), ("", None))]


def _content(content: Any, index: int | None, key: str = "content") -> list[PlacedPart]:
    if isinstance(content, str):
        return [(Text(content), (key, None))]
    if not isinstance(content, list):
        raise DialectError(f"{key} must be a string or a list of parts", index=index)
    return [(_part(part, index), (key, place)) for place, part in enumerate(cast("list[Any]", content))]


def _part(part: Any, index: int | None) -> Text | Media | Opaque:
    fields = fields_of(part)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise DialectError("a content part must be an object with a type", index=index)
    if kind in TEXTS:
        text = fields.get(TEXTS[kind])
        if not isinstance(text, str):
            raise DialectError(f"the {TEXTS[kind]} of a part of type {kind} must be a string", index=index)
        return Text(text)
    if kind in _MEDIA:
        media = from_responses(fields)
        if media is None:
            raise DialectError(f"an {kind} part needs its data, a URL or a file id", index=index)
        return media
    return Opaque(OPENAI_RESPONSES, kind, fields)


def shown_key(item: Item) -> str:
    """Return the key under which a reasoning item shows its text: in full (`content`) or as a summary."""
    return "content" if item.get("content") else "summary"


def _reasoning(item: Item, index: int | None) -> list[PlacedPart]:
    """Read reasoning: visible text is thinking; what is encrypted or kept by the server is opaque."""
    key = shown_key(item)
    parts = item.get(key)
    if not isinstance(parts, list):
        raise DialectError("reasoning needs a summary, a list of summary_text parts", index=index)
    texts: list[str] = []
    for part in cast("list[Any]", parts):
        text = fields_of(part).get("text")
        if not isinstance(text, str):
            raise DialectError("a part of reasoning must be an object with a text", index=index)
        texts.append(text)
    shown = "\n\n".join(text for text in texts if text)
    found: list[PlacedPart] = [(Thinking(shown), (key, None))] if shown else []
    if item.get(SEALED) or not shown:
        rest = {name: value for name, value in item.items() if name != key or not shown}
        found.append((Opaque(OPENAI_RESPONSES, "reasoning", rest), (SEALED, None)))
    return found


def _call(item: Item, index: int | None) -> ToolCall:
    kind = str(kind_of(item))
    form = CALLS[kind]
    call_id = string(item, form.id, f"a {kind}", index)
    name = form.tool or string(item, "name", f"a {kind}", index)
    if kind == "custom_tool_call":
        return ToolCall(call_id, name, string(item, form.arguments, f"a {kind}", index))
    if kind == "computer_call":
        return ToolCall(call_id, name, {key: item[key] for key in ("action", "actions") if key in item})
    value = item.get(form.arguments)
    if form.tool is None and value is not None and not isinstance(value, str):
        raise DialectError(f"the arguments of a {kind} must be JSON text", index=index)
    if form.tool is not None and not isinstance(value, dict):
        value = {} if value is None else {form.arguments: value}
    return ToolCall(call_id, name, arguments_of(value))


def _result(item: Item, index: int | None) -> ToolResult:
    kind = str(kind_of(item))
    call_id = answered_id(item)
    if not isinstance(call_id, str):
        raise DialectError(f"a {kind} needs the id of its call", index=index)
    output = item.get("output")
    if kind == "mcp_approval_response":
        reason = item.get("reason")
        said = "approved" if item.get("approve") is True else "denied"
        return ToolResult(
            call_id, (Text(f"{said}: {reason}" if isinstance(reason, str) and reason else said),)
        )
    if kind == "tool_search_output":
        return ToolResult(call_id, (Opaque(OPENAI_RESPONSES, "tools", item.get("tools")),))
    if kind == "computer_call_output":
        return ToolResult(call_id, (_screenshot(output, index),))
    if kind == "shell_call_output":
        return ToolResult(call_id, tuple(_ran(chunk, index) for chunk in _list(output, kind, index)))
    failed = kind == "apply_patch_call_output" and item.get("status") == "failed"
    if output is None and kind == "apply_patch_call_output":
        return ToolResult(call_id, is_error=failed)
    parts = _content(output, index, "output")
    return ToolResult(
        call_id, tuple(cast("Text | Media", part) for part, _ in parts if part != Text("")), failed
    )


def _screenshot(output: Any, index: int | None) -> Media:
    media = (
        from_responses({**cast("Item", output), "type": "input_image"}) if isinstance(output, dict) else None
    )
    if media is None:
        raise DialectError("a computer_call_output needs a screenshot with image_url or file_id", index=index)
    return media


def _ran(chunk: Any, index: int | None) -> Text:
    """Return what one command wrote, and how it ended if it failed."""
    fields = fields_of(chunk)
    texts = [fields.get("stdout"), fields.get("stderr")]
    if any(not isinstance(text, str) for text in texts):
        raise DialectError("each output of a shell call needs stdout and stderr, both strings", index=index)
    ended = fields_of(fields.get("outcome"))
    code = ended.get("exit_code")
    note = f"[exit code {code}]" if code else "[timed out]" if ended.get("type") == "timeout" else ""
    return Text("\n".join(text for text in (*cast("list[str]", texts), note) if text))


def _list(value: Any, kind: str, index: int | None) -> list[Any]:
    if not isinstance(value, list):
        raise DialectError(f"the output of a {kind} must be a list", index=index)
    return cast("list[Any]", value)
