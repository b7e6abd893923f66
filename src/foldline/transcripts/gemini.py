"""Gemini CLI's session files: one JSON document, or JSON lines that repeat a message as it grows.

A first pass over the lines finds the order of the messages and the newest version of each; a line that holds
the whole history says by what is missing in it that the conversation was compressed, or taken back.
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
    lines,
    parse,
    read_messages_document,
    scan_rows,
    take_rows,
)
from foldline.transcripts.records import CompactionRecord, FactRecord, Pictures, Record, WarningRecord, beside

_RESULTS = "results"  # behind the id of the reply whose calls they answer
_FIGURES = ("model", "tokens")  # that only some versions of a reply have
_SESSION = ("sessionId", "projectHash", "startTime", "lastUpdated", "kind", "directories")


def read_gemini(stream: BinaryIO, name: str) -> Iterator[Record | Pictures]:
    """Read a Gemini CLI session; messages are `openai-chat` payloads, results follow their reply.

    A `MessageRecord.key` is the message's id, for a result the call's. In a document `line` is its place.
    """
    start = stream.tell()
    lined = _is_lines(stream)
    stream.seek(start)
    yield from _read_lines(stream) if lined else _read_document(stream, name)


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
    return len(found) > 1 or not items_of(fields_of(value).get("messages"))


def _read_document(stream: BinaryIO, name: str) -> Iterator[Record | Pictures]:
    holder = yield from read_messages_document(stream, name)
    answered_calls: set[str] = set()
    yield from _about(holder)
    for line, message in enumerate(items_of(holder["messages"]), 1):
        if isinstance(message, dict):
            yield from records(Row(message, line), answered_calls)
        else:
            yield WarningRecord(line, "a message that is not a JSON object (left out)")


def _about(holder: Row) -> Iterator[FactRecord]:
    """Yield what a document or a metadata line says about the session."""
    if told := holder.only(_SESSION):
        yield FactRecord("session", told, holder.line)
    yield from holder.facts(title="summary")
    if told := holder.only(["memoryScratchpad"]):
        yield FactRecord("memory", told, holder.line)


def _is_message(row: Row) -> bool:
    """Return whether a line is a message rather than metadata."""
    return "$set" not in row and (isinstance(row.get("id"), str) or "type" in row)


def _key(message: Row, place: int = 0) -> str:
    """Return the id of a message, or its position if it has none."""
    return message.text("id") or f"line {message.line}.{place}"


def _history(row: Row) -> dict[str, Row]:
    """Return the messages, by key, that a metadata line holds: the history from then on.

    A resumed session gives the results of a reply's calls in a user message with the reply's id.
    """
    found: dict[str, Row] = {}
    for place, message in enumerate((row.inner("$set") or row).rows("messages")):
        key = _key(message, place)
        twin = message.get("type") == "user" and found.get(key, Row()).get("type") == "gemini"
        found[f"{key} {_RESULTS}" if twin else key] = message
    return found


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
            self._say(_key(row), row)
        elif history := _history(row):
            self._replace(row.line, history)

    def _say(self, key: str, message: Row) -> None:
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
        self.order = [one for one in self.order if one not in lost]

    def _replace(self, line: int, history: dict[str, Row]) -> None:
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
            self._say(key, history[key])


def _read_lines(stream: BinaryIO) -> Iterator[Record | Pictures]:
    index = _GeminiIndex()
    scan_rows(stream, index.add)
    yield from take_rows(stream, _GeminiReader(index).take)
    yield from beside("branches", {"branches": index.rewinds, "messages": index.rewound})


class _GeminiReader:
    """Yield each message's newest version in the order of the first ones; hold back what comes early."""

    def __init__(self, index: _GeminiIndex) -> None:
        self._index = index
        self._order = deque(index.order)
        self._early: dict[str | _Compression, Row] = {}
        self._answered_calls: set[str] = set()
        self._figures: dict[str, dict[str, Any]] = {}  # of messages whose newest version is still to come

    def take(self, row: Row) -> Iterator[Record | Pictures]:
        """Take the next line; yield what it completes."""
        if _is_message(row):
            self._hold(_key(row), row)
        elif "$rewindTo" not in row:
            told, history = [*_about(row.inner("$set") or row)], _history(row)
            if not told and not history and not isinstance(row.get("$set"), dict):
                yield WarningRecord(row.line, "not a record of Gemini CLI (left out)")
            yield from told
            for key in self._index.brought.get(row.line, []):
                self._hold(key, history[key])
            folds = (one for one in self._order if isinstance(one, _Compression) and one.line == row.line)
            self._early.update(dict.fromkeys(folds, row))
        while self._order and self._order[0] in self._early:
            key = self._order.popleft()
            held = self._early.pop(key)
            if isinstance(key, str):
                yield from records(held, self._answered_calls)
            else:
                yield self._compaction(key, held)

    def _hold(self, key: str, message: Row) -> None:
        """Hold the newest version of a message, with figures that only an older one has."""
        known = {**self._figures.get(key, {}), **message.only(_FIGURES)}
        if self._index.newest.get(key) == message.line:
            self._figures.pop(key, None)
            self._early[key] = Row({**message, **known}, message.line)
        elif known and key in self._index.newest:
            self._figures[key] = known

    def _compaction(self, fold: _Compression, row: Row) -> CompactionRecord:
        """Make a compression's record: its new user messages are the summary, the model only acknowledges."""
        history = _history(row)
        new = [history[key] for key in self._index.brought[fold.line]]
        users = [one for one in new if one.get("type") == "user"]
        texts = ["".join(sort_parts(one, "content").text) for one in users or new]
        summary, at = "\n\n".join(text for text in texts if text), row.inner("$set").time("lastUpdated")
        return CompactionRecord(summary, fold.first_kept, at=at, line=fold.line)
