"""klaude-code's session files: one `{"type", "data"}` per line, and a sidecar `meta.json`.

The file is append-only: a rewind drops what came after a checkpoint, a retraction one message of the user's.
A first pass finds the history that is left; a compaction counts its first kept item in that history.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from foldline.transcripts import payloads
from foldline.transcripts.lines import Row, read_sidecar, scan_rows, stem_of, take_rows, text_or
from foldline.transcripts.payloads import message_record, usage_of
from foldline.transcripts.records import CompactionRecord, FactRecord, Pictures, Record, WarningRecord, beside
from foldline.transcripts.source import path_of

USAGE = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens")
"""The names of a usage; input includes cached tokens read and written, output reasoning."""

STOPS = {"stop": "end", "tool_use": "tools", "length": "length", "aborted": "aborted", "error": "error"}

_ITEM = re.compile(r"[A-Z]\w+(Message|Entry|Item)")
_RESULT = "ToolResultMessage"
_OWN = ("UserMessage", "AssistantMessage", "DeveloperMessage", "SystemMessage", "RewindEntry")
_CHECKPOINT = re.compile(r"<system-reminder>Checkpoint (\d+)</system-reminder>")
_SESSION = ("id", "work_dir", "created_at", "updated_at", "model_config_name", "sub_agent_state")
_FOLD = ("details", "kept_items_brief", "first_kept_index", "first_kept_line")


def is_klaude(value: dict[str, Any]) -> bool:
    """Return whether a JSON line is an item of klaude-code's history."""
    return bool(_ITEM.fullmatch(text_or(value.get("type")))) and isinstance(value.get("data"), dict)


def read_klaude(stream: BinaryIO, _name: str) -> Iterator[Record | Pictures]:
    """Read a klaude-code session as it is after its rewinds; messages become `openai-chat` payloads.

    A `MessageRecord.key` is the item's 0-based index in that history, as `first_kept_index` counts.
    """
    history = _KlaudeHistory()
    scan_rows(stream, history.add)
    history.finish()
    yield from _meta(stream)
    yield from take_rows(stream, history.records)
    yield from beside("branches", {"branches": history.left, "messages": history.left_messages})


def _meta(stream: BinaryIO) -> Iterator[Record]:
    """Yield what the sidecar file says about the session."""
    if (path := path_of(stream)) is None:
        return
    own = path.with_name(f"{stem_of(path)}.meta.json")  # as an export names it where it is not `events`
    meta = read_sidecar(own if own.exists() else path.with_name("meta.json"))
    if isinstance(meta, WarningRecord):
        yield meta
        return
    if told := meta.only(_SESSION):
        yield FactRecord("session", {**told, "cwd": meta.get("work_dir")})
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
        self.left = 0
        self.left_messages = 0
        self._places: dict[int, int] = {}
        self._own: list[int] = []  # places of the messages that are not results

    # ---- what is left

    def add(self, row: Row) -> None:
        """Take a line."""
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
        at = next((i for i, one in enumerate(self.items) if one.checkpoint == checkpoint), None)
        if checkpoint is not None and at is not None:
            self._leave(self.items[at + 1 :])
            del self.items[at + 1 :]

    def _retract(self, data: Row) -> None:
        """Drop the user's message of the line named; without a line the last one, if it has that text."""
        line, text = data.count("retracted_line"), hash(data.text("retracted_text"))
        users = [one for one in self.items if one.kind == "UserMessage"]
        gone = [one for one in users if line is not None and one.line == line + 1]
        if line is None:
            gone = [one for one in users[-1:] if one.text == text]
        self._leave(gone)
        self.items = [one for one in self.items if one not in gone]

    def _leave(self, gone: Sequence[_Item]) -> None:
        messages = sum(one.kind in (*_OWN, _RESULT) for one in gone)
        self.left += bool(messages)
        self.left_messages += messages

    def finish(self) -> None:
        """Note the index of each line in the history."""
        self._places = {one.line: place for place, one in enumerate(self.items)}
        self._own = [place for place, one in enumerate(self.items) if one.kind in _OWN]

    def _first_kept(self, data: Row, end: int) -> str | None:
        """Return the key of the first message before `end` that a compaction kept.

        `first_kept_line` counts the lines of the file from 0, whatever was rewound or retracted since; it
        wins over `first_kept_index`, which older versions wrote alone. A result is passed over: its call is
        folded.
        """
        line, place = data.count("first_kept_line"), data.count("first_kept_index")
        if line is not None:
            place = bisect_left(self.items, line + 1, key=lambda one: one.line)
        if place is None:
            return None
        at = bisect_left(self._own, place)
        return str(self._own[at]) if at < len(self._own) and self._own[at] < end else None

    # ---- its items

    def records(self, row: Row) -> Iterator[Record | Pictures]:
        """Yield the records of a line, if it is left."""
        if not is_klaude(row):
            text = "not an item of a klaude-code history: type and data are missing (left out)"
            yield WarningRecord(row.line, text)
            return
        if (place := self._places.get(row.line)) is None:
            return
        kind, data, line = row["type"], row.inner("data"), row.line
        known: dict[str, Any] = {"line": line, "at": data.time("created_at"), "key": str(place)}
        if kind in ("UserMessage", "DeveloperMessage"):
            injected = kind == "DeveloperMessage" or data.get("source") == "bash_mode"
            yield message_record(payloads.user(_text(data), _pictures(data)), injected=injected, **known)
        elif kind == "AssistantMessage":
            yield from _reply(data, known)
        elif kind == _RESULT:
            failed = data.text("status", "success") != "success"
            payload = payloads.answer(data.get("call_id"), data.text("output_text"))
            yield message_record(payload, failed=failed, **known)
            yield Pictures(_pictures(data), known["at"], line)
        elif kind == "SystemMessage":
            yield message_record({"role": "system", "content": _text(data)}, **known)
        elif kind == "RewindEntry":
            why, note = data.text("rationale"), data.text("note")
            told = (
                f"The conversation was rewound to this point.\nRationale: {why}\nWhat was found out: {note}"
            )
            yield message_record(payloads.user(told), injected=True, **known)
        elif kind != "CompactionEntry":
            yield FactRecord(_fact_of(kind), data, line)
        elif isinstance(summary := data.get("summary"), str):
            kept, before = self._first_kept(data, place), data.count("tokens_before")
            more = data.only(_FOLD)
            yield CompactionRecord(summary, kept, before, at=known["at"], line=line, data=more)
        else:
            yield WarningRecord(line, "a compaction without a summary (left out)")


def _reply(data: Row, known: dict[str, Any]) -> Iterator[Record]:
    """Yield what the model said, thought and called; images that it made follow as facts."""
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
    counted = data.inner("usage")
    yield message_record(
        payload,
        usage=usage_of(counted, USAGE, inclusive=True) if counted else None,
        model=counted.text("model_name") or None,
        stop=STOPS.get(data.text("stop_reason")),
        **known,
    )
    for part in _pictures(data):
        yield FactRecord("part", part, data.line)


def _text(data: Row, kind: str = "text") -> str:
    """Return the text parts of an item, joined as klaude-code joins them."""
    return "".join(part.text("text") for part in data.rows("parts") if part.get("type") == kind)


def _pictures(data: Row) -> list[dict[str, Any]]:
    """Return the images of an item; one that klaude-code stored in a separate file is named, not loaded."""
    found: list[dict[str, Any]] = []
    for part in data.rows("parts"):
        if part.get("type") == "image_url" and part.text("url"):
            found.append(payloads.media("image/", part["url"]))
        elif part.get("type") == "image_file":
            found.append({"type": "text", "text": f"[Image in {part.text('file_path', '?')}]"})
    return found


def _fact_of(kind: str) -> str:
    """Turn a class name into the kind of a fact: CacheHitRateEntry -> cache_hit_rate."""
    stem = re.sub(r"(Entry|Item|Message)$", "", kind)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
