"""Whose a single message or reply is, where there is no list to tell by."""

from __future__ import annotations

from typing import Any, cast


def plain(message: Any) -> bool:
    """Whether a message is a role and a text and nothing else, so that every dialect could have written it."""
    body = cast("dict[str, object]", message) if isinstance(message, dict) else {}
    return set(body) == {"role", "content"} and isinstance(body["content"], str)


def reply_dialect(message: Any) -> str | None:
    """Return the dialect of a whole reply as an SDK or an API returns it; None for a message."""

    def has(name: str) -> object:
        return (
            cast("dict[str, object]", message).get(name)
            if isinstance(message, dict)
            else getattr(message, name, None)
        )

    if has("choices") is not None:
        return "openai-chat"
    return "anthropic" if has("type") == "message" and has("usage") is not None else None
