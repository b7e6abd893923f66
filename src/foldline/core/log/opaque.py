"""What can be read in blocks that only their dialect understands: tools that the provider runs.

Such a block is sent back as it came. Its text can still be searched, summarised and read for facts, as the
call or the result that it is; it is never the words of the user. Where a block only names an item that its
provider keeps (OpenAI's Responses API takes a stored item by its id alone), it may stand for a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from foldline.core.log.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from foldline.core.log.steps import STEP

_TEXTS: Final = frozenset(
    {
        "text", "content", "title", "name", "url", "uri", "query", "queries", "code", "command", "stdout",
        "stderr", "logs", "input", "output", "arguments", "result", "error", "error_code", "error_message",
        "errorText", "message", "source", "snippet", "filename", "transcript", "server_name", "server_label",
        "revised_prompt",
    }
)  # fmt: skip
"""Keys whose strings are text for a reader."""
_GIVEN: Final = ("input", "rawInput", "arguments", "args", "action", "code", "queries")
"""Keys under which a block holds what its tool was asked: the provider's or the model's names for it."""
_ANSWERED: Final = ("output", "outputs", "results", "result", "error", "errorText")
"""Keys under which a block that is both call and result holds what the tool answered."""
_IDS: Final = ("tool_use_id", "call_id", "toolCallId", "id")
_FREE: Final = frozenset(
    (*_GIVEN, *_ANSWERED)
)  # the keys inside are a tool's own: each of them may hold text
_SEALED: Final = re.compile(r"(?i)encrypted|signature|cache_?control|^type$|^citations$")
_BLOB: Final = re.compile(r"(?:data:[^,\s]{1,200},)?[A-Za-z0-9+/=_-]{200,}")
THOUGHTS: Final = ("reasoning", "reasoning_details", "redacted_thinking")
"""Kinds of blocks that are thinking."""
_NOT_TOOLS: Final = ("compaction", "mcp_list_tools", "item_reference", "tools", STEP, *THOUGHTS)
_SERVED: Final = re.compile(r"(?:_tool_use|_tool_result|_call|executableCode|codeExecutionResult)\Z")
_IMAGE_MADE: Final = "image_generation_call"
_DEPTH: Final = 40  # levels that are looked into


def is_provider_call(part: Opaque) -> bool:
    """Return whether a block is a call that its provider runs and answers in a block of its own."""
    return part.kind.endswith("_tool_use") or part.kind == "program"


def words(part: Opaque) -> str:
    """Return the text in a block, a line for each string of it; "" where it has none that can be read."""
    return "" if part.kind in (STEP, *THOUGHTS) else _joined(part.data)


def served(part: Part) -> str:
    """Return what the provider's own tool was asked or answered, as text; "" for any other part."""
    if not isinstance(part, Opaque) or not _SERVED.search(part.kind):
        return ""
    text = words(part)
    return f"[{part.kind}, run by the provider]\n{text}" if text else ""


def opened(message: Message) -> Message:
    """Return a message with its readable blocks as calls and results; the same object where it has none."""
    parts = tuple(one for part in message.parts for one in _opened(part))
    if len(parts) == len(message.parts) and all(map(_same, parts, message.parts)):
        return message
    return msgspec.structs.replace(message, parts=parts, native=None)


def _same(new: Part, old: Part) -> bool:
    return new is old


def _opened(part: Part) -> tuple[Part, ...]:
    if isinstance(part, ToolResult):
        inner = tuple(_inner(one) for one in part.content)
        same = all(map(_same, inner, part.content))
        return (part if same else msgspec.structs.replace(part, content=inner),)
    if not isinstance(part, Opaque) or part.kind in _NOT_TOOLS or not isinstance(part.data, dict):
        return (part,)
    data = cast("dict[str, Any]", part.data)
    if part.kind == "audio" and (said := _joined(data)):
        return (Text(said),)
    if part.kind == _IMAGE_MADE:
        data = {**data, "input": {"prompt": data.get("revised_prompt")}, "result": None}
    call_id = next((value for key in _IDS if isinstance(value := data.get(key), str)), "")
    asked = {key: data[key] for key in _GIVEN if data.get(key)}
    if part.kind.endswith("_tool_use"):
        return (ToolCall(call_id, _name(part.kind, data), _arguments(asked)),)
    if asked and (part.kind.endswith("_call") or data.get("providerExecuted") is True):
        told = _joined({key: data[key] for key in _ANSWERED if data.get(key)})
        answer = (Media("image"),) if part.kind == _IMAGE_MADE else (Text(told),) if told else ()
        return (
            ToolCall(call_id, _name(part.kind, data), _arguments(asked)),
            ToolResult(call_id, answer, is_error=_failed(data), served=True),
        )
    told = _joined(data)
    return (ToolResult(call_id, (Text(told),), is_error=_failed(data), served=True),) if told else (part,)


def _inner(part: Any) -> Any:
    told = words(part) if isinstance(part, Opaque) else ""
    return Text(told) if told else part


def _name(kind: str, data: dict[str, Any]) -> str:
    name = data.get("name", data.get("toolName"))
    return name if isinstance(name, str) and name else kind.removeprefix("tool-").removesuffix("_call")


def _arguments(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool was asked as arguments: an object that stands alone is them all."""
    first: Any = next(iter(asked.values()), None)
    return cast("dict[str, Any]", first) if isinstance(first, dict) and len(asked) == 1 else asked


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


def _joined(value: Any) -> str:
    found = (text for text in _strings(value, told=False, free=False, depth=_DEPTH) if text.strip())
    return "\n".join(dict.fromkeys(found))


def _strings(value: Any, *, told: bool, free: bool, depth: int) -> Iterator[str]:
    """Yield the strings of a JSON value that are text: `told` says whether its own key may hold text.

    `free` means that every key inside may.
    """
    if isinstance(value, str):
        if told and not _BLOB.fullmatch(value):
            yield value
    elif isinstance(value, dict) and depth:
        fields = cast("dict[str, Any]", value)
        for key, inner in fields.items():
            if not _SEALED.search(key):
                own = free or key in _TEXTS or (key == "data" and fields.get("type") == "text")
                yield from _strings(inner, told=own, free=free or key in _FREE, depth=depth - 1)
    elif isinstance(value, list) and depth:
        for inner in cast("list[Any]", value):
            yield from _strings(inner, told=told, free=free, depth=depth - 1)
    elif told and isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


# ---- references to what a provider keeps: the call of a result may not be in the log

REFERENCE = "item_reference"  # the kind of an Opaque part that names a stored item
# How the ids of OpenAI's items begin, by their kind; an id that begins otherwise may be a call's.
_CALL_IDS = ("fc_", "ctc_", "cu_", "lsh_", "sh_", "apc_", "tsc_", "mcpr_")
_OTHER_IDS = ("rs_", "msg_", "ws_", "fs_", "ci_", "ig_", "mcp_", "mcpl_", "cmp_")


def names_call(item_id: str) -> bool | None:
    """Return whether a stored item's id is that of a call; None where it cannot be told."""
    if item_id.startswith(_CALL_IDS):
        return True
    return False if item_id.startswith(_OTHER_IDS) else None


def stored_calls(message: Message) -> int:
    """Return how many calls a message may stand for that only its provider knows: each takes one result."""
    if message.role != "assistant":
        return 0
    named = (
        _item_id(part.data) for part in message.parts if isinstance(part, Opaque) and part.kind == REFERENCE
    )
    return sum(names_call(item_id) is not False for item_id in named)


def _item_id(data: Any) -> str:
    item_id = cast("Mapping[str, Any]", data).get("id") if isinstance(data, Mapping) else None
    return item_id if isinstance(item_id, str) else ""
