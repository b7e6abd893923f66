"""`anthropic` content blocks from what other agents wrote, and the records that hold them."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline import dialects
from foldline.errors import DialectError
from foldline.transcripts.base import Heard, Warned
from foldline.transcripts.values import text_or


def text(words: str) -> dict[str, Any] | None:
    """Write text; None for a blank one, which no API takes."""
    return {"type": "text", "text": words} if words.strip() else None


def image(mime: str, data: str) -> dict[str, Any]:
    """Write an image given as base64."""
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def thought(words: str, signature: str) -> dict[str, Any] | None:
    """Write a thought; one without a signature, which the API refuses, is text."""
    if signature:
        return {"type": "thinking", "thinking": words, "signature": signature}
    return text(words)


def call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Write a tool call; raises DialectError for arguments that are no object."""
    if not isinstance(arguments, dict):
        raise DialectError("the arguments of a call are no object")
    return {"type": "tool_use", "id": text_or(call_id), "name": text_or(name), "input": arguments}


def result(call_id: Any, words: Any, *, failed: bool) -> dict[str, Any]:
    """Write a tool's result; raises DialectError for one that is no text."""
    if not isinstance(words, str):
        raise DialectError("a tool's result is no text")
    written: dict[str, Any] = {"type": "tool_result", "tool_use_id": text_or(call_id), "content": words}
    return {**written, "is_error": True} if failed else written


def heard(
    payload: dict[str, Any], line: int, *, at: float | None = None, key: str | None = None, **known: Any
) -> Heard | Warned:
    """Decode a payload with what the file knows about it (`known`: usage, model, stop, injected).

    What is no message becomes a warning with its line.
    """
    try:
        message = dialects.get("anthropic").decode(payload)
    except (DialectError, RecursionError) as error:
        return unread(error, line)
    return Heard(msgspec.structs.replace(message, **known), at=at, key=key, line=line)


def unread(error: Exception, line: int) -> Warned:
    """Say why something is no message."""
    reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
    return Warned(line, f"not a message: {reason} (left out)")
