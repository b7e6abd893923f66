"""Gemini CLI's session files: one JSON document, or JSON lines that repeat a message as it grows.

A first pass over the lines finds the order of the messages and the newest version of each. A line may replace
the whole history: messages missing in it were compressed or taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts.gemini_messages import is_setup, records, sort_parts
from foldline.transcripts.lines import (
    Line,
    Row,
    Unreadable,
    count_fact,
    lines,
    parse,
    read_messages_document,
    scan_rows,
    take_rows,
)
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, ResultImages, WarningRecord

_RESULTS = "results"  # suffix to the id of the reply whose calls they answer
_FIGURES = ("model", "tokens")  # only some versions of a reply have them
_SESSION = ("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories")


def read_gemini(stream: BinaryIO, name: str) -> Iterator[Record | ResultImages]:
    """Read a Gemini CLI session; messages are `openai-chat` payloads, results follow their reply.

    A `MessageRecord.key` is the message's id, for a result the call's. In a document `line` is its place.
    """
    start = stream.tell()
    lined = _is_lines(stream)
    stream.seek(start)
    if not lined:
        yield from _read_document(stream, name)
        return
    index = _GeminiIndex()
    scan_rows(stream, index.add)
    yield from take_rows(stream, _GeminiReader(index).take)
    yield from count_fact("branches", {"branches": index.rewinds, "messages": index.rewound})


def _is_lines(stream: BinaryIO) -> bool:
    """Return whether the first line is a complete JSON value, and not the whole file."""
    first_lines: list[bytes] = []
    for line in lines(stream):
        if isinstance(line, Line):
            first_lines.append(line.raw)
        if len(first_lines) == 2:
            break
    try:
        value, _ = parse(first_lines[0] if first_lines else b"")
    except Unreadable:
        return False
    return len(first_lines) > 1 or not items_of(fields_of(value).get("messages"))


def _read_document(stream: BinaryIO, name: str) -> Iterator[Record | ResultImages]:
    document = yield from read_messages_document(stream, name)
    answered_calls: set[str] = set()
    yield from _about(document)
    for line, message in enumerate(items_of(document["messages"]), 1):
        if isinstance(message, dict):
            yield from records(Row(message, line), answered_calls)
        else:
            yield WarningRecord(line, "a message that is not a JSON object (left out)")


def _about(row: Row) -> Iterator[FactRecord]:
    """Yield the session's facts from a document or a metadata line."""
    if fields := row.only(_SESSION):
        yield FactRecord("session", fields, row.line)
    yield from row.facts(title="summary")
    if fields := row.only(["memoryScratchpad"]):
        yield FactRecord("memory", fields, row.line)


def _is_message(row: Row) -> bool:
    """Return whether a line is a message rather than metadata."""
    return "$set" not in row and (isinstance(row.get("id"), str) or "type" in row)


def _key(message: Row, place: int = 0) -> str:
    """Return the id of a message, or its position if it has none."""
    return message.text("id") or f"line {message.line}.{place}"


def _history(row: Row) -> dict[str, Row]:
    """Return the messages in a metadata line by key: the history from then on.

    A resumed session has the results of a reply's calls in a user message with the reply's id.
    """
    history: dict[str, Row] = {}
    for place, message in enumerate((row.inner("$set") or row).rows("messages")):
        key = _key(message, place)
        answers_reply = message.get("type") == "user" and history.get(key, Row()).get("type") == "gemini"
        history[f"{key} {_RESULTS}" if answers_reply else key] = message
    return history


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
        if isinstance(row.get("$rewindTo"), str):
            self._rewind(row["$rewindTo"])
        elif _is_message(row):
            self._note(_key(row), row)
        elif history := _history(row):
            self._replace(row.line, history)

    def _note(self, key: str, message: Row) -> None:
        if key not in self.newest:
            self.order.append(key)
        self.newest[key] = message.line
        if message.get("type") in ("user", "gemini"):
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
        self.order = [item for item in self.order if item not in lost]

    def _replace(self, line: int, history: dict[str, Row]) -> None:
        """Replace the history: messages missing in the new one were compressed or taken back.

        Known messages are not updated: only masked text changes in them.
        """
        known_keys = self.newest.keys() | self.folded_in
        new = [key for key in history if key not in known_keys]
        gone = [key for key in self.live if key not in history]
        self.brought[line] = new
        if gone and any(not is_setup(history[key]) for key in new):
            self.folded_in.update(new)
            keys = [*history]
            later_keys = keys[keys.index(new[-1]) + 1 :]
            self.order.append(_Compression(line, next((key for key in later_keys if key in self.live), None)))
            self.live = {key: None for key in self.live if key in history}
            return
        self._take_back(gone)
        for key in new:
            self._note(key, history[key])


class _GeminiReader:
    """Yields each message's newest version in the order of the first ones; holds back what is too early."""

    def __init__(self, index: _GeminiIndex) -> None:
        self._index = index
        self._order = deque(index.order)
        self._held: dict[str | _Compression, Row] = {}
        self._answered_calls: set[str] = set()
        self._figures: dict[str, dict[str, Any]] = {}  # of messages whose newest version is still to come

    def take(self, row: Row) -> Iterator[Record | ResultImages]:
        if _is_message(row):
            self._hold(_key(row), row)
        elif "$rewindTo" not in row:
            facts, history = [*_about(row.inner("$set") or row)], _history(row)
            if not facts and not history and not isinstance(row.get("$set"), dict):
                yield WarningRecord(row.line, "not a record of Gemini CLI (left out)")
            yield from facts
            for key in self._index.brought.get(row.line, []):
                self._hold(key, history[key])
            folds = (item for item in self._order if isinstance(item, _Compression) and item.line == row.line)
            self._held.update(dict.fromkeys(folds, row))
        while self._order and self._order[0] in self._held:
            key = self._order.popleft()
            source = self._held.pop(key)
            if isinstance(key, str):
                yield from records(source, self._answered_calls)
            else:
                yield self._compaction(key, source)

    def _hold(self, key: str, message: Row) -> None:
        """Hold the newest version of a message, with fields that only an older one has."""
        figures = {**self._figures.get(key, {}), **message.only(_FIGURES)}
        if self._index.newest.get(key) == message.line:
            self._figures.pop(key, None)
            self._held[key] = Row({**message, **figures}, message.line)
        elif figures and key in self._index.newest:
            self._figures[key] = figures

    def _compaction(self, fold: _Compression, row: Row) -> CompactionRecord:
        """Return a compression: its new user messages are the summary, the reply is an acknowledgement."""
        history = _history(row)
        new = [history[key] for key in self._index.brought[fold.line]]
        users = [message for message in new if message.get("type") == "user"]
        texts = ["".join(sort_parts(message, "content").text) for message in users or new]
        summary, at = "\n\n".join(text for text in texts if text), row.inner("$set").time("lastUpdated")
        return CompactionRecord(summary, fold.first_kept, at=at, line=fold.line)
