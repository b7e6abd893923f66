"""Claude Code's session files: a tree of uuids with multi-line replies, sub-agents and bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.errors import DialectError
from foldline.transcripts import claude_code_lines as written
from foldline.transcripts.claude_code_lines import Index
from foldline.transcripts.lines import Row, count_or_none, mapping, moment, scan_rows, take_rows, text_or
from foldline.transcripts.payloads import message_record, with_models
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    WarningRecord,
    not_a_message,
)
from foldline.transcripts.source import path_of

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
    yield FactRecord("format", {"format": "claude-code", "dialect": ANTHROPIC})
    yield from index.warnings
    yield from with_models(_ClaudeReader(index, path_of(stream)).read(stream))
    if index.branches.get("branches"):
        yield FactRecord("branches", index.branches)
    if index.sidechain_messages:
        yield FactRecord("sidechains", {"messages": index.sidechain_messages})


class _ClaudeReader:
    """Turn lines into records; hold back at most one reply with its results."""

    def __init__(self, index: Index, path: Path | None) -> None:
        self._index = index
        self._path = path
        self._session_known = False
        self._reply: list[Row] = []  # lines of a reply that is not complete yet
        self._reply_left = 0
        self._behind: list[Row] = []  # lines that came between those
        self._calls: set[str] = set()  # call ids of the last reply
        self._results: list[Row] = []  # its results, to be yielded as one message
        self._boundary: Row | None = None
        self._message_of: dict[str, str] = {}  # a line's key -> the key of its message
        self._silent: list[int] = []  # lines without a message; their keys stand for the next message

    def read(self, stream: BinaryIO) -> Iterator[Record]:
        """Yield the records of the file."""
        yield from take_rows(stream, self._take)
        yield from self._end_reply()
        yield from self._end_results()
        yield from self._end_boundary()

    def _take(self, row: Row) -> Iterator[Record]:
        """Take the next line of the file; yield what it completes."""
        if row.number not in self._index.keys:
            yield from _beside(row)
            return
        if not self._session_known and text_or(row.value.get("sessionId")):
            self._session_known = True
            yield FactRecord("session", {k: row.value[k] for k in _SESSION if k in row.value}, row.number)
        if row.value.get("type") == "assistant":
            yield from self._take_reply(row)
        elif self._reply and not _closes_reply(row):
            self._behind.append(row)
        else:
            yield from self._end_reply()
            yield from self._other(row)

    def _take_reply(self, row: Row) -> Iterator[Record]:
        reply = written.message_id(row.value)
        if not self._reply or not reply or written.message_id(self._reply[0].value) != reply:
            yield from self._end_reply()
            self._reply_left = self._index.reply_lines.get(reply, 1)
        self._reply.append(row)
        self._reply_left -= 1
        if self._reply_left <= 0:
            yield from self._end_reply()

    def _end_reply(self) -> Iterator[Record]:
        """Yield the reply held back, then what came between its lines."""
        if not self._reply:
            return
        reply, behind, self._reply, self._behind = self._reply, self._behind, [], []
        yield from self._end_results()
        yield from self._end_boundary()
        values = [row.value for row in reply]
        self._calls = written.call_ids(values)
        known = {"usage": written.usage(values[-1]), "model": written.model(values[-1])}
        yield self._message(reply, "assistant", **known, stop=written.stop(values))
        for row in behind:
            yield from self._other(row)

    def _other(self, row: Row) -> Iterator[Record]:
        """Yield the records of a line that is not a reply."""
        kind = row.value.get("type")
        if kind != "user":
            self._silent.append(row.number)
        if kind == "user":
            yield from self._user(row)
        elif kind == "attachment":
            yield from self._attachment(row)
        elif kind == "system":
            yield from self._system(row)

    def _user(self, row: Row) -> Iterator[Record]:
        answers = written.result_ids(row.value)
        yield from self._stored(row)
        if answers and self._calls.issuperset(answers):
            if self._results and not written.only_results(self._results[-1].value):
                yield from self._end_results()
            self._results.append(row)
            return
        yield from self._end_results()
        if row.value.get("isCompactSummary") is True:
            yield from self._summary(row)
            return
        yield from self._end_boundary()
        meta = row.value.get("isMeta") is True and not answers and not written.has_media(row.value)
        yield self._message([row], "user", injected=meta)

    def _stored(self, row: Row) -> Iterator[FactRecord]:
        """Name the files of results that the model saw only in part, and where they are found here."""
        for call, file in written.stored_results(row.value):
            beside = self._path.with_suffix("") / "tool-results" / Path(file).name if self._path else None
            found = next((str(path) for path in (Path(file), beside) if path and path.is_file()), None)
            yield FactRecord("stored_beside", {"call": call, "file": file, "found": found}, row.number)

    def _summary(self, row: Row) -> Iterator[Record]:
        """Yield a compaction: its summary, with what the boundary line before it says."""
        boundary, self._boundary = self._boundary, None
        summary = self._message([row], "user")
        if isinstance(summary, WarningRecord):
            yield summary
            return
        told = boundary.value if boundary else {}
        tokens = count_or_none(mapping(told.get("compactMetadata")).get("preTokens"))
        head = written.preserved_head(told)
        kept = self._message_of.get(head, head) if self._index.has(head) else None
        yield CompactionRecord(summary.message.text, kept, tokens, at=summary.at, line=row.number)

    def _attachment(self, row: Row) -> Iterator[Record]:
        attachment = mapping(row.value.get("attachment"))
        told = written.attached_content(attachment)
        if told is None:
            yield FactRecord("attachment", attachment, row.number)
            return
        yield from self._end_results()
        content, typed = told
        line = Row(row.number, {**row.value, "message": {"role": "user", "content": content}})
        yield self._message([line], "user", injected=not typed)

    def _system(self, row: Row) -> Iterator[Record]:
        subtype = text_or(row.value.get("subtype"), "system")
        if subtype == "compact_boundary":
            yield from self._end_results()
            yield from self._end_boundary()
            self._boundary = row
        elif subtype == "microcompact_boundary":
            yield FactRecord(subtype, mapping(row.value.get("microcompactMetadata")), row.number)
        elif text_or(row.value.get("content")):
            yield FactRecord(subtype, {"content": row.value["content"]}, row.number)

    def _end_results(self) -> Iterator[Record]:
        if self._results:
            results, self._results = self._results, []
            yield self._message(results, "user")

    def _end_boundary(self) -> Iterator[Record]:
        """Yield a boundary without a summary."""
        if self._boundary:
            boundary, self._boundary = self._boundary, None
            yield FactRecord("boundary", mapping(boundary.value.get("compactMetadata")), boundary.number)

    def _message(self, lines: list[Row], role: str, **known: Any) -> MessageRecord | WarningRecord:
        """Make one message from its lines; later lines that name one of them as a parent mean the message."""
        first = lines[0]
        try:
            payload = written.merge_lines([row.value for row in lines], role)
        except DialectError as error:
            return not_a_message(error, first.number)
        key = self._index.keys[first.number]
        found = message_record(
            payload,
            first.number,
            dialect=ANTHROPIC,
            at=moment(lines[-1].value.get("timestamp")),
            key=key,
            parent=text_or(first.value.get("parentUuid")) or None,
            **known,
        )
        if isinstance(found, WarningRecord):
            return found
        parts = [number for number in self._silent if number < first.number]
        self._silent = [number for number in self._silent if number > first.number]
        parts += [line.number for line in lines[1:]]
        self._message_of.update((self._index.keys[number], key) for number in parts)
        return found


def _closes_reply(row: Row) -> bool:
    """Return whether a line ends a reply: the user's words or a compaction."""
    kind = row.value.get("type")
    return (kind == "user" and not written.result_ids(row.value)) or row.value.get(
        "subtype"
    ) == "compact_boundary"


def _beside(row: Row) -> Iterator[Record]:
    """Yield the facts of a line outside the tree."""
    kind = text_or(row.value.get("type"))
    if kind in _TITLES and text_or(row.value.get(_TITLES[kind])):
        yield FactRecord("title", {"title": row.value[_TITLES[kind]]}, row.number)
    elif kind == "queue-operation" and text_or(row.value.get("content")):
        yield FactRecord(
            "queued", {k: row.value[k] for k in ("operation", "content") if k in row.value}, row.number
        )
