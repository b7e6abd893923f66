"""The plain form of recorded sessions: `{"meta"}` first, then role, text, calls and call_id a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from foldline import dialects
from foldline.transcripts import chat
from foldline.transcripts.base import About, Folded, Heard, Record, Warned
from foldline.transcripts.injected import is_injected
from foldline.transcripts.lines import Row, rows
from foldline.transcripts.messages import decoded
from foldline.transcripts.values import count_or_none, items, mapping, moment, text_or

_ROLES = ("system", "user", "assistant", "tool")


def read_plain(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a plain session; messages become `openai-chat` payloads, `summary` a `Folded`."""
    yield About("format", {"format": "plain", "dialect": "openai-chat"})
    boundary: Row | None = None
    for item in rows(stream):
        if isinstance(item, Warned):
            yield item
            continue
        role = item.value.get("role")
        if boundary is not None and role != "summary":
            yield About("boundary", {"tokens_before": _tokens(boundary)}, boundary.number)
            boundary = None
        if role == "boundary":
            boundary = item
        elif role == "summary":
            yield _folded(item, boundary)
            boundary = None
        else:
            yield _record(item)
            if text_or(model := mapping(item.value.get("meta")).get("model")):
                yield About("model", {"model": model}, item.number)
    if boundary is not None:
        yield About("boundary", {"tokens_before": _tokens(boundary)}, boundary.number)


def _tokens(boundary: Row | None) -> int | None:
    return count_or_none(boundary.value.get("pre_tokens")) if boundary else None


def _folded(row: Row, boundary: Row | None) -> Folded:
    """A summary that an agent continued from, with the size that its boundary line names."""
    at = moment(row.value.get("at"))
    return Folded(text_or(row.value.get("text")), tokens_before=_tokens(boundary), at=at, line=row.number)


def _record(row: Row) -> Record:
    """A message, what the meta line says, or why the line is neither."""
    value = row.value
    role = value.get("role")
    if role is None and isinstance(value.get("meta"), dict):
        return About("session", value["meta"], row.number)
    if role not in _ROLES:
        return Warned(row.number, f"no role that the plain form has: {str(role)[:40]!r} (left out)")
    if not isinstance(value.get("text", ""), str):
        return Warned(row.number, "its text is not a string (left out)")
    heard = decoded(dialects.get("openai-chat"), payload(value), row.number)
    if isinstance(heard, Heard) and heard.message.role == "user" and is_injected(heard.message.text):
        message = msgspec.structs.replace(heard.message, injected=True)
        return msgspec.structs.replace(heard, message=message)
    return heard


def payload(value: dict[str, Any]) -> dict[str, Any]:
    """Write a plain line as an `openai-chat` message."""
    role, text = value.get("role"), text_or(value.get("text"))
    if role == "tool":
        return {"role": "tool", "tool_call_id": text_or(value.get("call_id")), "content": text}
    calls = [
        chat.call(text_or(call.get("id")), text_or(call.get("name")), call.get("args"))
        for call in map(mapping, items(value.get("calls")))
    ]
    if role == "assistant" and calls:
        return {"role": "assistant", "content": text or None, "tool_calls": calls}
    return {"role": role, "content": text}
