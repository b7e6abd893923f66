"""klaude-code's history items as `openai-chat` payloads, with what it recorded about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foldline.core.log.messages import Usage
from foldline.transcripts.records import FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.shared import chat
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.values import count_or_none, items, mapping, moment, text_or

_STOPS = {"stop": "end", "tool_use": "tools", "length": "length", "aborted": "aborted", "error": "error"}


def parts(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of an item."""
    return [mapping(part) for part in items(data.get("parts"))]


def text_of(data: dict[str, Any], kind: str = "text") -> str:
    """Return the text parts of an item, joined as klaude-code joins them."""
    return "".join(text_or(part.get("text")) for part in parts(data) if part.get("type") == kind)


def user(
    data: dict[str, Any], line: int, key: str, *, injected: bool = False
) -> MessageRecord | WarningRecord:
    """Read a user message, or one that klaude-code wrote in the user's name."""
    text, shown = text_of(data), pictures(data)
    listed = [*([{"type": "text", "text": text}] if text else []), *shown]
    injected = injected or data.get("source") == "bash_mode" or is_injected(text)
    payload = {"role": "user", "content": listed if shown else text}
    return chat.heard(payload, line, at=moment(data.get("created_at")), key=key, injected=injected)


def note(text: str, data: dict[str, Any], line: int, key: str) -> MessageRecord | WarningRecord:
    """Make the message by which klaude-code tells the model about an event."""
    return chat.heard(
        {"role": "user", "content": text}, line, at=moment(data.get("created_at")), key=key, injected=True
    )


def system(data: dict[str, Any], line: int, key: str) -> MessageRecord | WarningRecord:
    """Read a system message."""
    payload = {"role": "system", "content": text_of(data)}
    return chat.heard(payload, line, at=moment(data.get("created_at")), key=key)


def reply(data: dict[str, Any], line: int, key: str) -> Iterator[Record]:
    """Read what the model said, thought and called; images that it made follow as facts."""
    calls = [
        chat.call(
            text_or(part.get("call_id")), text_or(part.get("tool_name")), text_or(part.get("arguments_json"))
        )
        for part in parts(data)
        if part.get("type") == "tool_call"
    ]
    sealed = [
        chat.sealed_thought(part.get("signature"), **{k: part[k] for k in ("id", "format") if part.get(k)})
        for part in parts(data)
        if part.get("type") == "thinking_signature" and part.get("signature")
    ]
    payload = chat.reply(text_of(data), text_of(data, "thinking_text"), calls, sealed)
    if chat.is_empty(payload):
        yield FactRecord("empty", {k: data[k] for k in ("response_id", "stop_reason") if data.get(k)}, line)
        return
    counted = mapping(data.get("usage"))
    yield chat.heard(
        payload,
        line,
        at=moment(data.get("created_at")),
        key=key,
        usage=usage(counted),
        model=text_or(counted.get("model_name")) or None,
        stop=_STOPS.get(text_or(data.get("stop_reason"))),
    )
    for part in pictures(data):
        yield FactRecord("part", part, line)


def result(data: dict[str, Any], line: int, key: str) -> MessageRecord | WarningRecord:
    """Read a tool result."""
    return chat.heard(
        chat.answer(text_or(data.get("call_id")), text_or(data.get("output_text"))),
        line,
        at=moment(data.get("created_at")),
        key=key,
        failed=text_or(data.get("status"), "success") != "success",
    )


def pictures(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the images of an item; one that klaude-code stored in a separate file is named, not loaded."""
    found: list[dict[str, Any]] = []
    for part in parts(data):
        if part.get("type") == "image_url" and text_or(part.get("url")):
            found.append(chat.media("image/", part["url"]))
        elif part.get("type") == "image_file":
            found.append({"type": "text", "text": f"[Image in {text_or(part.get('file_path'), '?')}]"})
    return found


def usage(counted: dict[str, Any]) -> Usage | None:
    """Read a usage; `input_tokens` include cached tokens read and written, `output_tokens` reasoning."""
    if not counted:
        return None
    keys = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
    given, read, written, output = (count_or_none(counted.get(key)) or 0 for key in keys)
    return Usage(max(given - read - written, 0), read, written, output)
