"""Tool parts of UI messages: a call and its result in one part, in the form of AI SDK 5 or 4."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Text, ToolCall, ToolResult
from foldline.dialects.media import from_mcp
from foldline.dialects.payload import fields_of, items_of, json_text, string, without

Native = dict[str, Any]

DYNAMIC = "dynamic-tool"
PREFIX = "tool-"
OPEN = ("input-available", "approval-requested", "approval-responded")
ANSWERED = ("output-available", "output-error", "output-denied")
STREAMING = "input-streaming"  # such calls are never sent to a model
DENIED = "Tool execution denied."  # sent to the model if there is no reason

_V4_STATES = ("call", "result")
_RESULT_KEYS = ("output", "errorText", "preliminary", "resultProviderMetadata")


def is_tool_type(kind: str) -> bool:
    """Return whether this is the type of a tool part."""
    return kind == DYNAMIC or kind.startswith(PREFIX)


def is_tool(native: Native) -> bool:
    """Return whether a part is a tool part of AI SDK 5."""
    kind = native.get("type")
    return isinstance(kind, str) and is_tool_type(kind) and not sdk4_call(native)


def sdk4_call(native: Native) -> Native | None:
    """Return a call of AI SDK 4: inside a tool-invocation part, or an element of `toolInvocations`."""
    inner = native.get("toolInvocation") if native.get("type") == "tool-invocation" else None
    if isinstance(inner, dict):
        return cast("Native", inner)
    return native if "type" not in native and "toolCallId" in native and "args" in native else None


def read_tool(native: Native, index: int | None = None) -> list[ToolCall | ToolResult] | None:
    """Read a tool part: its call, and its result if it has one.

    None for a part that stays opaque: a call that is still streaming (never sent to a model), one run by the
    provider, or one in an unknown state. Raises DialectError if an id or name is not a string.
    """
    old = sdk4_call(native)
    if old is not None:
        return _read_v4(old, index)
    state = native.get("state")
    if state not in (*OPEN, *ANSWERED) or native.get("providerExecuted") is True:
        return None
    call_id = string(native, "toolCallId", "tool part", index)
    kind = str(native.get("type"))
    name = string(native, "toolName", "tool part", index) if kind == DYNAMIC else kind[len(PREFIX) :]
    arguments = native.get("input")
    if arguments is None and state == "output-error":
        arguments = native.get("rawInput")
    call = ToolCall(call_id, name, arguments_of(arguments))
    return [call] if state in OPEN else [call, _result(call_id, native)]


def _read_v4(native: Native, index: int | None) -> list[ToolCall | ToolResult] | None:
    state = native.get("state")
    if state not in _V4_STATES:
        return None
    call_id = string(native, "toolCallId", "tool part", index)
    call = ToolCall(call_id, string(native, "toolName", "tool part", index), arguments_of(native.get("args")))
    if state == "call":
        return [call]
    return [call, ToolResult(call_id, *_content(native.get("result")))]


def _result(call_id: str, native: Native) -> ToolResult:
    state = native["state"]
    if state == "output-available":
        return ToolResult(call_id, *_content(native.get("output")))
    if state == "output-error":
        return ToolResult(call_id, _content(native.get("errorText"))[0], is_error=True)
    reason = fields_of(native.get("approval")).get("reason")
    text = reason if isinstance(reason, str) and reason else DENIED
    return ToolResult(call_id, (Text(text),), is_error=True)


def arguments_of(value: Any) -> dict[str, Any] | str:
    """Return the arguments of a call: an object or text; other JSON values as text."""
    if value is None:
        return {}
    return cast("dict[str, Any] | str", value) if isinstance(value, dict | str) else json_text(value)


def _content(output: Any) -> tuple[tuple[Text | Media | Opaque, ...], bool]:
    """Return the content of a tool's output, and whether it is marked as an error.

    Content blocks, as returned by MCP tools, become texts and media; other values become JSON text.
    """
    if output is None or output == "":
        return (), False
    if isinstance(output, str):
        return (Text(output),), False
    if isinstance(output, dict):
        fields = cast("Native", output)
        blocks = fields.get("value") if fields.get("type") == "content" else fields.get("content")
        parts = [_block(block) for block in items_of(blocks)]
        known = tuple(part for part in parts if part is not None)
        if known and len(known) == len(parts) and fields.get("structuredContent") is None:
            return known, fields.get("isError") is True
    return (Text(json_text(output)),), False


def _block(block: Any) -> Text | Media | None:
    fields = fields_of(block)
    text = fields.get("text")
    return Text(text) if fields.get("type") == "text" and isinstance(text, str) else from_mcp(fields)


def tool_part(call: ToolCall) -> Native:
    """Return a new part for a call without a result."""
    fields = {"toolCallId": call.id, "state": "input-available", "input": call.arguments}
    return {"type": PREFIX + call.name, **fields}


def with_call(native: Native, call: ToolCall) -> Native:
    """Return a tool part with another id, name or arguments."""
    old = sdk4_call(native)
    if old is not None:
        new = {**old, "toolCallId": call.id, "toolName": call.name, "args": call.arguments}
        return new if old is native else {**native, "toolInvocation": new}
    new = {**native, "toolCallId": call.id}
    new["rawInput" if native.get("input") is None and "rawInput" in native else "input"] = call.arguments
    if native["type"] == DYNAMIC:
        new["toolName"] = call.name
    else:
        new["type"] = PREFIX + call.name
    return new


def with_result(native: Native, output: Any, *, is_error: bool) -> Native:
    """Return a tool part with its result: an output (any JSON value), or the text of an error."""
    old = sdk4_call(native)
    if old is not None:
        new = {**old, "state": "result", "result": output}
        return new if old is native else {**native, "toolInvocation": new}
    new = without_result(native)
    if fields_of(native.get("approval")).get("approved") is not True:
        new.pop("approval", None)
    if is_error:
        return {**new, "state": "output-error", "errorText": output if isinstance(output, str) else ""}
    return {**new, "state": "output-available", "output": output}


def without_result(native: Native) -> Native:
    """Return a tool part without its result."""
    old = sdk4_call(native)
    if old is not None:
        new = {**without(old, "result"), "state": "call"}
        return new if old is native else {**native, "toolInvocation": new}
    return {**without(native, *_RESULT_KEYS), "state": "input-available"}
