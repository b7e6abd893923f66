"""The fields of native messages that a conversion to another dialect leaves out."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Native
from foldline.dialects.payload import parse
from foldline.dialects.responses.items import CALLS, Item, kind_of
from foldline.dialects.ui_message.losses import lost_of_ui
from foldline.dialects.values import OPENAI_RESPONSES, UI_MESSAGE, Losses

# carried by the role, the parts or the pairing, or a provider's notes about its reply; all else is lost
_CARRIED = frozenset(
    {
        "role", "content", "tool_calls", "tool_call_id", "function_call", "refusal",
        "reasoning_content", "reasoning", "reasoning_details", "audio",
        "id", "type", "model", "usage", "stop_reason", "stop_sequence",
    }
)  # fmt: skip
_ON_BLOCKS = ("cache_control", "citations")
_OF_ITEMS = frozenset(
    {
        "type", "id", "status", "role", "content", "call_id", "name", "arguments", "input", "output",
        "action", "actions", "operation", "summary", "encrypted_content", "approval_request_id", "approve",
        "reason", "tools", "execution", "max_output_length",
    }
)  # fmt: skip
_ON_PARTS = ("annotations", "logprobs", "detail", "prompt_cache_breakpoint")


def lost_fields(native: Native | None, losses: Losses, index: int | None = None) -> None:
    """Count the fields of a native message that no part carries: names, cache marks, an app's own keys."""
    if native is None:
        return
    body = parse(native.raw, index)
    if native.dialect == OPENAI_RESPONSES:
        for item in cast("list[Item]", body if isinstance(body, list) else [body]):
            _lost_of_item(item, losses)
        return
    if not isinstance(body, dict):
        return
    fields = cast("dict[str, Any]", body)
    if native.dialect == UI_MESSAGE:
        lost_of_ui(fields, losses)
        return
    content = fields.get("content")
    for key, value in fields.items():
        named = key == "name" and fields.get("role") == "user" and _has_text(content)  # it stands before it
        if key not in _CARRIED and value is not None and not named:
            losses.add(f"field {key!r} left out")
    for block in cast("list[Any]", content) if isinstance(content, list) else ():
        for key in _ON_BLOCKS:
            if isinstance(block, dict) and cast("dict[str, Any]", block).get(key):
                losses.add(f"field {key!r} left out")


def _has_text(content: Any) -> bool:
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    return isinstance(content, str) or any(isinstance(one, dict) and "text" in one for one in blocks)


def _lost_of_item(item: Any, losses: Losses) -> None:
    """Count what no part of a Responses item carries; an item that is one opaque part is named by it."""
    kind = kind_of(cast("Item", item)) if isinstance(item, dict) else None
    if kind in CALLS and kind != "function_call":
        losses.add(f"{kind} became a function call")
    if kind != "message" and kind not in CALLS and not str(kind).endswith(("_output", "_response")):
        return
    fields = cast("Item", item)
    for key, value in fields.items():
        if key not in _OF_ITEMS and value is not None:
            losses.add(f"field {key!r} left out")
    for holder in (fields.get("content"), fields.get("output")):
        for part in cast("list[Any]", holder) if isinstance(holder, list) else ():
            for key in _ON_PARTS:
                if isinstance(part, dict) and cast("Item", part).get(key) not in (None, [], "auto"):
                    losses.add(f"field {key!r} left out")
