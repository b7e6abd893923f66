"""pi's session files: version 1 (a counted sequence) to 3 (a tree of id and parentId).

A first pass builds the tree and finds the path to the last line; a second reads the lines on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, count_fact, scan_rows, take_rows
from foldline.transcripts.payloads import BlockNames, message_record, need_text, not_a_message, usage_of
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.tree import Node, Tree

STOPS = {"stop": "end", "toolUse": "tools", "length": "length", "aborted": "aborted", "error": "error"}
USAGE = ("input", "cacheRead", "cacheWrite", "output")  # they do not overlap
BLOCKS = BlockNames("toolCall", "arguments", failed="isError", signature="thinkingSignature", mime="mimeType")

_SAID = ("message", "custom_message", "branch_summary")
_NAMED = {"model_change": {"model": "modelId"}, "session_info": {"title": "name"}}
_SIGNED = ("anthropic-messages", "bedrock-converse-stream")  # APIs with Anthropic signatures


def read_pi(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a pi session along the path to its last line; messages become `anthropic` payloads.

    A `MessageRecord.key` is pi's entry id; in version 1 it is the entry's count from the header (0).
    """
    index = _PiIndex()
    scan_rows(stream, index.add)
    on = index.tree.path(len(index.tree.nodes) - 1)
    index.path = index.tree.marked(on)
    index.places = {node.line: place for place, node in enumerate(index.path)}
    yield from index.tree.warnings()
    yield from take_rows(stream, lambda row: _records(row, index))
    yield from count_fact("branches", index.tree.branches(on))


class _PiIndex:
    """The first pass over a file: the tree, and the newest path."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.path: list[Node] = []
        self.places: dict[int, int] = {}  # line -> its place on the path
        self._count = 0
        self._compactions: set[str] = set()

    def add(self, row: Row) -> None:
        """Note a line: a node of the tree, or a header."""
        if row.get("type") != "session":
            key = row.text("id") or str(self._count)
            follows = not row.text("id") or "parentId" not in row
            if row.get("type") == "compaction":
                self._compactions.add(key)
            said = row.text("type") in _SAID and not _is_hidden(row)
            self.tree.add(Node(key, _parent(row), row.line, said, follows))
        self._count += 1

    def first_message_from(self, key: str) -> str | None:
        """Return the key of the first message on the path at or after the entry with that key."""
        place = self.tree.places.get(key)
        start = None if place is None else self.places.get(self.tree.nodes[place].line)
        if start is None:
            return None
        return next((self.path[at].key for at in range(start, len(self.path)) if self.path[at].said), None)

    def first_of_last(self, line: int, count: int) -> str | None:
        """Return the key of the first of the last `count` messages before a line, back to a compaction."""
        first: str | None = None
        for place in range(self.places[line] - 1, -1, -1):
            node = self.path[place]
            if count == 0 or node.key in self._compactions:
                break
            if node.said:
                first, count = node.key, count - 1
        return first


def _records(row: Row, index: _PiIndex) -> Iterator[Record]:
    """Yield the records of a line: the header's, or those of a line on the path."""
    kind, place = row.text("type"), index.places.get(row.line)
    if kind == "session":
        yield FactRecord("session", row.without("type"), row.line)
        yield from row.facts(model="modelId")
    elif place is None:
        return
    elif kind == "compaction":
        yield from _compaction(row, index)
    elif _is_hidden(row):
        yield WarningRecord(row.line, "a command that the user ran with !!, hidden from the model (left out)")
    elif kind in _SAID:
        yield _message(row, index.path[place].key)
    elif kind in _NAMED:
        yield from row.facts(**_NAMED[kind])
    else:
        fact = "thinking" if kind == "thinking_level_change" else kind or "unknown"
        yield FactRecord(fact, row.without("type", "id", "parentId", "timestamp"), row.line)


def _compaction(row: Row, index: _PiIndex) -> Iterator[Record]:
    """Yield a compaction; version 1 counts its first kept entry from the header, later ones give its id.

    pi's plan for its files counts the kept messages backwards, never across an earlier compaction.
    """
    summary = row.get("summary")
    if not isinstance(summary, str):
        yield WarningRecord(row.line, "a compaction without a summary (left out)")
        return
    counted, last = row.count("firstKeptEntryIndex"), row.count("keepLastMessages")
    first_kept = row.text("firstKeptEntryId") or (None if counted is None else str(counted))
    kept = (
        index.first_message_from(first_kept)
        if first_kept
        else index.first_of_last(row.line, last)
        if last
        else None
    )
    if kept is None and (first_kept is not None or last is None):
        text = f"the first kept entry {first_kept} is not on the path; read as keeping nothing"
        yield WarningRecord(row.line, text)
    details, at = row.only(["details"]), row.time("timestamp")
    yield CompactionRecord(summary, kept, row.count("tokensBefore"), at=at, line=row.line, data=details)


# ---- messages


def _is_hidden(row: Row) -> bool:
    """Return whether a line is a command (`!!`) that pi hides from the model."""
    message = row.inner("message")
    return message.get("role") == "bashExecution" and message.get("excludeFromContext") is True


def _message(row: Row, key: str) -> MessageRecord | WarningRecord:
    """Read a message as an `anthropic` payload, with pi's data about it."""
    message = row.inner("message")
    fields: dict[str, Any] = {"key": key, "parent": _parent(row)}
    fields["at"] = row.time("timestamp") or message.time("timestamp")
    try:
        role, content, fields["injected"] = _role_and_content(row, message)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, row.line)
    if role == "assistant":
        usage = message.inner("usage")
        fields["usage"] = usage_of(usage, USAGE) if usage else None
        fields["model"] = message.text("model") or None
        fields["stop"] = STOPS.get(message.text("stopReason"))
    return message_record({"role": role, "content": content}, row.line, dialect=ANTHROPIC, **fields)


def _role_and_content(entry: Row, message: Row) -> tuple[str, Any, bool]:
    """Return an entry's role, its content, and whether a program wrote it.

    Raises DialectError for a message without a known role or with content of a wrong type.
    """
    kind, role = entry.get("type"), message.get("role")
    if kind == "branch_summary":
        opening = "The following is a summary of a branch that this conversation left:"
        return "user", f"{opening}\n\n{need_text(entry, 'summary')}", True
    if kind == "custom_message":
        return "user", _content(entry), True
    if role in ("user", "custom", "hookMessage"):
        return "user", _content(message), role != "user"
    if role == "assistant":
        if not isinstance(message.get("content"), list):
            raise DialectError("an assistant's content is not a list of blocks")
        signed = message.get("api") in _SIGNED
        blocks = (BLOCKS.read(block, signed=signed) for block in message.rows("content"))
        return "assistant", [block for block in blocks if block], False
    if role == "toolResult":
        result = {"type": "tool_result", "tool_use_id": need_text(message, "toolCallId")}
        return "user", [BLOCKS.marked({**result, "content": _content(message)}, message)], False
    if role == "bashExecution":
        return "user", _bash(message), True
    if role in ("branchSummary", "compactionSummary"):
        return "user", need_text(message, "summary"), True
    raise DialectError(f"unknown role of pi's messages: {str(role)[:40]!r}")


def _content(holder: Row) -> str | list[dict[str, Any]]:
    """Return text, or text and image blocks; blank texts, which no API accepts, are left out."""
    content = holder.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise DialectError("the content is neither text nor a list of blocks")
    blocks = holder.rows("content")
    for block in blocks:
        if block.get("type") not in ("text", "image"):
            raise DialectError(f"a block of unknown type {str(block.get('type'))[:40]!r}")
    return [block for raw in blocks if (block := BLOCKS.read(raw))]


def _bash(message: Row) -> str:
    """Return the text that the model gets about a command that the user ran in the terminal."""
    output, code = message.text("output"), message.get("exitCode")
    text = f"The user ran `{need_text(message, 'command')}`"
    text += f"\n```\n{output}\n```" if output else " (no output)"
    if message.get("cancelled") is True:
        return text + "\n(cancelled)"
    return text + f"\nExit code {code}" if code else text


def _parent(row: Row) -> str | None:
    parent = row.get("parentId")
    return parent if isinstance(parent, str) else None
