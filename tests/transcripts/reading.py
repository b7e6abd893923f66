"""Write session files for tests, and read them back."""

from __future__ import annotations

import io
import json
from typing import Any

from foldline.dialects import get
from foldline.transcripts import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord, read


def lines(*rows: Any) -> bytes:
    """JSON lines; bytes and strings are not encoded."""
    raw = [
        row if isinstance(row, bytes) else row.encode() if isinstance(row, str) else json.dumps(row).encode()
        for row in rows
    ]
    return b"".join(row + b"\n" for row in raw)


def records(*rows: Any) -> list[Record]:
    """Read a session of these lines; bytes alone are the whole file."""
    raw = rows[0] if len(rows) == 1 and isinstance(rows[0], bytes) else lines(*rows)
    return list(read(io.BytesIO(raw), name="session"))


def messages_in(parsed: list[Record]) -> list[MessageRecord]:
    return [record for record in parsed if isinstance(record, MessageRecord)]


def valid(parsed: list[Record]) -> bool:
    """Whether the messages are a valid list for Chat Completions."""
    payloads = [
        json.loads(record.message.native.raw) for record in messages_in(parsed) if record.message.native
    ]
    return get("openai-chat").validate(payloads) == []


def warnings(parsed: list[Record]) -> list[WarningRecord]:
    return [record for record in parsed if isinstance(record, WarningRecord)]


def folds(parsed: list[Record]) -> list[CompactionRecord]:
    return [record for record in parsed if isinstance(record, CompactionRecord)]


def facts(parsed: list[Record], kind: str) -> list[dict[str, Any]]:
    return [record.data for record in parsed if isinstance(record, FactRecord) and record.kind == kind]


def texts(parsed: list[Record]) -> list[str]:
    """Role and text of each message, with the ids of its calls and results."""
    descriptions: list[str] = []
    for record in messages_in(parsed):
        message = record.message
        pieces = [message.text, *(f"call {call.id}" for call in message.calls)]
        pieces += [f"result {result.call_id}: {result.text}" for result in message.results]
        descriptions.append(f"{message.role}: " + " | ".join(piece for piece in pieces if piece))
    return descriptions


def places(parsed: list[Record]) -> list[str | None]:
    """Keys in order; a compaction as > and its first kept message."""
    order = [record for record in parsed if isinstance(record, MessageRecord | CompactionRecord)]
    return [one.key if isinstance(one, MessageRecord) else f">{one.first_kept}" for one in order]
