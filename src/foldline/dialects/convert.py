"""What a message of another dialect holds beside its parts, and a conversion leaves out."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Native
from foldline.dialects.plain import parse
from foldline.dialects.ui_losses import lost_of_ui
from foldline.dialects.values import UI_MESSAGE, Losses

# carried by role, parts and pairing, or what a provider noted about its reply; all else is left out
_CARRIED = frozenset(
    {
        "role", "content", "tool_calls", "tool_call_id", "function_call", "refusal",
        "reasoning_content", "reasoning", "reasoning_details", "audio",
        "id", "type", "model", "usage", "stop_reason", "stop_sequence",
    }
)  # fmt: skip
_ON_BLOCKS = ("cache_control", "citations")


def lost_fields(native: Native | None, losses: Losses, index: int | None = None) -> None:
    """Count the fields of a native message that no part stands for: names, cache marks, an app's own keys."""
    if native is None:
        return
    body = parse(native.raw, index)
    if not isinstance(body, dict):
        return
    fields = cast("dict[str, Any]", body)
    if native.dialect == UI_MESSAGE:
        lost_of_ui(fields, losses)
        return
    for key, value in fields.items():
        if key not in _CARRIED and value is not None:
            losses.add(f"field {key!r} left out")
    content = fields.get("content")
    for block in cast("list[Any]", content) if isinstance(content, list) else ():
        for key in _ON_BLOCKS:
            if isinstance(block, dict) and cast("dict[str, Any]", block).get(key):
                losses.add(f"field {key!r} left out")
