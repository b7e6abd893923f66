"""pi's session files: version 1 (a counted sequence) to 3 (a tree of id and parentId)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline import dialects
from foldline.errors import DialectError
from foldline.transcripts.pi import messages as pi_messages
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    WarningRecord,
    not_a_message,
)
from foldline.transcripts.shared.lines import Row, read_rows, scan_rows
from foldline.transcripts.shared.tree import Node, Tree
from foldline.transcripts.shared.values import count_or_none, mapping, moment, text_or

_SAID = ("message", "custom_message", "branch_summary")
_ABOUT = {"thinking_level_change": "thinking"}
_NAMED = {
    "model_change": ("modelId", "model"),
    "session_info": ("name", "title"),
}  # type -> its field, our name
_ENVELOPE = ("type", "id", "parentId", "timestamp")


def read_pi(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a pi session along the path to its last line; messages become `anthropic` payloads.

    A `MessageRecord.key` is pi's entry id; in version 1 it is the entry's count from the header (0).
    """
    index = _PiIndex()
    scan_rows(stream, index.add)
    index.finish()
    yield FactRecord("format", {"format": "pi", "version": index.version, "dialect": "anthropic"})
    yield from index.tree.warnings
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            yield item
        elif item.number in index.header_lines:
            yield FactRecord("session", _without(item.value, ("type",)), item.number)
            yield from _named(item, "modelId", "model")
        elif item.number in index.keys:
            yield from _records(item, index)
    beside = index.tree.branches(index.on)
    if beside["branches"]:
        yield FactRecord("branches", beside)


class _PiIndex:
    """The first pass over a file: keys, the newest path, and where messages stand on it."""

    def __init__(self) -> None:
        self.version = 1
        self.tree = Tree()
        self.on: list[bool] = []
        self.keys: dict[int, str] = {}  # line -> key, for the lines on the path
        self.header_lines: set[int] = set()
        self._count = 0
        self._said: list[int] = []  # places of the messages on the path
        self._folds: list[int] = []  # places of the compactions on the path
        self._compactions: set[str] = set()  # their keys, wherever they stand
        self._types: list[str] = []

    def add(self, row: Row) -> None:
        """Note a line: a header, or a node of the tree."""
        value = row.value
        kind = text_or(value.get("type"))
        if kind == "session":
            self.header_lines.add(row.number)
            self.version = count_or_none(value.get("version")) or self.version
        else:
            key, parent = text_or(value.get("id")), value.get("parentId")
            if key:
                self.version = max(self.version, 2)
            node = Node(
                key or str(self._count),
                parent if isinstance(parent, str) else None,
                row.number,
                said=kind in _SAID,
                follows=not key or "parentId" not in value,
            )
            if kind == "compaction":
                self._compactions.add(node.key)
            self.tree.add(node)
        self._count += 1

    def finish(self) -> None:
        """Resolve the path to the last line."""
        self.tree.finish()
        self.on = self.tree.path(len(self.tree.nodes) - 1)
        for place, node in enumerate(self.tree.nodes):
            if self.on[place]:
                self.keys[node.line] = node.key
                if node.said:
                    self._said.append(place)
                elif node.key in self._compactions:
                    self._folds.append(place)

    def first_said(self, key: str) -> str | None:
        """Return the key of the first message on the path at or after the entry with that key."""
        place = self.tree.place(key)
        if place is None or not self.on[place]:
            return None
        at = bisect_left(self._said, place)
        return self.tree.nodes[self._said[at]].key if at < len(self._said) else None

    def last_said(self, line: int, count: int) -> str | None:
        """Return the key of the first of `count` messages before a line; a compaction ends the count."""
        at = self.tree.place(self.keys[line])
        if at is None:
            return None
        newest = bisect_left(self._folds, at) - 1
        start = bisect_left(self._said, self._folds[newest]) if newest >= 0 else 0
        end = bisect_left(self._said, at)
        first = max(start, end - count)
        return self.tree.nodes[self._said[first]].key if first < end else None


def _records(row: Row, index: _PiIndex) -> Iterator[Record]:
    """Yield the records of a line on the path."""
    kind = text_or(row.value.get("type"))
    if kind == "compaction":
        yield from _folded(row, index)
    elif kind in _SAID:
        yield _heard(row, index)
    elif kind in _NAMED:
        yield from _named(row, *_NAMED[kind])
    else:
        yield FactRecord(_ABOUT.get(kind, kind or "unknown"), _without(row.value, _ENVELOPE), row.number)


def _named(row: Row, field: str, kind: str) -> Iterator[FactRecord]:
    """Yield a field that other formats have too, under their common name."""
    if text_or(row.value.get(field)):
        yield FactRecord(kind, {kind: row.value[field]}, row.number)


def _folded(row: Row, index: _PiIndex) -> Iterator[Record]:
    """Yield a compaction; version 1 counts its first kept entry from the header, later ones name it.

    pi's plan for its files counts the messages kept from the end, and never across an earlier compaction.
    """
    value = row.value
    summary = value.get("summary")
    if not isinstance(summary, str):
        yield WarningRecord(row.number, "a compaction without a summary (left out)")
        return
    named, counted = value.get("firstKeptEntryId"), count_or_none(value.get("firstKeptEntryIndex"))
    wanted = named if isinstance(named, str) else None if counted is None else str(counted)
    last = count_or_none(value.get("keepLastMessages"))
    counts = wanted is None and last is not None
    kept = index.first_said(wanted) if wanted else index.last_said(row.number, last) if last else None
    if kept is None and not counts:
        yield WarningRecord(
            row.number, f"the first kept entry {wanted} is not on the path; read as keeping nothing"
        )
    at = moment(value.get("timestamp"))
    before, details = count_or_none(value.get("tokensBefore")), value.get("details")
    told = {"details": details} if details else {}
    yield CompactionRecord(summary, kept, before, at=at, line=row.number, data=told)


def _heard(row: Row, index: _PiIndex) -> MessageRecord | WarningRecord:
    """Read a message as an `anthropic` payload, with what pi recorded about it."""
    try:
        written = pi_messages.write(row.value)
        message = dialects.get("anthropic").decode(written.payload)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, row.number)
    inner = mapping(row.value.get("message"))
    at = moment(row.value.get("timestamp")) or moment(inner.get("timestamp"))
    parent = row.value.get("parentId")
    return MessageRecord(
        pi_messages.with_recorded(message, written),
        at=at,
        key=index.keys[row.number],
        parent=parent if isinstance(parent, str) else None,
        line=row.number,
    )


def _without(value: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if key not in keys}
