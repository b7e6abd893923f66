"""The fields of UI messages that a conversion leaves out."""

from __future__ import annotations

from typing import Any, cast

from foldline.dialects.ui_message.tools import is_tool
from foldline.dialects.values import ANTHROPIC, Losses

_CARRIED = frozenset(
    {
        "id", "role", "parts", "content", "reasoning", "toolInvocations", "experimental_attachments",
    }
)  # fmt: skip
_ON_PARTS = (
    "providerMetadata",
    "callProviderMetadata",
    "resultProviderMetadata",
    "approval",
    "title",
    "toolMetadata",
)
_SIGNED = {"signature", "redactedData"}


def lost_of_ui(body: dict[str, Any], losses: Losses) -> None:
    """Count the fields of a UI message and of its parts that no part carries; sources and data are parts."""
    for key, value in body.items():
        if key not in _CARRIED and value is not None:
            losses.add(f"field {key!r} left out")
    natives = body.get("parts")
    for native in cast("list[Any]", natives) if isinstance(natives, list) else ():
        if isinstance(native, dict):
            _lost_of_part(cast("dict[str, Any]", native), losses)


def _lost_of_part(native: dict[str, Any], losses: Losses) -> None:
    if native.get("type") not in ("text", "reasoning", "file") and not is_tool(native):
        return  # an opaque part; it is counted as one
    for key in _ON_PARTS:
        if native.get(key) and not (native.get("type") == "reasoning" and _is_signature(native[key])):
            losses.add(f"field {key!r} left out")


def _is_signature(metadata: Any) -> bool:
    """Return whether provider metadata holds only what thinking carries: Anthropic's signature."""
    fields = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    own = fields.get(ANTHROPIC)
    return (
        set(fields) == {ANTHROPIC} and isinstance(own, dict) and set(cast("dict[str, Any]", own)) <= _SIGNED
    )
