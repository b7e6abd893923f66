"""The plain form of recorded sessions: a `{"meta"}` line, then role, text, calls and call_id per line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from foldline import dialects
from foldline.transcripts.forms.bare import payload
from foldline.transcripts.message_lists import decode_line
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.lines import Row, read_rows
from foldline.transcripts.shared.values import count_or_none, mapping, moment, text_or

_ROLES = ("system", "user", "assistant", "tool")


def read_plain(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a plain session; messages become `openai-chat` payloads, `summary` a `CompactionRecord`."""
    yield FactRecord("format", {"format": "plain", "dialect": "openai-chat"})
    boundary: Row | None = None
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            yield item
            continue
        role = item.value.get("role")
        if boundary is not None and role != "summary":
            yield FactRecord("boundary", {"tokens_before": _tokens(boundary)}, boundary.number)
            boundary = None
        if role == "boundary":
            boundary = item
        elif role == "summary":
            yield _folded(item, boundary)
            boundary = None
        else:
            yield _record(item)
            if text_or(model := mapping(item.value.get("meta")).get("model")):
                yield FactRecord("model", {"model": model}, item.number)
    if boundary is not None:
        yield FactRecord("boundary", {"tokens_before": _tokens(boundary)}, boundary.number)


def _tokens(boundary: Row | None) -> int | None:
    return count_or_none(boundary.value.get("pre_tokens")) if boundary else None


def _folded(row: Row, boundary: Row | None) -> CompactionRecord:
    """Read a summary that an agent continued from, with the size that its boundary line names."""
    at = moment(row.value.get("at"))
    return CompactionRecord(
        text_or(row.value.get("text")), tokens_before=_tokens(boundary), at=at, line=row.number
    )


def _record(row: Row) -> Record:
    """Read a line: a message, the meta line's facts, or a warning."""
    value = row.value
    role = value.get("role")
    if role is None and isinstance(value.get("meta"), dict):
        return FactRecord("session", value["meta"], row.number)
    if role not in _ROLES:
        return WarningRecord(row.number, f"the plain form has no role {str(role)[:40]!r} (left out)")
    if not isinstance(value.get("text", ""), str):
        return WarningRecord(row.number, "text is not a string (left out)")
    heard = decode_line(dialects.get("openai-chat"), payload(value), row.number)
    if isinstance(heard, MessageRecord) and heard.message.role == "user" and is_injected(heard.message.text):
        message = msgspec.structs.replace(heard.message, injected=True)
        return msgspec.structs.replace(heard, message=message)
    return heard
