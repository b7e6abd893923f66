"""Gemini CLI's session files: one JSON document, or JSON lines that repeat a message as it grows.

A first pass over the lines finds the order of the messages and the newest version of each; a line that holds
the whole history says by what is missing in it that the conversation was compressed, or taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.dialects import OPENAI_CHAT
from foldline.transcripts.gemini_messages import is_setup, records, sort_parts
from foldline.transcripts.lines import (
    Line,
    Row,
    Unreadable,
    items,
    lines,
    mapping,
    moment,
    parse,
    read_messages_document,
    scan_rows,
    take_rows,
    text_or,
)
from foldline.transcripts.payloads import with_models
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord

_RESULTS = "results"  # behind the id of the reply whose calls they answer
_FIGURES = ("model", "tokens")  # that only some versions of a reply have
_SESSION = ("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories")


def read_gemini(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a Gemini CLI session; messages are `openai-chat` payloads, results follow their reply.

    A `MessageRecord.key` is the message's id, for a result the call's. In a document `line` is its place.
    """
    start = stream.tell()
    lined = _is_lines(stream)
    stream.seek(start)
    yield FactRecord("format", {"format": "gemini-cli", "dialect": OPENAI_CHAT})
    yield from with_models(_read_lines(stream) if lined else _read_document(stream, name))


def _is_lines(stream: BinaryIO) -> bool:
    """Return whether the first line is a complete JSON value, and not the whole file."""
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
    holder = yield from read_messages_document(stream, name)
    answered_calls: set[str] = set()
    yield from _about(holder, 1)
    for index, message in enumerate(items(holder["messages"]), 1):
        if isinstance(message, dict):
            yield from records(mapping(message), index, answered_calls)
        else:
            yield WarningRecord(index, "a message that is not a JSON object (left out)")


def _about(holder: dict[str, Any], line: int) -> Iterator[FactRecord]:
    """Yield what a document or a metadata line says about the session."""
    told = {key: holder[key] for key in _SESSION if holder.get(key)}
    if told:
        yield FactRecord("session", told, line)
    if text_or(holder.get("summary")):
        yield FactRecord("title", {"title": holder["summary"]}, line)
    if holder.get("memoryScratchpad"):
        yield FactRecord("memory", {"memoryScratchpad": holder["memoryScratchpad"]}, line)


def _key(message: dict[str, Any], line: int, place: int = 0) -> str:
    """Return the id of a message, or its position if it has none."""
    return text_or(message.get("id")) or f"line {line}.{place}"


def _is_message(value: dict[str, Any]) -> bool:
    """Return whether a line is a message rather than metadata."""
    return "$set" not in value and (isinstance(value.get("id"), str) or "type" in value)


def _history(value: dict[str, Any], line: int) -> dict[str, dict[str, Any]]:
    """Return the messages, by key, that a metadata line holds: the history from then on.

    A resumed session gives the results of a reply's calls in a user message with the reply's id.
    """
    found: dict[str, dict[str, Any]] = {}
    for place, one in enumerate(items((mapping(value.get("$set")) or value).get("messages"))):
        message = mapping(one)
        key = _key(message, line, place)
        found[f"{key} {_RESULTS}" if _is_twin(found.get(key), message) else key] = message
    return found


def _is_twin(known: dict[str, Any] | None, message: dict[str, Any]) -> bool:
    return known is not None and known.get("type") == "gemini" and message.get("type") == "user"


class _Compression(NamedTuple):
    """A compression: the line that replaced the history, and the first message that it kept."""

    line: int
    first_kept: str | None


class _GeminiIndex(msgspec.Struct):
    """The order of the messages, and the line with the newest version of each."""

    order: list[str | _Compression] = []
    newest: dict[str, int] = {}
    brought: dict[int, list[str]] = {}  # line that replaces the history -> keys of messages new in it
    live: dict[str, None] = {}  # keys that the model still sees
    folded_in: set[str] = set()  # keys of compression summaries
    rewinds: int = 0
    rewound: int = 0

    def add(self, row: Row) -> None:
        """Note a line: a message or its new version, a rewind, or metadata that may replace the history."""
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
        """Drop a message and all after it; an unknown one drops everything, as in Gemini CLI."""
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
        """Take the history that Gemini CLI sends from now on; missing messages were compressed or taken back.

        Known messages stay as they were: only masked text changes in them.
        """
        known = self.newest.keys() | self.folded_in
        new = [key for key in history if key not in known]
        gone = [key for key in self.live if key not in history]
        self.brought[line] = new
        if gone and any(not is_setup(history[key]) for key in new):
            self.folded_in.update(new)
            keys = [*history]
            behind = keys[keys.index(new[-1]) + 1 :]
            self.order.append(_Compression(line, next((key for key in behind if key in self.live), None)))
            self.live = {key: None for key in self.live if key in history}
            return
        self._take_back(gone)
        for key in new:
            self._say(key, history[key], line)


def _read_lines(stream: BinaryIO) -> Iterator[Record]:
    index = _GeminiIndex()
    scan_rows(stream, index.add)
    reader = _GeminiReader(index)
    yield from take_rows(stream, reader.take)
    if index.rewinds:
        yield FactRecord("branches", {"branches": index.rewinds, "messages": index.rewound})


class _GeminiReader:
    """Yield each message's newest version in the order of the first ones; hold back what comes early."""

    def __init__(self, index: _GeminiIndex) -> None:
        self._index = index
        self._order = deque(index.order)
        self._early: dict[str | _Compression, tuple[dict[str, Any], int]] = {}
        self._answered_calls: set[str] = set()
        self._figures: dict[str, dict[str, Any]] = {}  # of messages whose newest version is still to come

    def take(self, row: Row) -> Iterator[Record]:
        """Take the next line; yield what it completes."""
        value, line = row.value, row.number
        if _is_message(value):
            self._hold(_key(value, line), value, line)
        elif "$rewindTo" not in value:
            told = [*_about(mapping(value.get("$set")) or value, line)]
            history = _history(value, line)
            if not told and not history and not isinstance(value.get("$set"), dict):
                yield WarningRecord(line, "not a record of Gemini CLI (left out)")
            yield from told
            self._take_history(value, history, line)
        yield from self._release()

    def _hold(self, key: str, message: dict[str, Any], line: int) -> None:
        known = {name: message[name] for name in _FIGURES if message.get(name)}
        if self._index.newest.get(key) == line:
            older = self._figures.pop(key, {})
            self._early[key] = ({**message, **{name: older[name] for name in older.keys() - known}}, line)
        elif known and key in self._index.newest:
            self._figures[key] = {**self._figures.get(key, {}), **known}

    def _take_history(self, value: dict[str, Any], history: dict[str, dict[str, Any]], line: int) -> None:
        for key in self._index.brought.get(line, []):
            self._hold(key, history[key], line)
        fold = next((one for one in self._order if isinstance(one, _Compression) and one.line == line), None)
        if fold:
            self._early[fold] = (value, line)

    def _release(self) -> Iterator[Record]:
        while self._order and self._order[0] in self._early:
            key = self._order.popleft()
            value, line = self._early.pop(key)
            if isinstance(key, str):
                yield from records(value, line, self._answered_calls)
            else:
                yield self._compaction(key, value)

    def _compaction(self, fold: _Compression, value: dict[str, Any]) -> CompactionRecord:
        """Make a compression's record: its new user messages are the summary, the model only acknowledges."""
        history = _history(value, fold.line)
        new = [history[key] for key in self._index.brought[fold.line]]
        users = [one for one in new if one.get("type") == "user"]
        texts = ["".join(sort_parts(one.get("content")).text) for one in users or new]
        at = moment(mapping(value.get("$set")).get("lastUpdated"))
        summary = "\n\n".join(text for text in texts if text)
        return CompactionRecord(summary, fold.first_kept, at=at, line=fold.line)
