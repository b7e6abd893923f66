"""Tool parts of UI messages: a call and its result in one part, in the current form and in AI SDK 4's."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Text, ToolCall, ToolResult
from foldline.dialects.media import from_mcp
from foldline.dialects.payload import fields_of, items_of, json_text, string

Native = dict[str, Any]

DYNAMIC = "dynamic-tool"
PREFIX = "tool-"
OPEN = ("input-available", "approval-requested", "approval-responded")
ANSWERED = ("output-available", "output-error", "output-denied")
STREAMING = "input-streaming"  # the SDK never sends such a call to a model
DENIED = "Tool execution denied."  # what the SDK tells the model if no reason was given

_V4_STATES = ("call", "result")
_OF_RESULTS = ("output", "errorText", "preliminary", "resultProviderMetadata")


def is_tool_type(kind: str) -> bool:
    """Return whether a type is that of a tool part."""
    return kind == DYNAMIC or kind.startswith(PREFIX)


def is_tool(native: Native) -> bool:
    """Return whether a part is a tool part in the current form."""
    kind = native.get("type")
    return isinstance(kind, str) and is_tool_type(kind) and not sdk4_call(native)


def sdk4_call(native: Native) -> Native | None:
    """Return a call in AI SDK 4's form: inside a tool-invocation part, or an element of `toolInvocations`."""
    inner = native.get("toolInvocation") if native.get("type") == "tool-invocation" else None
    if isinstance(inner, dict):
        return cast("Native", inner)
    return native if "type" not in native and "toolCallId" in native and "args" in native else None


def read_tool(native: Native, index: int | None = None) -> list[ToolCall | ToolResult] | None:
    """Read a tool part: its call, and its result if it has one.

    None for a part that stays as it is: a call still streaming in (no model ever sees it), one that the
    provider ran itself, or one in an unknown state. Raises DialectError if an id or a name is not text.
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
    given = native.get("input")
    if given is None and state == "output-error":
        given = native.get("rawInput")
    call = ToolCall(call_id, name, arguments_of(given))
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
    return ToolResult(
        call_id, (Text(reason if isinstance(reason, str) and reason else DENIED),), is_error=True
    )


def arguments_of(value: Any) -> dict[str, Any] | str:
    """Return the arguments of a call: an object or text; other JSON values as their text."""
    if value is None:
        return {}
    return cast("dict[str, Any] | str", value) if isinstance(value, dict | str) else json_text(value)


def _content(output: Any) -> tuple[tuple[Text | Media | Opaque, ...], bool]:
    """Return a tool's output as content, and whether it marks itself as an error.

    Lists of content blocks, as MCP tools return them, become texts and media; other values become JSON text.
    """
    if output is None or output == "":
        return (), False
    if isinstance(output, str):
        return (Text(output),), False
    if isinstance(output, dict):
        fields = cast("Native", output)
        blocks = fields.get("value") if fields.get("type") == "content" else fields.get("content")
        read = [_block(block) for block in items_of(blocks)]
        known = tuple(block for block in read if block is not None)
        if known and len(known) == len(read) and fields.get("structuredContent") is None:
            return known, fields.get("isError") is True
    return (Text(json_text(output)),), False


def _block(block: Any) -> Text | Media | None:
    fields = fields_of(block)
    text = fields.get("text")
    return Text(text) if fields.get("type") == "text" and isinstance(text, str) else from_mcp(fields)


def tool_part(call: ToolCall) -> Native:
    """Make a new part for a call without a result."""
    return {
        "type": PREFIX + call.name,
        "toolCallId": call.id,
        "state": "input-available",
        "input": call.arguments,
    }


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
    """Return a tool part with its answer: an output (any JSON value), or the text of an error."""
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
        new = {**{key: value for key, value in old.items() if key != "result"}, "state": "call"}
        return new if old is native else {**native, "toolInvocation": new}
    return {**{k: v for k, v in native.items() if k not in _OF_RESULTS}, "state": "input-available"}
