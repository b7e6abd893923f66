"""Moldable's conversations: one JSON document with UI messages and the state of the newest compaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from foldline import dialects
from foldline.errors import DialectError
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    WarningRecord,
    not_a_message,
)
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.lines import read_messages_document
from foldline.transcripts.shared.values import count_or_none, items, mapping, moment, text_or

PREFIX = "[Conversation Context - Compacted]\n\nThe following is a summary of the earlier conversation:"
SUFFIX = "---\nThe conversation continues below:"
"""What Moldable writes around a summary."""

_DIALECT = "ui-message"
_SESSION = ("id", "createdAt", "updatedAt", "messageCount")


def read_moldable(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a Moldable conversation; its UI messages stay as they are, `MessageRecord.key` is a 0-based index.

    The display history is complete; the newest compaction is placed by its time, or at the end if messages
    have no times. What Moldable records about it stays with the boundary: version, compacted_at,
    summarized_range and api_start_index.
    """
    conversation = yield from read_messages_document(stream, name)
    yield FactRecord("format", {"format": "moldable", "dialect": _DIALECT})
    yield FactRecord("session", {key: conversation[key] for key in _SESSION if conversation.get(key)}, 1)
    if text_or(conversation.get("title")):
        yield FactRecord("title", {"title": conversation["title"]}, 1)
    yield from _messages(conversation)


def _messages(conversation: dict[str, Any]) -> Iterator[Record]:
    messages = items(conversation["messages"])
    fold = _folded(conversation, len(messages))
    if isinstance(fold, WarningRecord):
        yield fold
        fold = None
    first = int(fold.first_kept) if fold is not None and fold.first_kept is not None else 0
    model = ""
    for place, payload in enumerate(messages):
        record = _heard(payload, place)
        if isinstance(record, MessageRecord):
            if fold is not None and place >= first and _newer(record, fold):
                yield fold
                fold = None
            if record.message.model and record.message.model != model:
                model = record.message.model
                yield FactRecord("model", {"model": model}, record.line)
        yield record
    if fold is not None:
        yield fold


def _newer(heard: MessageRecord, fold: CompactionRecord) -> bool:
    return heard.at is not None and fold.at is not None and heard.at > fold.at


def _folded(conversation: dict[str, Any], count: int) -> CompactionRecord | WarningRecord | None:
    """Read the newest compaction (None: there is none)."""
    state = mapping(conversation.get("compaction"))
    if not state:
        return None
    start = count_or_none(state.get("apiStartIndex"))
    summary = "".join(
        text_or(part.get("text"))
        for part in map(mapping, items(mapping(state.get("summaryMessage")).get("parts")))
        if part.get("type") == "text"
    )
    if not summary or start is None:
        missing = "a summary" if not summary else "apiStartIndex"
        return WarningRecord(1, f"the compaction has no {missing} (left out)")
    span = mapping(state.get("summarizedRange"))
    version = count_or_none(state.get("version"))
    data = {
        "version": version,
        "compacted_at": state.get("compactedAt"),
        "summarized_range": {
            "from_index": span.get("fromIndex"),
            "to_index": span.get("toIndex"),
            "message_count": span.get("messageCount"),
        },
        "api_start_index": start,
        "summary_message": state.get("summaryMessage"),
        "conversation": {key: conversation[key] for key in ("id", "createdAt") if conversation.get(key)},
    }
    kept = str(start) if start < count else None
    at = moment(state.get("compactedAt"))
    return CompactionRecord(unwrap_summary(summary), kept, at=at, line=1, number=version or None, data=data)


def unwrap_summary(summary: str) -> str:
    """Return a summary without the text that Moldable puts around it."""
    return summary.strip().removeprefix(PREFIX).removesuffix(SUFFIX).strip()


def wrap_summary(summary: str) -> str:
    """Return a summary with the text that Moldable puts around it."""
    return f"{PREFIX}\n\n{summary}\n\n{SUFFIX}"


def _heard(payload: Any, place: int) -> MessageRecord | WarningRecord:
    """Read a UI message, with the time and the usage from its metadata."""
    dialect = dialects.get(_DIALECT)
    try:
        message = (
            dialect.decode_reply(payload)
            if mapping(payload).get("role") == "assistant"
            else dialect.decode(payload)
        )
    except (DialectError, RecursionError) as error:
        return not_a_message(error, place + 1)
    if message.role == "user" and is_injected(message.text):
        message = msgspec.structs.replace(message, injected=True)
    metadata = mapping(mapping(payload).get("metadata"))
    at = moment(metadata.get("createdAt", mapping(payload).get("createdAt")))
    return MessageRecord(message, at=at, key=str(place), line=place + 1)
