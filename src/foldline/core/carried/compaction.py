"""Compactions that a provider's server made: blocks in a reply that stand for all that came before them.

One with a text (Anthropic's) is an earlier summary. One that is sealed (OpenAI's) can only be sent back. One
without either says that the server's compaction failed, and stands for nothing.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from foldline.core.log.messages import Message, Opaque, Part, Text, ToolCall, ToolResult

TITLE: Final = "[Summary of the earlier conversation]"
KINDS: Final = ("compaction", "compaction_summary", "context_compaction")


def text_of(part: Part) -> str:
    """Return the summary in a server's compaction; "" for any other part, and a sealed or failed one."""
    data = _data(part)
    content = data.get("content")
    return content.strip() if isinstance(content, str) else ""


def is_sealed(part: Part) -> bool:
    """Whether a part is a compaction that only its provider can read."""
    data = _data(part)
    return "content" not in data and bool(data.get("encrypted_content"))


def place_of(message: Message) -> int | None:
    """Return the index of the newest part that stands for what came before; None where there is none."""
    if message.role != "assistant":
        return None
    found = (i for i, part in enumerate(message.parts) if text_of(part) or is_sealed(part))
    return max(found, default=None)


def said_before(message: Message) -> list[int]:
    """Return the parts of a reply that its newest compaction stands for: what was said before it."""
    parts = message.parts[: place_of(message)]
    return [index for index, part in enumerate(parts) if not isinstance(part, ToolCall | ToolResult)]


def sealed_place(message: Message) -> int | None:
    """Return the index of a message's newest sealed compaction, if that is its newest one."""
    place = place_of(message)
    return place if place is not None and is_sealed(message.parts[place]) else None


def _data(part: Part) -> dict[str, Any]:
    if isinstance(part, Opaque) and part.kind in KINDS and isinstance(part.data, dict):
        return cast("dict[str, Any]", part.data)
    return {}


def told(message: Message) -> Message:
    """Return a message with its readable compactions as text, for whoever does not know such blocks."""
    if not any(map(text_of, message.parts)):
        return message
    parts = (Text(f"{TITLE}\n{text}") if (text := text_of(part)) else part for part in message.parts)
    return msgspec.structs.replace(message, parts=tuple(parts))
