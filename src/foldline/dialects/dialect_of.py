"""Whose a single message or reply is, where there is no list to tell by."""

from __future__ import annotations

from typing import Any, cast

from foldline.dialects.base import recognised
from foldline.dialects.ui_message.plain import adopted
from foldline.dialects.values import UI_MESSAGE


def certain(message: Any) -> str | None:
    """Return the dialect that alone could have written a message; None where several could."""
    return reply_dialect(message) or recognised(message)


def in_form(message: Any, name: str, salt: str) -> Any:
    """Return a message in the form of a dialect: a plain text among UI messages becomes one; `salt` is of its id."""
    return adopted(message, salt) if name == UI_MESSAGE else message


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
    if has("responseMessage") is not None or (has("parts") is not None and _counted(has("metadata"))):
        return "ui-message"
    if has("object") == "response" or (has("output") is not None and has("usage") is not None):
        return "openai-responses"
    return "anthropic" if has("type") == "message" and has("usage") is not None else None


def _counted(metadata: object) -> bool:
    """Whether the metadata of a UI message says what its reply used."""
    return isinstance(metadata, dict) and bool({"usage", "totalUsage"} & metadata.keys())  # pyright: ignore[reportUnknownArgumentType]


def joined(given: Any, recorded: Any) -> Any:
    """Return one system prompt from one that was given and one that stood among the messages."""
    if not given or not recorded:
        return given or recorded
    if isinstance(given, str) and isinstance(recorded, str):
        return f"{given}\n\n{recorded}"
    return [*_blocks(given), *_blocks(recorded)]


def _blocks(system: Any) -> list[Any]:
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)
