"""Write what other agents recorded as `openai-chat` payloads, and make records of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from foldline import dialects
from foldline.core.log.codec import encode
from foldline.core.log.messages import Message, ToolResult
from foldline.errors import DialectError
from foldline.transcripts.records import MessageRecord, WarningRecord, not_a_message

_IMAGE = "image/"


def call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
    """Write a tool call; arguments other than text become JSON text."""
    written = arguments if isinstance(arguments, str) else encode(arguments or {}).decode()
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": written}}


def sealed_thought(data: Any, **known: Any) -> dict[str, Any]:
    """Write encrypted reasoning in the form of OpenRouter's `reasoning_details`."""
    return {"type": "reasoning.encrypted", "data": data, **known}


def reply(
    text: str,
    thinking: str,
    calls: Sequence[dict[str, Any]],
    details: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Write what a model said, thought and called; `details` are its encrypted thoughts.

    Next to readable thoughts they are only a signature, which costs no tokens; alone they are the thoughts.
    Equal ones are kept once: some agents repeat them with every paragraph.
    """
    payload: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thinking:
        payload["reasoning_content"] = thinking
    if details:
        known = {encode(one["data"]): one for one in reversed(details)}
        payload["reasoning_opaque" if thinking else "reasoning_details"] = list(known.values())[::-1]
    if calls:
        payload["tool_calls"] = list(calls)
    elif not text:
        payload["content"] = ""  # null is allowed only with calls
    return payload


def is_empty(payload: dict[str, Any]) -> bool:
    """Return whether a reply has neither text nor thoughts nor calls."""
    return not payload["content"] and payload.keys() == {"role", "content"}


def answer(call_id: str, text: str) -> dict[str, Any]:
    """Write a tool result; Chat Completions has no mark for a failed one."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def media(mime: str, url: str, name: str = "") -> dict[str, Any]:
    """Write an image or a file, given as a URL or a data URL."""
    if mime.startswith(_IMAGE):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": name or "file", "file_data": url}}


def heard(
    payload: dict[str, Any],
    line: int,
    *,
    at: float | None = None,
    key: str | None = None,
    parent: str | None = None,
    failed: bool = False,
    **known: Any,
) -> MessageRecord | WarningRecord:
    """Decode a payload with what the file knows about it (`known`: usage, model, stop, injected).

    `failed` marks its results as errors. A payload that is not a message becomes a warning with its line.
    """
    try:
        message = dialects.get("openai-chat").decode(payload)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, line)
    if failed:
        message = mark_failed(message)
    message = msgspec.structs.replace(message, **known)
    return MessageRecord(message, at=at, key=key, parent=parent, line=line)


def mark_failed(message: Message) -> Message:
    """Return a message with all its results marked as errors."""
    parts = [
        msgspec.structs.replace(part, is_error=True) if isinstance(part, ToolResult) else part
        for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))
