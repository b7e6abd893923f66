"""Gemini CLI's session files: one JSON document, or JSON lines that are written anew as a message grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.errors import FormatError
from foldline.transcripts.base import About, Folded, Record, Warned
from foldline.transcripts.gemini_messages import records, written
from foldline.transcripts.lines import Line, Row, Unreadable, lines, parse, rows, whole
from foldline.transcripts.values import items, mapping, moment, text_or

_SESSION = ("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories")


def read_gemini(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a Gemini CLI session; messages are `openai-chat` payloads, results follow the reply that called.

    A `Heard.key` is the message's id, a result's is its call's. In a document `line` is the message's place.
    """
    start = stream.tell()
    lined = _is_lines(stream)
    stream.seek(start)
    yield About("format", {"format": "gemini-cli", "dialect": "openai-chat"})
    yield from _read_lines(stream, start) if lined else _read_document(stream, name)


def _is_lines(stream: BinaryIO) -> bool:
    """Whether the first line is a JSON value of its own, and not all there is."""
    found: list[bytes] = []
    for line in lines(stream):
        if isinstance(line, Line):
            found.append(line.raw)
        if len(found) == 2:
            break
    try:
        value, _ = parse(found[0] if found else b"")
    except Unreadable:
        return False
    return len(found) > 1 or not items(mapping(value).get("messages"))


def _read_document(stream: BinaryIO, name: str) -> Iterator[Record]:
    value, note = whole(stream, name)
    if note:
        yield Warned(1, note)
    holder = mapping(value)
    if not isinstance(holder.get("messages"), list):
        raise FormatError('needs a list of messages under "messages"', where=name)
    told: set[str] = set()
    teller = _Models()
    yield from _about(holder, 1)
    for index, message in enumerate(items(holder["messages"]), 1):
        if isinstance(message, dict):
            yield from teller.take(mapping(message), index, told)
        else:
            yield Warned(index, "a message that is no JSON object (left out)")


def _about(holder: dict[str, Any], line: int) -> Iterator[About]:
    """What a document or a line of metadata says about the session."""
    told = {key: holder[key] for key in _SESSION if holder.get(key)}
    if told:
        yield About("session", told, line)
    if text_or(holder.get("summary")):
        yield About("title", {"title": holder["summary"]}, line)
    if holder.get("memoryScratchpad"):
        yield About("memory", {"memoryScratchpad": holder["memoryScratchpad"]}, line)


class _Models:
    """Tells messages, and the model where it changes."""

    def __init__(self) -> None:
        self._model = ""

    def take(self, message: dict[str, Any], line: int, told: set[str]) -> Iterator[Record]:
        model = text_or(message.get("model"))
        if model and model != self._model:
            self._model = model
            yield About("model", {"model": model}, line)
        yield from records(message, line, told)


class _Fold(NamedTuple):
    """A compression, by what the line that replaced the history brought in and kept."""

    line: int
    first_kept: str | None


class _Index(msgspec.Struct):
    """The order of what was said, each message by the line on which its newest version stands."""

    order: list[str | _Fold] = []
    newest: dict[str, int] = {}
    wide: dict[int, list[str]] = {}  # lines that replace the history -> the ids that they brought
    summaries: dict[int, list[str]] = {}  # of those, the ids that are a compression's summary
    live: dict[str, None] = {}  # what the model still sees of it
    folded_in: set[str] = set()  # ids of the summaries of compressions
    rewinds: int = 0
    rewound: int = 0

    def add(self, row: Row) -> None:
        """Take a line: a message or its new version, a rewind, or metadata that may replace the history."""
        value = row.value
        if isinstance(value.get("$rewindTo"), str):
            self._rewind(value["$rewindTo"])
        elif isinstance(value.get("id"), str):
            self._say(value, row.number)
        else:
            holder = mapping(value.get("$set")) or value
            if isinstance(holder.get("messages"), list):
                self._replace(row.number, [mapping(one) for one in items(holder["messages"])])

    def _say(self, value: dict[str, Any], line: int) -> None:
        key = value["id"]
        if key not in self.newest:
            self.order.append(key)
        self.newest[key] = line
        if value.get("type") in ("user", "gemini"):
            self.live[key] = None

    def _rewind(self, key: str) -> None:
        """Take back a message and all after it; one that is not there takes back everything, as Gemini CLI has it."""
        living = list(self.live)
        self._take_back(living[living.index(key) if key in self.live else 0 :])

    def _take_back(self, gone: list[str]) -> None:
        self.rewinds += bool(gone)
        self.rewound += len(gone)
        for key in gone:
            del self.live[key]
            del self.newest[key]
        lost = set(gone)
        self.order = [one for one in self.order if one not in lost]

    def _replace(self, line: int, messages: list[dict[str, Any]]) -> None:
        """The history as Gemini CLI sends it from now on: messages it lacks were folded into new ones, or taken back.

        Messages that are known stay as they were told: what changes in them is only what was masked.
        """
        keys = [text_or(one.get("id")) for one in messages]
        known = self.newest.keys() | self.folded_in
        new = [one for one in messages if text_or(one.get("id")) and one["id"] not in known]
        gone = [key for key in self.live if key not in set(keys)]
        self.wide[line] = [one["id"] for one in new]
        if gone and new:
            self.summaries[line] = self.wide[line]
            self.folded_in.update(self.wide[line])
            last = keys.index(new[-1]["id"])
            kept = next((key for key in keys[last + 1 :] if key in self.live), None)
            self.order.append(_Fold(line, kept))
            self.live = {key: None for key in self.live if key in set(keys)}
            return
        if gone and messages:
            self._take_back(gone)
        for one in new:
            self._say(one, line)


def _read_lines(stream: BinaryIO, start: int) -> Iterator[Record]:
    index = _Index()
    for item in rows(stream):
        if isinstance(item, Row):
            index.add(item)
    stream.seek(start)
    teller = _LineTeller(index)
    for item in rows(stream):
        if isinstance(item, Warned):
            yield item
        else:
            yield from teller.take(item)
    if index.rewinds:
        yield About("branches", {"branches": index.rewinds, "messages": index.rewound})


class _LineTeller:
    """Tells each message in its newest version, in the order of their first ones; holds back what comes too early."""

    def __init__(self, index: _Index) -> None:
        self._index = index
        self._order = deque(index.order)
        self._early: dict[str | _Fold, tuple[dict[str, Any], int]] = {}
        self._told: set[str] = set()
        self._models = _Models()

    def take(self, row: Row) -> Iterator[Record]:
        """Take the next line; yield what is complete by it."""
        value, line = row.value, row.number
        key = value.get("id")
        if isinstance(key, str):
            if self._index.newest.get(key) == line:
                self._early[key] = (value, line)
        elif "$rewindTo" not in value:
            holder = mapping(value.get("$set")) or value
            yield from _about(holder, line)
            self._take_history(holder, line)
        yield from self._release()

    def _take_history(self, holder: dict[str, Any], line: int) -> None:
        brought = set(self._index.wide.get(line, []))
        for message in map(mapping, items(holder.get("messages"))):
            key = text_or(message.get("id"))
            if key in brought and self._index.newest.get(key) == line:
                self._early[key] = (message, line)
        fold = next((one for one in self._order if isinstance(one, _Fold) and one.line == line), None)
        if fold:
            self._early[fold] = (holder, line)

    def _release(self) -> Iterator[Record]:
        while self._order and self._order[0] in self._early:
            key = self._order.popleft()
            value, line = self._early.pop(key)
            if isinstance(key, str):
                yield from self._models.take(value, line, self._told)
            else:
                yield self._folded(key, value)

    def _folded(self, fold: _Fold, holder: dict[str, Any]) -> Folded:
        """A compression: the new messages of the user's side are its summary, the model's only agree to it."""
        new = set(self._index.summaries[fold.line])
        texts = [
            "\n".join(written(message.get("content")).text)
            for message in map(mapping, items(holder.get("messages")))
            if message.get("id") in new and message.get("type") == "user"
        ]
        at = moment(holder.get("lastUpdated"))
        summary = "\n\n".join(text for text in texts if text)
        return Folded(summary, fold.first_kept, at=at, line=fold.line)
