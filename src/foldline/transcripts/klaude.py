"""klaude-code's session files: one `{"type", "data"}` per line, and a sidecar `meta.json`.

The file is append-only: a rewind drops everything after a checkpoint, a retraction one user message.
A first pass finds the remaining history; a compaction gives its first kept item as an index in that history.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from foldline.transcripts import payloads
from foldline.transcripts.lines import Row, count_fact, read_sidecar, scan_rows, stem_of, take_rows, text_or
from foldline.transcripts.payloads import message_record, usage_of
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, ResultImages, WarningRecord
from foldline.transcripts.source import path_of

USAGE = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
# input includes cached tokens read and written, output includes reasoning
STOPS = {"stop": "end", "tool_use": "tools", "length": "length", "aborted": "aborted", "error": "error"}

_ITEM = re.compile(r"[A-Z]\w+(Message|Entry|Item)")
_RESULT = "ToolResultMessage"
_SENT = ("UserMessage", "AssistantMessage", "DeveloperMessage", "SystemMessage", "RewindEntry")
_CHECKPOINT = re.compile(r"<system-reminder>Checkpoint (\d+)</system-reminder>")
_SESSION = ("id", "work_dir", "created_at", "updated_at", "model_config_name", "sub_agent_state")
_FOLD = ("details", "kept_items_brief", "first_kept_index", "first_kept_line")


def is_klaude(value: dict[str, Any]) -> bool:
    """Return whether a JSON line is an item of klaude-code's history."""
    return bool(_ITEM.fullmatch(text_or(value.get("type")))) and isinstance(value.get("data"), dict)


def read_klaude(stream: BinaryIO, _name: str) -> Iterator[Record | ResultImages]:
    """Read a klaude-code session as it is after its rewinds; messages become `openai-chat` payloads.

    A `MessageRecord.key` is the item's 0-based index in that history, as `first_kept_index` counts.
    """
    history = _KlaudeHistory()
    scan_rows(stream, history.add)
    history.finish()
    yield from _meta(stream)
    yield from take_rows(stream, history.records)
    yield from count_fact("branches", {"branches": history.drops, "messages": history.dropped_messages})


def _meta(stream: BinaryIO) -> Iterator[Record]:
    """Yield the facts in the sidecar file."""
    if (path := path_of(stream)) is None:
        return
    export_path = path.with_name(f"{stem_of(path)}.meta.json")  # the name in an export
    meta = read_sidecar(export_path if export_path.exists() else path.with_name("meta.json"))
    if isinstance(meta, WarningRecord):
        yield meta
        return
    if session := meta.only(_SESSION):
        yield FactRecord("session", {**session, "cwd": meta.get("work_dir")})
    yield from meta.facts(title="title", model="model_name")


class _Item(NamedTuple):
    """A line of the history: its number, its kind, the checkpoint it sets, and a hash of a user's text."""

    line: int
    kind: str
    checkpoint: int | None = None
    text: int | None = None


class _KlaudeHistory:
    """The history as klaude-code loads it, with rewinds and retractions applied, and its records."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.drops = 0
        self.dropped_messages = 0
        self._places: dict[int, int] = {}
        self._sent: list[int] = []  # places of the messages that are not results

    # ---- the remaining history

    def add(self, row: Row) -> None:
        if not is_klaude(row):
            return
        kind, data = row["type"], row.inner("data")
        checkpoint = text = None
        if kind == "RewindEntry":
            self._rewind(data.count("checkpoint_id"))
        elif kind == "RetractEntry":
            self._retract(data)
        elif kind == "UserMessage":
            text = hash(_text(data))
        elif kind == "DeveloperMessage" and (found := _CHECKPOINT.search(_text(data))):
            checkpoint = int(found[1])
        self.items.append(_Item(row.line, kind, checkpoint, text))

    def _rewind(self, checkpoint: int | None) -> None:
        """Drop what came after a checkpoint; an unknown one changes nothing."""
        at = next((i for i, item in enumerate(self.items) if item.checkpoint == checkpoint), None)
        if checkpoint is not None and at is not None:
            self._count_drop(self.items[at + 1 :])
            del self.items[at + 1 :]

    def _retract(self, data: Row) -> None:
        """Drop the user's message on the given line; without a line, the last one if it has that text."""
        line, text = data.count("retracted_line"), hash(data.text("retracted_text"))
        users = [item for item in self.items if item.kind == "UserMessage"]
        dropped = [item for item in users if line is not None and item.line == line + 1]
        if line is None:
            dropped = [item for item in users[-1:] if item.text == text]
        self._count_drop(dropped)
        self.items = [item for item in self.items if item not in dropped]

    def _count_drop(self, dropped: Sequence[_Item]) -> None:
        messages = sum(item.kind in (*_SENT, _RESULT) for item in dropped)
        self.drops += bool(messages)
        self.dropped_messages += messages

    def finish(self) -> None:
        """Note the index of each line in the history."""
        self._places = {item.line: place for place, item in enumerate(self.items)}
        self._sent = [place for place, item in enumerate(self.items) if item.kind in _SENT]

    def _first_kept(self, data: Row, end: int) -> str | None:
        """Return the key of the first message before `end` that a compaction kept.

        `first_kept_line` counts the lines of the file from 0, with dropped ones; older versions only have
        `first_kept_index`. A result is skipped, since its call was folded.
        """
        line, place = data.count("first_kept_line"), data.count("first_kept_index")
        if line is not None:
            place = bisect_left(self.items, line + 1, key=lambda item: item.line)
        if place is None:
            return None
        at = bisect_left(self._sent, place)
        return str(self._sent[at]) if at < len(self._sent) and self._sent[at] < end else None

    # ---- its items

    def records(self, row: Row) -> Iterator[Record | ResultImages]:
        """Yield the records of a line, if it was not dropped."""
        if not is_klaude(row):
            text = "not an item of a klaude-code history: type and data are missing (left out)"
            yield WarningRecord(row.line, text)
            return
        if (place := self._places.get(row.line)) is None:
            return
        kind, data, line = row["type"], row.inner("data"), row.line
        fields: dict[str, Any] = {"line": line, "at": data.time("created_at"), "key": str(place)}
        if kind in ("UserMessage", "DeveloperMessage"):
            injected = kind == "DeveloperMessage" or data.get("source") == "bash_mode"
            yield message_record(payloads.user(_text(data), _images(data)), injected=injected, **fields)
        elif kind == "AssistantMessage":
            yield from _reply(data, fields)
        elif kind == _RESULT:
            failed = data.text("status", "success") != "success"
            payload = payloads.answer(data.get("call_id"), data.text("output_text"))
            yield message_record(payload, failed=failed, **fields)
            yield ResultImages(_images(data), fields["at"], line)
        elif kind == "SystemMessage":
            yield message_record({"role": "system", "content": _text(data)}, **fields)
        elif kind == "RewindEntry":
            why, note = data.text("rationale"), data.text("note")
            text = (
                f"The conversation was rewound to this point.\nRationale: {why}\nWhat was found out: {note}"
            )
            yield message_record(payloads.user(text), injected=True, **fields)
        elif kind != "CompactionEntry":
            yield FactRecord(_fact_of(kind), data, line)
        elif isinstance(summary := data.get("summary"), str):
            kept, before = self._first_kept(data, place), data.count("tokens_before")
            yield CompactionRecord(summary, kept, before, at=fields["at"], line=line, data=data.only(_FOLD))
        else:
            yield WarningRecord(line, "a compaction without a summary (left out)")


def _reply(data: Row, fields: dict[str, Any]) -> Iterator[Record]:
    """Yield a reply; its images follow as facts."""
    parts = data.rows("parts")
    calls = [
        payloads.call(part.get("call_id"), part.get("tool_name"), part.text("arguments_json"))
        for part in parts
        if part.get("type") == "tool_call"
    ]
    sealed = [
        payloads.sealed_thought(part["signature"], **part.only(("id", "format")))
        for part in parts
        if part.get("type") == "thinking_signature" and part.get("signature")
    ]
    payload = payloads.reply(_text(data), _text(data, "thinking_text"), calls, sealed)
    if payloads.is_empty(payload):
        yield FactRecord("empty", data.only(("response_id", "stop_reason")), data.line)
        return
    usage = data.inner("usage")
    yield message_record(
        payload,
        usage=usage_of(usage, USAGE, inclusive=True) if usage else None,
        model=usage.text("model_name") or None,
        stop=STOPS.get(data.text("stop_reason")),
        **fields,
    )
    for part in _images(data):
        yield FactRecord("part", part, data.line)


def _text(data: Row, kind: str = "text") -> str:
    """Return the text parts of an item, joined as klaude-code joins them."""
    return "".join(part.text("text") for part in data.rows("parts") if part.get("type") == kind)


def _images(data: Row) -> list[dict[str, Any]]:
    """Return the images of an item; for one in a separate file, a text with its path."""
    images: list[dict[str, Any]] = []
    for part in data.rows("parts"):
        if part.get("type") == "image_url" and part.text("url"):
            images.append(payloads.media("image/", part["url"]))
        elif part.get("type") == "image_file":
            images.append({"type": "text", "text": f"[Image in {part.text('file_path', '?')}]"})
    return images


def _fact_of(kind: str) -> str:
    """Convert a class name to the kind of a fact: CacheHitRateEntry -> cache_hit_rate."""
    stem = re.sub(r"(Entry|Item|Message)$", "", kind)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
