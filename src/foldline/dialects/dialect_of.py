"""Find the dialect of a single message or reply, without a list around it."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.codec import in_utf8
from foldline.dialects.base import message_dialect
from foldline.dialects.ui_message.plain_text import to_ui_message
from foldline.dialects.values import UI_MESSAGE


def dialect_of(message: Any) -> str | None:
    """Return the only dialect that could have written a message or reply; None if several could."""
    return reply_dialect(message) or message_dialect(message)


def in_dialect(message: Any, name: str, salt: str) -> Any:
    """Return a message in a dialect's form: plain text becomes a UI message, with an id made from `salt`."""
    return to_ui_message(message, salt) if name == UI_MESSAGE else message


def reply_dialect(message: Any) -> str | None:
    """Return the dialect of a whole reply, as an SDK or an API returns it; None for a message."""

    def has(name: str) -> object:
        return (
            cast("dict[str, object]", message).get(name)
            if isinstance(message, dict)
            else getattr(message, name, None)
        )

    if has("choices") is not None:
        return "openai-chat"
    if has("responseMessage") is not None or (has("parts") is not None and _has_usage(has("metadata"))):
        return "ui-message"
    if has("object") == "response" or (has("output") is not None and has("usage") is not None):
        return "openai-responses"
    return "anthropic" if has("type") == "message" and has("usage") is not None else None


def _has_usage(metadata: object) -> bool:
    """Return whether a UI message's metadata holds the usage of its reply."""
    fields = cast("dict[str, object]", metadata) if isinstance(metadata, dict) else {}
    return bool({"usage", "totalUsage"} & fields.keys())


def join_system(given: Any, recorded: Any) -> Any:
    """Join the system prompt that was given with the one found among the messages, as it may be sent."""
    given, recorded = in_utf8(given), in_utf8(recorded)
    if not given or not recorded:
        return given or recorded
    if isinstance(given, str) and isinstance(recorded, str):
        return f"{given}\n\n{recorded}"
    return [*_blocks(given), *_blocks(recorded)]


def _blocks(system: Any) -> list[Any]:
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)
