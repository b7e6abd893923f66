"""Claude Code's session files: a tree of uuids with multi-line replies, sub-agents and bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from foldline.core.log.messages import Usage
from foldline.dialects import ANTHROPIC
from foldline.dialects.payload import items_of
from foldline.errors import DialectError
from foldline.transcripts import claude_code_lines
from foldline.transcripts.claude_code_lines import BOUNDARY, Index, LineGroup
from foldline.transcripts.lines import Row, count_fact, scan_rows, take_rows, text_or
from foldline.transcripts.payloads import message_record, not_a_message, usage_of
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord

SYNTHETIC = "<synthetic>"  # the model of replies that Claude Code wrote itself
STOPS = {
    "end_turn": "end", "stop_sequence": "end", "tool_use": "tools", "max_tokens": "length", "refusal": "end",
}  # fmt: skip
USAGE = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
WRITTEN, HOURLY = "cache_creation", "ephemeral_1h_input_tokens"  # the field in USAGE by its time to live

_SESSION = ("sessionId", "cwd", "version", "gitBranch", "agentId")
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


def read_claude_code(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read the newest path of a Claude Code file; messages are `anthropic` payloads, sub-agents are left out.

    The lines of one reply (with the same `message.id`) are one message, as are the results of one batch. A
    `MessageRecord.key` is the uuid of the message's first line.
    """
    index = Index()
    scan_rows(stream, index.add)
    index.finish()
    yield from index.warnings
    yield from take_rows(stream, _ClaudeReader(index).take)
    yield from count_fact("branches", index.branches)
    yield from count_fact("sidechains", {"messages": index.sidechain_messages})


class _ClaudeReader:
    """Turns groups of lines into records; holds back lines until their group is complete."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._session_known = False
        self._group_of = {line: number for number, group in enumerate(index.groups) for line in group.lines}
        self._held: dict[int, list[Row]] = {}
        self._next = 0

    def take(self, row: Row) -> Iterator[Record]:
        number = self._group_of.get(row.line)
        if number is None:
            yield from _facts(row)
            return
        if not self._session_known and row.text("sessionId"):
            self._session_known = True
            yield FactRecord("session", {key: row[key] for key in _SESSION if key in row}, row.line)
        self._held.setdefault(number, []).append(row)
        groups = self._index.groups
        while len(self._held.get(self._next, ())) == len(groups[self._next].lines):
            yield from self._records(groups[self._next], self._held.pop(self._next))
            self._next += 1
            if self._next == len(groups):
                break

    def _records(self, group: LineGroup, rows: list[Row]) -> Iterator[Record]:
        first = rows[0]
        if group.kind == "assistant":
            yield _message(group, rows, "assistant", **_reply_fields(rows))
        elif group.kind == "results":
            yield _message(group, rows, "user")
        elif group.kind == "user":
            yield _message(group, rows, "user", injected=_is_meta(first))
        elif group.kind in ("summary", BOUNDARY):
            yield self._compaction(group, rows)
        elif group.kind == "attached":
            content, typed = claude_code_lines.attached_text(first.inner("attachment")) or ("", False)
            first["message"] = {"content": content}
            yield _message(group, rows, "user", injected=not typed)
        elif group.kind == "attachment":
            yield FactRecord("attachment", first.inner("attachment"), first.line)
        elif group.kind == "system" and first.get("subtype") == "microcompact_boundary":
            yield FactRecord("microcompact_boundary", first.inner("microcompactMetadata"), first.line)
        elif group.kind == "system" and first.text("content"):
            yield FactRecord(first.text("subtype", "system"), {"content": first["content"]}, first.line)

    def _compaction(self, group: LineGroup, rows: list[Row]) -> Record:
        """Return a compaction: its summary, with the data of the boundary line before it."""
        last = rows[-1]
        metadata = rows[0].inner("compactMetadata") if rows[0].get("subtype") == BOUNDARY else Row()
        if not claude_code_lines.is_summary(last):
            return FactRecord("boundary", metadata, last.line)
        summary = _message(group, [last], "user")
        if isinstance(summary, WarningRecord):
            return summary
        kept_uuids = items_of(metadata.inner("preservedMessages").get("uuids"))
        head = metadata.inner("preservedSegment").get("headUuid") or next(iter(kept_uuids), None)
        kept, tokens = self._index.message_at(head, group), metadata.count("preTokens")
        return CompactionRecord(summary.message.text, kept, tokens, at=summary.at, line=last.line)


def _message(group: LineGroup, rows: list[Row], role: str, **fields: Any) -> MessageRecord | WarningRecord:
    first = rows[0]
    try:
        payload = claude_code_lines.merge_lines([row.inner("message").get("content") for row in rows], role)
    except DialectError as error:
        return not_a_message(error, first.line)
    at, parent = rows[-1].time("timestamp"), first.text("parentUuid") or None
    return message_record(
        payload, first.line, dialect=ANTHROPIC, at=at, key=group.key, parent=parent, **fields
    )


def _reply_fields(rows: list[Row]) -> dict[str, Any]:
    """Return a reply's usage, model and stop; a synthetic reply has no usage and no model."""
    message = rows[-1].inner("message")
    is_synthetic, usage = message.get("model") == SYNTHETIC, message.inner("usage")
    reasons = [row.inner("message").text("stop_reason") for row in rows]
    stop = next((STOPS[reason] for reason in reversed(reasons) if reason in STOPS), None)
    if any(row.get("isApiErrorMessage") is True for row in rows):
        stop = "error"
    return {
        "usage": _usage(usage) if usage and not is_synthetic else None,
        "model": message.text("model") or None if not is_synthetic else None,
        "stop": stop or ("tools" if claude_code_lines.call_ids(rows) else None),
    }


def _usage(counts: Row) -> Usage:
    """Read a usage; Claude Code has most of its cache kept for an hour, at a higher price."""
    usage = usage_of(counts, USAGE)
    hourly = counts.inner(WRITTEN).count(HOURLY) or 0
    return msgspec.structs.replace(usage, cache_write_hour=min(hourly, usage.cache_write))


def _is_meta(row: Row) -> bool:
    """Return whether a line is marked as a program's and has no results or media."""
    kinds = {block.text("type") for block in claude_code_lines.blocks_of(row)}
    return row.get("isMeta") is True and kinds.isdisjoint(("tool_result", "image", "document"))


def _facts(row: Row) -> Iterator[Record]:
    """Yield the facts of a line that is not in the tree."""
    kind = text_or(row.get("type"))
    if kind in _TITLES:
        yield from row.facts(title=_TITLES[kind])
    elif kind == "queue-operation" and row.text("content"):
        yield FactRecord(
            "queued", {key: row[key] for key in ("operation", "content") if key in row}, row.line
        )
