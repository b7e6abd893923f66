"""klaude-code's session files: `{"type", "data"}` a line, and a `meta.json` beside them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from foldline.transcripts.base import About, Folded, Record, Warned
from foldline.transcripts.beside import beside
from foldline.transcripts.klaude import messages as written
from foldline.transcripts.lines import Row, rows
from foldline.transcripts.shapes import is_klaude
from foldline.transcripts.source import path_of
from foldline.transcripts.values import count_or_none, mapping, moment, text_or

_TOLD = ("UserMessage", "AssistantMessage", "DeveloperMessage", "SystemMessage", "RewindEntry")
_RESULT = "ToolResultMessage"
_CHECKPOINT = re.compile(r"<system-reminder>Checkpoint (\d+)</system-reminder>")
_SESSION = ("id", "work_dir", "created_at", "updated_at", "model_config_name", "sub_agent_state")
_SHOWN = "[Shown by the tool calls above]"


def read_klaude(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a klaude-code session as it stands after its rewinds; messages become `openai-chat` payloads.

    A `Heard.key` is the item's place in that history, counted from 0: what `first_kept_index` counts.
    """
    start = stream.tell()
    index = _Index()
    for item in rows(stream):
        if isinstance(item, Row):
            index.add(item)
    index.finish()
    stream.seek(start)
    yield About("format", {"format": "klaude-code", "dialect": "openai-chat"})
    yield from _meta(stream)
    teller = _Teller(index)
    for item in rows(stream):
        yield from teller.take(item)
    yield from teller.shown()
    if index.left:
        yield About("branches", {"branches": index.left, "messages": index.left_messages})


def _meta(stream: BinaryIO) -> Iterator[Record]:
    """What the file beside it says of the session."""
    path = path_of(stream)
    meta = beside(path.with_name("meta.json")) if path is not None else {}
    if isinstance(meta, Warned):
        yield meta
        return
    told = {key: meta[key] for key in _SESSION if meta.get(key)}
    if told:
        yield About("session", told)
    if text_or(meta.get("title")):
        yield About("title", {"title": meta["title"]})
    if text_or(meta.get("model_name")):
        yield About("model", {"model": meta["model_name"]})


class _Item(NamedTuple):
    """A line of the history: where it stands, what it is, the checkpoint it sets, and a mark of a user's text."""

    line: int
    kind: str
    checkpoint: int | None = None
    text: int | None = None


class _Index:
    """The history as klaude-code loads it: rewinds and taken-back messages are carried out."""

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
            self._retract(hash(text_or(data.get("retracted_text"))))
        self.items.append(self._item(row.number, kind, data))

    def _item(self, line: int, kind: str, data: dict[str, Any]) -> _Item:
        if kind == "DeveloperMessage":
            found = _CHECKPOINT.search(written.text_of(data))
            return _Item(line, kind, checkpoint=int(found[1]) if found else None)
        return _Item(line, kind, text=hash(written.text_of(data)) if kind == "UserMessage" else None)

    def _rewind(self, checkpoint: Any) -> None:
        """Leave what came after a checkpoint; one that is not there changes nothing."""
        wanted = count_or_none(checkpoint)
        at = next((i for i, one in enumerate(self.items) if one.checkpoint == wanted), None)
        if wanted is not None and at is not None:
            self._leave(self.items[at + 1 :])
            del self.items[at + 1 :]

    def _retract(self, text: int) -> None:
        """Take back the user's last message, if it is that one."""
        places = range(len(self.items) - 1, -1, -1)
        last = next((place for place in places if self.items[place].kind == "UserMessage"), None)
        if last is not None and self.items[last].text == text:
            self._leave([self.items.pop(last)])

    def _leave(self, gone: list[_Item]) -> None:
        messages = sum(one.kind in (*_TOLD, _RESULT) for one in gone)
        self.left += bool(messages)
        self.left_messages += messages

    def finish(self) -> None:
        """Note where each line of the history stands."""
        self.places = {one.line: place for place, one in enumerate(self.items)}
        self._told = [place for place, one in enumerate(self.items) if one.kind in _TOLD]

    def first_told(self, place: int, end: int) -> str | None:
        """The key of the first message from a place on that is no result: its call would be folded."""
        at = bisect_left(self._told, place)
        return str(self._told[at]) if at < len(self._told) and self._told[at] < end else None


class _Teller:
    """Tells the lines of the history; images of results are told behind the batch."""

    def __init__(self, index: _Index) -> None:
        self._index = index
        self._model = ""
        self._pictures: list[dict[str, Any]] = []
        self._line = 0

    def take(self, item: Row | Warned) -> Iterator[Record]:
        """Take the next line."""
        if isinstance(item, Warned):
            yield item
        elif not is_klaude(item.value):
            yield Warned(item.number, "no item of a klaude-code history: it needs type and data (left out)")
        elif (place := self._index.places.get(item.number)) is not None:
            if item.value["type"] in (*_TOLD, "CompactionEntry"):
                yield from self.shown()
            yield from self._records(item, place)

    def shown(self) -> Iterator[Record]:
        """What the results since the last reply showed."""
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
            yield About(_named(kind), data, line)

    def _models(self, data: dict[str, Any], line: int) -> Iterator[About]:
        model = text_or(mapping(data.get("usage")).get("model_name"))
        if model and model != self._model:
            self._model = model
            yield About("model", {"model": model}, line)

    def _folded(self, data: dict[str, Any], line: int, place: int) -> Record:
        summary, first = data.get("summary"), count_or_none(data.get("first_kept_index"))
        if not isinstance(summary, str):
            return Warned(line, "a compaction without a summary (left out)")
        kept = None if first is None else self._index.first_told(first, place)
        more = {
            key: data[key] for key in ("details", "kept_items_brief", "first_kept_index") if data.get(key)
        }
        before, at = count_or_none(data.get("tokens_before")), moment(data.get("created_at"))
        return Folded(summary, kept, before, at=at, line=line, data=more)


def _rewound(data: dict[str, Any]) -> str:
    """What the model is told of a rewind."""
    why, note = text_or(data.get("rationale")), text_or(data.get("note"))
    return f"The conversation was rewound to this point.\nRationale: {why}\nWhat was found out: {note}"


def _named(kind: str) -> str:
    """A class name as the kind of a fact: CacheHitRateEntry -> cache_hit_rate."""
    stem = re.sub(r"(Entry|Item|Message)$", "", kind)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
