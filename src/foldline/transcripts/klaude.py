"""klaude-code's session files: one `{"type", "data"}` per line, and a sidecar `meta.json`.

The file is append-only: a rewind drops what came after a checkpoint, a retraction one message of the user's.
A first pass finds the history that is left; a compaction counts its first kept item in that history.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from foldline.dialects import OPENAI_CHAT
from foldline.transcripts import payloads
from foldline.transcripts.lines import (
    Row,
    count_or_none,
    items,
    mapping,
    moment,
    read_sidecar,
    scan_rows,
    stem_of,
    take_rows,
    text_or,
)
from foldline.transcripts.payloads import message_record, usage_of, with_models
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord
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


def read_klaude(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a klaude-code session as it stands after its rewinds; messages become `openai-chat` payloads.

    A `MessageRecord.key` is the item's 0-based index in that history, as `first_kept_index` counts.
    """
    history = _KlaudeHistory()
    scan_rows(stream, history.add)
    history.finish()
    yield FactRecord("format", {"format": "klaude-code", "dialect": OPENAI_CHAT})
    reader = _KlaudeReader(history)
    yield from with_models(_records(stream, reader))
    if history.left:
        yield FactRecord("branches", {"branches": history.left, "messages": history.left_messages})


def _records(stream: BinaryIO, reader: _KlaudeReader) -> Iterator[Record]:
    yield from _meta(stream)
    yield from take_rows(stream, reader.take)
    yield from reader.end_batch()


def _meta(stream: BinaryIO) -> Iterator[Record]:
    """Yield what the sidecar file says about the session."""
    path = path_of(stream)
    meta: dict[str, Any] | WarningRecord = {}
    if path is not None:
        own = path.with_name(f"{stem_of(path)}.meta.json")  # as an export names it where it is not `events`
        meta = read_sidecar(own if own.exists() else path.with_name("meta.json"))
    if isinstance(meta, WarningRecord):
        yield meta
        return
    told = {key: meta[key] for key in _SESSION if meta.get(key)}
    if told:
        yield FactRecord("session", told)
    if text_or(meta.get("title")):
        yield FactRecord("title", {"title": meta["title"]})
    if text_or(meta.get("model_name")):
        yield FactRecord("model", {"model": meta["model_name"]})


# ---- the history that is left


class _Item(NamedTuple):
    """A line of the history: its number, its kind, the checkpoint it sets, and a hash of a user's text."""

    line: int
    kind: str
    checkpoint: int | None = None
    text: int | None = None


class _KlaudeHistory:
    """The history as klaude-code loads it, with rewinds and retractions applied."""

    def __init__(self) -> None:
        self.items: list[_Item] = []
        self.places: dict[int, int] = {}
        self.left = 0
        self.left_messages = 0
        self._own: list[int] = []  # places of the messages that are not results

    def add(self, row: Row) -> None:
        """Take a line."""
        if not is_klaude(row.value):
            return
        kind, data = row.value["type"], mapping(row.value["data"])
        checkpoint = text = None
        if kind == "RewindEntry":
            self._rewind(data.get("checkpoint_id"))
        elif kind == "RetractEntry":
            self._retract(data)
        elif kind == "UserMessage":
            text = hash(_text(data))
        elif kind == "DeveloperMessage" and (found := _CHECKPOINT.search(_text(data))):
            checkpoint = int(found[1])
        self.items.append(_Item(row.number, kind, checkpoint, text))

    def _rewind(self, checkpoint: Any) -> None:
        """Drop what came after a checkpoint; an unknown one changes nothing."""
        wanted = count_or_none(checkpoint)
        at = next((i for i, one in enumerate(self.items) if one.checkpoint == wanted), None)
        if wanted is not None and at is not None:
            self._leave(self.items[at + 1 :])
            del self.items[at + 1 :]

    def _retract(self, data: dict[str, Any]) -> None:
        """Drop the user's message of the line named; without a line the last one, if it has that text."""
        line = count_or_none(data.get("retracted_line"))
        users = [place for place, one in enumerate(self.items) if one.kind == "UserMessage"]
        if line is not None:
            found = next((place for place in users if self.items[place].line == line + 1), None)
        else:
            text = hash(text_or(data.get("retracted_text")))
            found = users[-1] if users and self.items[users[-1]].text == text else None
        if found is not None:
            self._leave([self.items.pop(found)])

    def _leave(self, gone: list[_Item]) -> None:
        messages = sum(one.kind in (*_OWN, _RESULT) for one in gone)
        self.left += bool(messages)
        self.left_messages += messages

    def finish(self) -> None:
        """Note the index of each line in the history."""
        self.places = {one.line: place for place, one in enumerate(self.items)}
        self._own = [place for place, one in enumerate(self.items) if one.kind in _OWN]

    def first_kept(self, data: dict[str, Any], end: int) -> str | None:
        """Return the key of the first message before `end` that a compaction kept.

        `first_kept_line` counts the lines of the file from 0, whatever was rewound or retracted since; it
        wins over `first_kept_index`, which older versions wrote alone. A result is passed over: its call is
        folded.
        """
        line, place = count_or_none(data.get("first_kept_line")), count_or_none(data.get("first_kept_index"))
        if line is not None:
            place = bisect_left(self.items, line + 1, key=lambda one: one.line)
        if place is None:
            return None
        at = bisect_left(self._own, place)
        return str(self._own[at]) if at < len(self._own) and self._own[at] < end else None


# ---- its items


class _KlaudeReader:
    """Yield the records of the history; images of results follow their batch."""

    def __init__(self, history: _KlaudeHistory) -> None:
        self._history = history
        self._pictures: list[dict[str, Any]] = []
        self._line = 0

    def take(self, row: Row) -> Iterator[Record]:
        """Take the next line."""
        if not is_klaude(row.value):
            text = "not an item of a klaude-code history: type and data are missing (left out)"
            yield WarningRecord(row.number, text)
        elif (place := self._history.places.get(row.number)) is not None:
            if row.value["type"] in (*_OWN, "CompactionEntry"):
                yield from self.end_batch()
            yield from self._item(row.value["type"], mapping(row.value["data"]), row.number, place)

    def end_batch(self) -> Iterator[Record]:
        """Yield the images of the results since the last reply."""
        pictures, self._pictures = self._pictures, []
        if pictures:
            yield message_record(payloads.shown(pictures), self._line, injected=True)

    def _item(self, kind: str, data: dict[str, Any], line: int, place: int) -> Iterator[Record]:
        known: dict[str, Any] = {"line": line, "at": moment(data.get("created_at")), "key": str(place)}
        if kind in ("UserMessage", "DeveloperMessage"):
            injected = kind == "DeveloperMessage" or data.get("source") == "bash_mode"
            yield message_record(payloads.user(_text(data), _pictures(data)), injected=injected, **known)
        elif kind == "AssistantMessage":
            yield from _reply(data, known)
        elif kind == _RESULT:
            failed = text_or(data.get("status"), "success") != "success"
            payload = payloads.answer(data.get("call_id"), text_or(data.get("output_text")))
            yield message_record(payload, failed=failed, **known)
            self._pictures += _pictures(data)
            self._line = line
        elif kind == "SystemMessage":
            yield message_record({"role": "system", "content": _text(data)}, **known)
        elif kind == "RewindEntry":
            yield message_record(payloads.user(_rewound(data)), injected=True, **known)
        elif kind == "CompactionEntry":
            yield self._compaction(data, line, place)
        else:
            yield FactRecord(_fact_of(kind), data, line)

    def _compaction(self, data: dict[str, Any], line: int, place: int) -> Record:
        summary = data.get("summary")
        if not isinstance(summary, str):
            return WarningRecord(line, "a compaction without a summary (left out)")
        kept = self._history.first_kept(data, place)
        more = {key: data[key] for key in _FOLD if data.get(key)}
        before, at = count_or_none(data.get("tokens_before")), moment(data.get("created_at"))
        return CompactionRecord(summary, kept, before, at=at, line=line, data=more)


def _reply(data: dict[str, Any], known: dict[str, Any]) -> Iterator[Record]:
    """Yield what the model said, thought and called; images that it made follow as facts."""
    parts = _parts(data)
    calls = [
        payloads.call(part.get("call_id"), part.get("tool_name"), text_or(part.get("arguments_json")))
        for part in parts
        if part.get("type") == "tool_call"
    ]
    sealed = [
        payloads.sealed_thought(part["signature"], **{k: part[k] for k in ("id", "format") if part.get(k)})
        for part in parts
        if part.get("type") == "thinking_signature" and part.get("signature")
    ]
    payload = payloads.reply(_text(data), _text(data, "thinking_text"), calls, sealed)
    if payloads.is_empty(payload):
        told = {key: data[key] for key in ("response_id", "stop_reason") if data.get(key)}
        yield FactRecord("empty", told, known["line"])
        return
    counted = mapping(data.get("usage"))
    yield message_record(
        payload,
        usage=usage_of(counted, USAGE, inclusive=True) if counted else None,
        model=text_or(counted.get("model_name")) or None,
        stop=STOPS.get(text_or(data.get("stop_reason"))),
        **known,
    )
    for part in _pictures(data):
        yield FactRecord("part", part, known["line"])


def _parts(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [mapping(part) for part in items(data.get("parts"))]


def _text(data: dict[str, Any], kind: str = "text") -> str:
    """Return the text parts of an item, joined as klaude-code joins them."""
    return "".join(text_or(part.get("text")) for part in _parts(data) if part.get("type") == kind)


def _pictures(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the images of an item; one that klaude-code stored in a separate file is named, not loaded."""
    found: list[dict[str, Any]] = []
    for part in _parts(data):
        if part.get("type") == "image_url" and text_or(part.get("url")):
            found.append(payloads.media("image/", part["url"]))
        elif part.get("type") == "image_file":
            found.append({"type": "text", "text": f"[Image in {text_or(part.get('file_path'), '?')}]"})
    return found


def _rewound(data: dict[str, Any]) -> str:
    """Return what the model is told about a rewind."""
    why, note = text_or(data.get("rationale")), text_or(data.get("note"))
    return f"The conversation was rewound to this point.\nRationale: {why}\nWhat was found out: {note}"


def _fact_of(kind: str) -> str:
    """Turn a class name into the kind of a fact: CacheHitRateEntry -> cache_hit_rate."""
    stem = re.sub(r"(Entry|Item|Message)$", "", kind)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
