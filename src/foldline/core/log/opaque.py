"""Read blocks that only their dialect understands: mostly tools that the provider runs.

Such a block is sent back as received. Its text can be searched, summarised and read for facts like a call or
a result; it never counts as the user's words. A block that only refers to an item stored by the provider
(OpenAI's Responses API accepts the id of a stored item) may be a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import is_
from typing import Any, Final, cast

import msgspec

from foldline.core.log.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from foldline.core.log.steps import STEP

_TEXT_KEYS: Final = frozenset(
    {
        "text", "content", "title", "name", "url", "uri", "query", "queries", "code", "command", "stdout",
        "stderr", "logs", "input", "output", "arguments", "result", "error", "error_code", "error_message",
        "errorText", "message", "source", "snippet", "filename", "transcript", "server_name", "server_label",
        "revised_prompt",
    }
)  # fmt: skip
"""Keys whose strings are readable text."""
_REQUEST_KEYS: Final = ("input", "rawInput", "arguments", "args", "action", "code", "queries")
"""Keys of the request to a tool."""
_RESULT_KEYS: Final = ("output", "outputs", "results", "result", "error", "errorText")
"""Keys of the tool's result in a block that is both call and result."""
_ID_KEYS: Final = ("tool_use_id", "call_id", "toolCallId", "id")
_FREE_KEYS: Final = frozenset(
    (*_REQUEST_KEYS, *_RESULT_KEYS)
)  # the keys inside are a tool's own: each of them may hold text
_SEALED: Final = re.compile(r"(?i)encrypted|signature|cache_?control|^type$|^citations$")
_BLOB: Final = re.compile(r"(?:data:[^,\s]{1,200},)?[A-Za-z0-9+/=_-]{200,}")
THOUGHTS: Final = ("reasoning", "reasoning_details", "redacted_thinking")
"""Kinds of blocks that are thinking."""
_NOT_TOOLS: Final = ("compaction", "mcp_list_tools", "item_reference", "tools", STEP, *THOUGHTS)
_SERVED: Final = re.compile(r"(?:_tool_use|_tool_result|_call|executableCode|codeExecutionResult)\Z")
_IMAGE_MADE: Final = "image_generation_call"
_MAX_DEPTH: Final = 40  # levels


def is_provider_call(part: Opaque) -> bool:
    """Return whether a block is a call that the provider runs and answers in another block."""
    return part.kind.endswith("_tool_use") or part.kind == "program"


def words(part: Opaque) -> str:
    """Return the readable strings of a block, one per line; "" if there are none."""
    return "" if part.kind in (STEP, *THOUGHTS) else _text_of(part.data)


def served(part: Part) -> str:
    """Return the request or result of a tool that the provider ran, as text; "" for any other part."""
    if not isinstance(part, Opaque) or not _SERVED.search(part.kind):
        return ""
    text = words(part)
    return f"[{part.kind}, run by the provider]\n{text}" if text else ""


def opened(message: Message) -> Message:
    """Return a message with its readable blocks as calls and results; the same object if it has none."""
    parts = tuple(opened_part for part in message.parts for opened_part in _opened(part))
    if len(parts) == len(message.parts) and all(map(is_, parts, message.parts)):
        return message
    return msgspec.structs.replace(message, parts=parts, native=None)


def _opened(part: Part) -> tuple[Part, ...]:
    if isinstance(part, ToolResult):
        content = tuple(_opened_content(content_part) for content_part in part.content)
        same = all(map(is_, content, part.content))
        return (part if same else msgspec.structs.replace(part, content=content),)
    if not isinstance(part, Opaque) or part.kind in _NOT_TOOLS or not isinstance(part.data, dict):
        return (part,)
    data = cast("dict[str, Any]", part.data)
    if part.kind == "audio" and (text := _text_of(data)):
        return (Text(text),)
    if part.kind == _IMAGE_MADE:
        data = {**data, "input": {"prompt": data.get("revised_prompt")}, "result": None}
    call_id = next((value for key in _ID_KEYS if isinstance(value := data.get(key), str)), "")
    request = {key: data[key] for key in _REQUEST_KEYS if data.get(key)}
    if part.kind.endswith("_tool_use"):
        return (ToolCall(call_id, _name(part.kind, data), _arguments(request)),)
    if request and (part.kind.endswith("_call") or data.get("providerExecuted") is True):
        result_text = _text_of({key: data[key] for key in _RESULT_KEYS if data.get(key)})
        content = (Text(result_text),) if result_text else ()
        content = (Media("image"),) if part.kind == _IMAGE_MADE else content
        return (
            ToolCall(call_id, _name(part.kind, data), _arguments(request)),
            ToolResult(call_id, content, is_error=_failed(data), served=True),
        )
    result_text = _text_of(data)
    return (
        (ToolResult(call_id, (Text(result_text),), is_error=_failed(data), served=True),)
        if result_text
        else (part,)
    )


def _opened_content(part: Any) -> Any:
    text = words(part) if isinstance(part, Opaque) else ""
    return Text(text) if text else part


def _name(kind: str, data: dict[str, Any]) -> str:
    name = data.get("name", data.get("toolName"))
    return name if isinstance(name, str) and name else kind.removeprefix("tool-").removesuffix("_call")


def _arguments(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request to a tool as arguments; a single object is unwrapped."""
    first: Any = next(iter(request.values()), None)
    return cast("dict[str, Any]", first) if isinstance(first, dict) and len(request) == 1 else request


def _failed(data: dict[str, Any]) -> bool:
    content = data.get("content")
    inner = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    return bool(
        data.get("is_error") is True
        or data.get("error")
        or data.get("errorText")
        or data.get("status") == "failed"
        or str(inner.get("type")).endswith("_error")
        or inner.get("return_code")
    )


def _text_of(value: Any) -> str:
    texts = (text for text in _strings(value, is_text=False, free=False, depth=_MAX_DEPTH) if text.strip())
    return "\n".join(dict.fromkeys(texts))


def _strings(value: Any, *, is_text: bool, free: bool, depth: int) -> Iterator[str]:
    """Yield the readable strings of a JSON value; `is_text`: its key holds text, `free`: all inside do."""
    if isinstance(value, str):
        if is_text and not _BLOB.fullmatch(value):
            yield value
    elif isinstance(value, dict) and depth:
        fields = cast("dict[str, Any]", value)
        for key, inner in fields.items():
            if not _SEALED.search(key):
                readable = free or key in _TEXT_KEYS or (key == "data" and fields.get("type") == "text")
                yield from _strings(inner, is_text=readable, free=free or key in _FREE_KEYS, depth=depth - 1)
    elif isinstance(value, list) and depth:
        for inner in cast("list[Any]", value):
            yield from _strings(inner, is_text=is_text, free=free, depth=depth - 1)
    elif is_text and isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


# ---- references to stored items: the call of a result may not be in the log

REFERENCE = "item_reference"  # the kind of an Opaque part that names a stored item
# Prefixes of the ids of OpenAI's items; an id with another prefix may be a call's.
_CALL_IDS = ("fc_", "ctc_", "cu_", "lsh_", "sh_", "apc_", "tsc_", "mcpr_")
_OTHER_IDS = ("rs_", "msg_", "ws_", "fs_", "ci_", "ig_", "mcp_", "mcpl_", "cmp_")


def names_call(item_id: str) -> bool | None:
    """Return whether the id of a stored item is that of a call; None if unknown."""
    if item_id.startswith(_CALL_IDS):
        return True
    return False if item_id.startswith(_OTHER_IDS) else None


def stored_calls(message: Message) -> int:
    """Return how many stored calls a message may refer to; each takes one result."""
    if message.role != "assistant":
        return 0
    references = (part for part in message.parts if isinstance(part, Opaque) and part.kind == REFERENCE)
    return sum(names_call(_item_id(part.data)) is not False for part in references)


def _item_id(data: Any) -> str:
    item_id = cast("Mapping[str, Any]", data).get("id") if isinstance(data, Mapping) else None
    return item_id if isinstance(item_id, str) else ""
