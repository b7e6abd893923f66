"""pi's session files: version 1 (a counted sequence) to 3 (a tree of id and parentId).

A first pass builds the tree and finds the path to the last line; a second reads the lines on it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.errors import DialectError
from foldline.transcripts.lines import (
    Row,
    count_or_none,
    items,
    mapping,
    moment,
    scan_rows,
    take_rows,
    text_or,
)
from foldline.transcripts.payloads import image_block, message_record, usage_of
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    WarningRecord,
    not_a_message,
)
from foldline.transcripts.tree import Node, Tree

STOPS = {"stop": "end", "toolUse": "tools", "length": "length", "aborted": "aborted", "error": "error"}
USAGE = ("input", "cacheRead", "cacheWrite", "output")
"""The names of a usage; pi's four counts do not overlap."""

_SAID = ("message", "custom_message", "branch_summary")
_NAMED = {"model_change": ("modelId", "model"), "session_info": ("name", "title")}  # its field, our name
_ENVELOPE = ("type", "id", "parentId", "timestamp")
_SIGNED = ("anthropic-messages", "bedrock-converse-stream")
"""APIs whose signatures Anthropic's API accepts."""

Json = dict[str, Any]


def read_pi(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a pi session along the path to its last line; messages become `anthropic` payloads.

    A `MessageRecord.key` is pi's entry id; in version 1 it is the entry's count from the header (0).
    """
    index = _PiIndex()
    scan_rows(stream, index.add)
    index.finish()
    yield FactRecord("format", {"format": "pi", "version": index.version, "dialect": ANTHROPIC})
    yield from index.tree.warnings
    yield from take_rows(stream, lambda row: _records(row, index))
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

    def add(self, row: Row) -> None:
        """Note a line: a header, or a node of the tree."""
        value = row.value
        kind = text_or(value.get("type"))
        if kind == "session":
            self.header_lines.add(row.number)
            self.version = count_or_none(value.get("version")) or self.version
        else:
            key = text_or(value.get("id"))
            if key:
                self.version = max(self.version, 2)
            follows = not key or "parentId" not in value
            node = Node(key or str(self._count), _parent(value), row.number, kind in _SAID, follows)
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
    """Yield the records of a line: the header's, or those of a line on the path."""
    if row.number in index.header_lines:
        yield FactRecord("session", _without(row.value, ("type",)), row.number)
        yield from _named(row, "modelId", "model")
        return
    if row.number not in index.keys:
        return
    kind = text_or(row.value.get("type"))
    if kind == "compaction":
        yield from _compaction(row, index)
    elif kind in _SAID:
        yield _message(row, index.keys[row.number])
    elif kind in _NAMED:
        yield from _named(row, *_NAMED[kind])
    else:
        fact = "thinking" if kind == "thinking_level_change" else kind or "unknown"
        yield FactRecord(fact, _without(row.value, _ENVELOPE), row.number)


def _named(row: Row, field: str, kind: str) -> Iterator[FactRecord]:
    """Yield a field that other formats have too, under their common name."""
    if text_or(row.value.get(field)):
        yield FactRecord(kind, {kind: row.value[field]}, row.number)


def _compaction(row: Row, index: _PiIndex) -> Iterator[Record]:
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
    kept = index.first_said(wanted) if wanted else index.last_said(row.number, last) if last else None
    if kept is None and (wanted is not None or last is None):
        text = f"the first kept entry {wanted} is not on the path; read as keeping nothing"
        yield WarningRecord(row.number, text)
    before, details = count_or_none(value.get("tokensBefore")), value.get("details")
    at, told = moment(value.get("timestamp")), {"details": details} if details else {}
    yield CompactionRecord(summary, kept, before, at=at, line=row.number, data=told)


# ---- messages


def _message(row: Row, key: str) -> MessageRecord | WarningRecord:
    """Read a message as an `anthropic` payload, with what pi recorded about it."""
    value = row.value
    message = mapping(value.get("message"))
    known: Json = {}
    try:
        role, content, injected = _written(value, message)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, row.number)
    if role == "assistant":
        counted = mapping(message.get("usage"))
        known["usage"] = usage_of(counted, USAGE) if counted else None
        known["model"] = text_or(message.get("model")) or None
        known["stop"] = STOPS.get(text_or(message.get("stopReason")))
    return message_record(
        {"role": role, "content": content},
        row.number,
        dialect=ANTHROPIC,
        at=moment(value.get("timestamp")) or moment(message.get("timestamp")),
        key=key,
        parent=_parent(value),
        injected=injected,
        **known,
    )


def _written(entry: Json, message: Json) -> tuple[str, str | list[Json], bool]:
    """Return an entry's role, its content, and whether a program wrote it.

    Raises DialectError for a message without a known role or with content of a wrong type.
    """
    kind, role = entry.get("type"), message.get("role")
    if kind == "branch_summary":
        opening = "The following is a summary of a branch that this conversation left:"
        return "user", f"{opening}\n\n{_text(entry, 'summary')}", True
    if kind == "custom_message":
        return "user", _content(entry.get("content")), True
    if role in ("user", "custom", "hookMessage"):
        return "user", _content(message.get("content")), role != "user"
    if role == "assistant":
        return "assistant", _said(message), False
    if role == "toolResult":
        return "user", [_result(message)], False
    if role == "bashExecution":
        return "user", _bash(message), True
    if role in ("branchSummary", "compactionSummary"):
        return "user", _text(message, "summary"), True
    raise DialectError(f"pi writes no role {str(role)[:40]!r}")


def _content(content: Any) -> str | list[Json]:
    """Return text, or text and image blocks; blank texts, which no API accepts, are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise DialectError("the content is neither text nor a list of blocks")
    return [block for one in items(content) if (block := _block(mapping(one)))]


def _said(message: Json) -> list[Json]:
    content, signed = message.get("content"), message.get("api") in _SIGNED
    if not isinstance(content, list):
        raise DialectError("an assistant's content is not a list of blocks")
    return [block for one in items(content) if (block := _block(mapping(one), signed=signed))]


def _block(block: Json, *, signed: bool | None = None) -> Json | None:
    """Write a block; None for a blank text. `signed`: a reply's signatures are Anthropic's (None: no reply).

    A thought without Anthropic's signature is text, as pi itself sends it.
    """
    kind = block.get("type")
    if kind == "image":
        return image_block(text_or(block.get("mimeType")), _text(block, "data"))
    if kind == "thinking" and signed is not None:
        signature = text_or(block.get("thinkingSignature"))
        if block.get("redacted"):
            return {"type": "redacted_thinking", "data": signature}
        if signed and signature:
            return {"type": kind, "thinking": _text(block, "thinking"), "signature": signature}
    elif kind == "toolCall" and signed is not None:
        return _call(block)
    elif kind != "text":
        raise DialectError(f"a block of unknown type {str(kind)[:40]!r}")
    text = _text(block, str(kind))
    return {"type": "text", "text": text} if text.strip() else None


def _call(block: Json) -> Json:
    arguments = block.get("arguments")
    if not isinstance(arguments, dict):
        raise DialectError("the arguments of a call are not an object")
    return {"type": "tool_use", "id": _text(block, "id"), "name": _text(block, "name"), "input": arguments}


def _result(message: Json) -> Json:
    call, content = _text(message, "toolCallId"), _content(message.get("content"))
    written: Json = {"type": "tool_result", "tool_use_id": call, "content": content}
    return {**written, "is_error": True} if message.get("isError") is True else written


def _bash(message: Json) -> str:
    """Return what the model is told about a command that the user ran in the terminal."""
    output = text_or(message.get("output"))
    told = f"The user ran `{_text(message, 'command')}`"
    told += f"\n```\n{output}\n```" if output else " (no output)"
    code = message.get("exitCode")
    if message.get("cancelled") is True:
        return told + "\n(cancelled)"
    return told + f"\nExit code {code}" if code else told


# ---- fields


def _text(holder: Json, key: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        raise DialectError(f"its {key} is not text")
    return value


def _parent(value: Json) -> str | None:
    parent = value.get("parentId")
    return parent if isinstance(parent, str) else None


def _without(value: Json, keys: tuple[str, ...]) -> Json:
    return {key: item for key, item in value.items() if key not in keys}
