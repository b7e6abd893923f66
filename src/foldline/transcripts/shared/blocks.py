"""Write what other agents recorded as `anthropic` content blocks, and make records of them."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline import dialects
from foldline.errors import DialectError
from foldline.transcripts.records import MessageRecord, WarningRecord, not_a_message
from foldline.transcripts.shared.values import text_or


def text(words: str) -> dict[str, Any] | None:
    """Write text; None for blank text, which no API accepts."""
    return {"type": "text", "text": words} if words.strip() else None


def image(mime: str, data: str) -> dict[str, Any]:
    """Write an image given as base64."""
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def thought(words: str, signature: str) -> dict[str, Any] | None:
    """Write a thought; without a signature, which the API requires, it becomes text."""
    if signature:
        return {"type": "thinking", "thinking": words, "signature": signature}
    return text(words)


def call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Write a tool call; raises DialectError if the arguments are not an object."""
    if not isinstance(arguments, dict):
        raise DialectError("the arguments of a call are not an object")
    return {"type": "tool_use", "id": text_or(call_id), "name": text_or(name), "input": arguments}


def result(call_id: Any, words: Any, *, failed: bool) -> dict[str, Any]:
    """Write a tool result; raises DialectError if it is not text."""
    if not isinstance(words, str):
        raise DialectError("a tool result is not text")
    written: dict[str, Any] = {"type": "tool_result", "tool_use_id": text_or(call_id), "content": words}
    return {**written, "is_error": True} if failed else written


def heard(
    payload: dict[str, Any], line: int, *, at: float | None = None, key: str | None = None, **known: Any
) -> MessageRecord | WarningRecord:
    """Decode a payload with what the file knows about it (`known`: usage, model, stop, injected).

    A payload that is not a message becomes a warning with its line.
    """
    try:
        message = dialects.get("anthropic").decode(payload)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, line)
    return MessageRecord(msgspec.structs.replace(message, **known), at=at, key=key, line=line)
