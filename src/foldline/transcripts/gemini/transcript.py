"""Gemini CLI's session files: one JSON document, or JSON lines that are written anew as a message grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.errors import FormatError
from foldline.transcripts.base import About, Folded, Record, Warned
from foldline.transcripts.gemini.messages import records, written
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


def _key(message: dict[str, Any], line: int, place: int = 0) -> str:
    """The id of a message; one that has none is known by where it stands."""
    return text_or(message.get("id")) or f"line {line}.{place}"


def _is_message(value: dict[str, Any]) -> bool:
    """Whether a line is a message, and not metadata."""
    return "$set" not in value and (isinstance(value.get("id"), str) or "type" in value)


def _history(value: dict[str, Any], line: int) -> dict[str, dict[str, Any]]:
    """The messages by their keys that a line of metadata holds: the history from then on."""
    messages = items((mapping(value.get("$set")) or value).get("messages"))
    return {_key(mapping(one), line, place): mapping(one) for place, one in enumerate(messages)}


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
    brought: dict[int, list[str]] = {}  # lines that replace the history -> the keys of messages new in it
    live: dict[str, None] = {}  # what the model still sees of it
    folded_in: set[str] = set()  # ids of the summaries of compressions
    rewinds: int = 0
    rewound: int = 0

    def add(self, row: Row) -> None:
        """Take a line: a message or its new version, a rewind, or metadata that may replace the history."""
        value = row.value
        if isinstance(value.get("$rewindTo"), str):
            self._rewind(value["$rewindTo"])
        elif _is_message(value):
            self._say(_key(value, row.number), value, row.number)
        elif history := _history(value, row.number):
            self._replace(row.number, history)

    def _say(self, key: str, value: dict[str, Any], line: int) -> None:
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

    def _replace(self, line: int, history: dict[str, dict[str, Any]]) -> None:
        """The history as Gemini CLI sends it from now on: messages it lacks were folded into new ones, or taken back.

        Messages that are known stay as they were told: what changes in them is only what was masked.
        """
        known = self.newest.keys() | self.folded_in
        new = [key for key in history if key not in known]
        gone = [key for key in self.live if key not in history]
        self.brought[line] = new
        if gone and new:
            self.folded_in.update(new)
            keys = [*history]
            behind = keys[keys.index(new[-1]) + 1 :]
            self.order.append(_Fold(line, next((key for key in behind if key in self.live), None)))
            self.live = {key: None for key in self.live if key in history}
            return
        self._take_back(gone)
        for key in new:
            self._say(key, history[key], line)


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
        if _is_message(value):
            self._hold(_key(value, line), value, line)
        elif "$rewindTo" not in value:
            told = [*_about(mapping(value.get("$set")) or value, line)]
            history = _history(value, line)
            if not told and not history and not isinstance(value.get("$set"), dict):
                yield Warned(line, "no record that Gemini CLI writes (left out)")
            yield from told
            self._take_history(value, history, line)
        yield from self._release()

    def _hold(self, key: str, message: dict[str, Any], line: int) -> None:
        if self._index.newest.get(key) == line:
            self._early[key] = (message, line)

    def _take_history(self, value: dict[str, Any], history: dict[str, dict[str, Any]], line: int) -> None:
        for key in self._index.brought.get(line, []):
            self._hold(key, history[key], line)
        fold = next((one for one in self._order if isinstance(one, _Fold) and one.line == line), None)
        if fold:
            self._early[fold] = (value, line)

    def _release(self) -> Iterator[Record]:
        while self._order and self._order[0] in self._early:
            key = self._order.popleft()
            value, line = self._early.pop(key)
            if isinstance(key, str):
                yield from self._models.take(value, line, self._told)
            else:
                yield self._folded(key, value)

    def _folded(self, fold: _Fold, value: dict[str, Any]) -> Folded:
        """A compression: the new messages of the user's side are its summary, the model's only agree to it."""
        history = _history(value, fold.line)
        new = [history[key] for key in self._index.brought[fold.line]]
        users = [one for one in new if one.get("type") == "user"]
        texts = ["".join(written(one.get("content")).text) for one in users or new]
        at = moment(mapping(value.get("$set")).get("lastUpdated"))
        summary = "\n\n".join(text for text in texts if text)
        return Folded(summary, fold.first_kept, at=at, line=fold.line)
