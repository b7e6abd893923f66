"""Moldable's conversations: one JSON document with UI messages and the state of the newest compaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.dialects import UI_MESSAGE
from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts.lines import Row, read_messages_document
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord

PREFIX = "[Conversation Context - Compacted]\n\nThe following is a summary of the earlier conversation:"
SUFFIX = "---\nThe conversation continues below:"
"""The text that Moldable puts around a summary."""

RANGE = {"from_index": "fromIndex", "to_index": "toIndex", "message_count": "messageCount"}
"""The fields of a summarised range: our names, and Moldable's."""

_SESSION = ("id", "createdAt", "updatedAt", "messageCount")


def read_moldable(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a Moldable conversation; its UI messages stay as they are, `MessageRecord.key` is a 0-based index.

    The display history is complete; the newest compaction is placed by its time, or at the end if messages
    have no times. Moldable's data about it stay with the boundary: version, compacted_at, summarized_range
    and api_start_index.
    """
    conversation = yield from read_messages_document(stream, name)
    yield FactRecord("session", conversation.only(_SESSION), 1)
    yield from conversation.facts(title="title")
    messages = items_of(conversation["messages"])
    fold = _compaction(conversation, len(messages))
    if isinstance(fold, WarningRecord):
        yield fold
        fold = None
    first = int(fold.first_kept) if fold is not None and fold.first_kept is not None else 0
    for place, payload in enumerate(messages):
        record = _record(payload, place)
        if fold is not None and place >= first and _is_newer(record, fold):
            yield fold
            fold = None
        yield record
    if fold is not None:
        yield fold


def _is_newer(record: MessageRecord | WarningRecord, fold: CompactionRecord) -> bool:
    at = record.at if isinstance(record, MessageRecord) else None
    return at is not None and fold.at is not None and at > fold.at


def _compaction(conversation: Row, count: int) -> CompactionRecord | WarningRecord | None:
    """Read the newest compaction (None: there is none)."""
    state = conversation.inner("compaction")
    if not state:
        return None
    start, version, span = (
        state.count("apiStartIndex"),
        state.count("version"),
        state.inner("summarizedRange"),
    )
    parts = state.inner("summaryMessage").rows("parts")
    summary = "".join(part.text("text") for part in parts if part.get("type") == "text")
    if not summary or start is None:
        missing = "a summary" if not summary else "apiStartIndex"
        return WarningRecord(1, f"the compaction has no {missing} (left out)")
    data = {
        "version": version,
        "compacted_at": state.get("compactedAt"),
        "summarized_range": {ours: span.get(theirs) for ours, theirs in RANGE.items()},
        "api_start_index": start,
        "summary_message": state.get("summaryMessage"),
        "conversation": conversation.only(("id", "createdAt")),
    }
    kept, at = str(start) if start < count else None, state.time("compactedAt")
    return CompactionRecord(unwrap_summary(summary), kept, at=at, line=1, number=version or None, data=data)


def unwrap_summary(summary: str) -> str:
    """Remove the text that Moldable puts around a summary."""
    return summary.strip().removeprefix(PREFIX).removesuffix(SUFFIX).strip()


def wrap_summary(summary: str) -> str:
    """Put Moldable's text around a summary."""
    return f"{PREFIX}\n\n{summary}\n\n{SUFFIX}"


def _record(payload: Any, place: int) -> MessageRecord | WarningRecord:
    """Read a UI message, with the time and the usage from its metadata."""
    body = Row(fields_of(payload))
    at = (body.inner("metadata") if "createdAt" in body.inner("metadata") else body).time("createdAt")
    is_reply = body.get("role") == "assistant"
    return message_record(payload, place + 1, dialect=UI_MESSAGE, at=at, key=str(place), is_reply=is_reply)
