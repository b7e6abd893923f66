"""klaude-code's session files: one `{"type", "data"}` per line, and a sidecar `meta.json`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from foldline.transcripts.agent_shapes import is_klaude
from foldline.transcripts.klaude import messages as written
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord
from foldline.transcripts.shared.lines import Row, read_rows, scan_rows
from foldline.transcripts.shared.sidecar import read_sidecar, stem_of
from foldline.transcripts.shared.source import path_of
from foldline.transcripts.shared.values import count_or_none, mapping, moment, text_or

_TOLD = ("UserMessage", "AssistantMessage", "DeveloperMessage", "SystemMessage", "RewindEntry")
_RESULT = "ToolResultMessage"
_CHECKPOINT = re.compile(r"<system-reminder>Checkpoint (\d+)</system-reminder>")
_SESSION = ("id", "work_dir", "created_at", "updated_at", "model_config_name", "sub_agent_state")
_FOLD = ("details", "kept_items_brief", "first_kept_index", "first_kept_line")
_SHOWN = "[Shown by the tool calls above]"


def read_klaude(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a klaude-code session as it stands after its rewinds; messages become `openai-chat` payloads.

    A `MessageRecord.key` is the item's 0-based index in that history, as `first_kept_index` counts.
    """
    index = _KlaudeHistory()
    scan_rows(stream, index.add)
    index.finish()
    yield FactRecord("format", {"format": "klaude-code", "dialect": "openai-chat"})
    yield from _meta(stream)
    reader = _KlaudeReader(index)
    for item in read_rows(stream):
        yield from reader.take(item)
    yield from reader.shown()
    if index.left:
        yield FactRecord("branches", {"branches": index.left, "messages": index.left_messages})


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
        self._told: list[int] = []

    def add(self, row: Row) -> None:
        """Take a line."""
        if not is_klaude(row.value):
            return
        kind, data = row.value["type"], mapping(row.value["data"])
        if kind == "RewindEntry":
            self._rewind(data.get("checkpoint_id"))
        elif kind == "RetractEntry":
            self._retract(data)
        self.items.append(self._item(row.number, kind, data))

    def _item(self, line: int, kind: str, data: dict[str, Any]) -> _Item:
        if kind == "DeveloperMessage":
            found = _CHECKPOINT.search(written.text_of(data))
            return _Item(line, kind, checkpoint=int(found[1]) if found else None)
        return _Item(line, kind, text=hash(written.text_of(data)) if kind == "UserMessage" else None)

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
        messages = sum(one.kind in (*_TOLD, _RESULT) for one in gone)
        self.left += bool(messages)
        self.left_messages += messages

    def finish(self) -> None:
        """Note the index of each line in the history."""
        self.places = {one.line: place for place, one in enumerate(self.items)}
        self._told = [place for place, one in enumerate(self.items) if one.kind in _TOLD]

    def first_kept(self, data: dict[str, Any]) -> int | None:
        """Return the place of the first item that a compaction kept.

        `first_kept_line` counts the lines of the file from 0, whatever was rewound or retracted since; it
        wins over `first_kept_index`, which older versions wrote alone.
        """
        line = count_or_none(data.get("first_kept_line"))
        if line is None:
            return count_or_none(data.get("first_kept_index"))
        return bisect_left(self.items, line + 1, key=lambda one: one.line)

    def first_told(self, place: int, end: int) -> str | None:
        """Return the key of the first message from `place` on that is not a result, whose call is folded."""
        at = bisect_left(self._told, place)
        return str(self._told[at]) if at < len(self._told) and self._told[at] < end else None


class _KlaudeReader:
    """Yield the records of the history; images of results follow their batch."""

    def __init__(self, index: _KlaudeHistory) -> None:
        self._index = index
        self._model = ""
        self._pictures: list[dict[str, Any]] = []
        self._line = 0

    def take(self, item: Row | WarningRecord) -> Iterator[Record]:
        """Take the next line."""
        if isinstance(item, WarningRecord):
            yield item
        elif not is_klaude(item.value):
            yield WarningRecord(
                item.number, "not an item of a klaude-code history: type and data are missing (left out)"
            )
        elif (place := self._index.places.get(item.number)) is not None:
            if item.value["type"] in (*_TOLD, "CompactionEntry"):
                yield from self.shown()
            yield from self._records(item, place)

    def shown(self) -> Iterator[Record]:
        """Yield the images of the results since the last reply."""
        if self._pictures:
            parts = [{"type": "text", "text": _SHOWN}, *self._pictures]
            self._pictures = []
            payload = {"role": "user", "content": parts}
            yield written.chat.heard(payload, self._line, injected=True)

    def _records(self, row: Row, place: int) -> Iterator[Record]:
        kind, data, line, key = row.value["type"], mapping(row.value["data"]), row.number, str(place)
        if kind == "UserMessage":
            yield written.user(data, line, key)
        elif kind == "AssistantMessage":
            yield from self._models(data, line)
            yield from written.reply(data, line, key)
        elif kind == _RESULT:
            yield written.result(data, line, key)
            self._pictures += written.pictures(data)
            self._line = line
        elif kind == "DeveloperMessage":
            yield written.user(data, line, key, injected=True)
        elif kind == "SystemMessage":
            yield written.system(data, line, key)
        elif kind == "RewindEntry":
            yield written.note(_rewound(data), data, line, key)
        elif kind == "CompactionEntry":
            yield self._folded(data, line, place)
        else:
            yield FactRecord(_named(kind), data, line)

    def _models(self, data: dict[str, Any], line: int) -> Iterator[FactRecord]:
        model = text_or(mapping(data.get("usage")).get("model_name"))
        if model and model != self._model:
            self._model = model
            yield FactRecord("model", {"model": model}, line)

    def _folded(self, data: dict[str, Any], line: int, place: int) -> Record:
        summary, first = data.get("summary"), self._index.first_kept(data)
        if not isinstance(summary, str):
            return WarningRecord(line, "a compaction without a summary (left out)")
        kept = None if first is None else self._index.first_told(first, place)
        more = {key: data[key] for key in _FOLD if data.get(key)}
        before, at = count_or_none(data.get("tokens_before")), moment(data.get("created_at"))
        return CompactionRecord(summary, kept, before, at=at, line=line, data=more)


def _rewound(data: dict[str, Any]) -> str:
    """Return what the model is told about a rewind."""
    why, note = text_or(data.get("rationale")), text_or(data.get("note"))
    return f"The conversation was rewound to this point.\nRationale: {why}\nWhat was found out: {note}"


def _named(kind: str) -> str:
    """Turn a class name into the kind of a fact: CacheHitRateEntry -> cache_hit_rate."""
    stem = re.sub(r"(Entry|Item|Message)$", "", kind)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
