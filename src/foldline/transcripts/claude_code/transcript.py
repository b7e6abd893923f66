"""Claude Code's session files: a tree of uuids with multi-line replies, sub-agents and bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from foldline import dialects
from foldline.core.log.messages import Message
from foldline.errors import DialectError
from foldline.transcripts.claude_code import messages as written
from foldline.transcripts.claude_code.index import Index, preserved_head
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.lines import Row, read_rows, scan_rows
from foldline.transcripts.shared.source import path_of
from foldline.transcripts.shared.values import count_or_none, items, mapping, moment, text_or

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
    yield FactRecord("format", {"format": "claude-code", "dialect": "anthropic"})
    yield from index.warnings
    reader = _ClaudeReader(index, path_of(stream))
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            yield item
        else:
            yield from reader.take(item)
    yield from reader.end()
    if index.branches.get("branches"):
        yield FactRecord("branches", index.branches)
    if index.sidechain_messages:
        yield FactRecord("sidechains", {"messages": index.sidechain_messages})


class _ClaudeReader:
    """Turn lines into records; hold back at most one reply with its results."""

    def __init__(self, index: Index, path: Path | None) -> None:
        self._index = index
        self._path = path
        self._session_told = False
        self._model = ""
        self._reply: list[Row] = []  # lines of a reply that is not complete yet
        self._reply_left = 0
        self._behind: list[Row] = []  # lines that came between those
        self._calls: set[str] = set()  # call ids of the last reply
        self._results: list[Row] = []  # its results, to be yielded as one message
        self._boundary: Row | None = None
        self._stands_in: dict[str, str] = {}  # a line's key -> the key of its message
        self._silent: list[int] = []  # lines without a message; their keys stand for the next message

    def take(self, row: Row) -> Iterator[Record]:
        """Take the next line of the file; yield what it completes."""
        if row.number not in self._index.keys:
            yield from _beside(row)
            return
        if not self._session_told and text_or(row.value.get("sessionId")):
            self._session_told = True
            yield FactRecord("session", {k: row.value[k] for k in _SESSION if k in row.value}, row.number)
        if row.value.get("type") == "assistant":
            yield from self._take_reply(row)
        elif self._reply and not _closes_reply(row):
            self._behind.append(row)
        else:
            yield from self._end_reply()
            yield from self._tell(row)

    def end(self) -> Iterator[Record]:
        """Yield what was held back."""
        yield from self._end_reply()
        yield from self._end_results()
        yield from self._end_boundary()

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
        model = written.model(values[-1])
        if model and model != self._model:
            self._model = model
            yield FactRecord("model", {"model": model}, reply[0].number)
        yield self._heard(
            reply, "assistant", usage=written.usage(values[-1]), model=model, stop=written.stop(values)
        )
        for row in behind:
            yield from self._tell(row)

    def _tell(self, row: Row) -> Iterator[Record]:
        """Yield the records of a line that is not a reply."""
        kind = row.value.get("type")
        if kind != "user":
            self._silent.append(row.number)
        if kind == "user":
            yield from self._tell_user(row)
        elif kind == "attachment":
            yield from self._tell_attachment(row)
        elif kind == "system":
            yield from self._tell_system(row)

    def _tell_user(self, row: Row) -> Iterator[Record]:
        answers = written.result_ids(row.value)
        yield from self._stored(row)
        if answers and self._calls.issuperset(answers):
            if self._results and not _only_results(self._results[-1]):
                yield from self._end_results()
            self._results.append(row)
            return
        yield from self._end_results()
        if row.value.get("isCompactSummary") is True:
            yield from self._tell_summary(row)
            return
        yield from self._end_boundary()
        heard = self._heard([row], "user")
        if isinstance(heard, MessageRecord):
            injected = row.value.get("isMeta") is True or is_injected(heard.message.text)
            heard = _injected(heard, not answers and injected and not _has_media(heard.message))
        yield heard

    def _stored(self, row: Row) -> Iterator[FactRecord]:
        """Name the files of results that the model saw only in part, and where they are found here."""
        for call, file in written.stored_results(row.value):
            beside = self._path.with_suffix("") / "tool-results" / Path(file).name if self._path else None
            found = next((str(path) for path in (Path(file), beside) if path and path.is_file()), None)
            yield FactRecord("stored_beside", {"call": call, "file": file, "found": found}, row.number)

    def _tell_summary(self, row: Row) -> Iterator[Record]:
        """Yield a compaction: its summary, with what the boundary line before it says."""
        boundary, self._boundary = self._boundary, None
        heard = self._heard([row], "user")
        if isinstance(heard, WarningRecord):
            yield heard
            return
        told = boundary.value if boundary else {}
        tokens = count_or_none(mapping(told.get("compactMetadata")).get("preTokens"))
        head = preserved_head(told)
        kept = self._stands_in.get(head, head) if self._index.has(head) else None
        yield CompactionRecord(heard.message.text, kept, tokens, at=heard.at, line=row.number)

    def _tell_attachment(self, row: Row) -> Iterator[Record]:
        attachment = mapping(row.value.get("attachment"))
        told = written.attached_content(attachment)
        if told is None:
            yield FactRecord("attachment", attachment, row.number)
            return
        yield from self._end_results()
        content, typed = told
        line = Row(row.number, {**row.value, "message": {"role": "user", "content": content}})
        heard = self._heard([line], "user")
        yield _injected(heard, not typed) if isinstance(heard, MessageRecord) else heard

    def _tell_system(self, row: Row) -> Iterator[Record]:
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
            yield self._heard(results, "user")

    def _end_boundary(self) -> Iterator[Record]:
        """Yield a boundary without a summary."""
        if self._boundary:
            boundary, self._boundary = self._boundary, None
            yield FactRecord("boundary", mapping(boundary.value.get("compactMetadata")), boundary.number)

    def _heard(self, lines: list[Row], role: str, **known: Any) -> MessageRecord | WarningRecord:
        """Make one message from its lines."""
        first = lines[0]
        try:
            payload = written.merge_lines([row.value for row in lines], role)
            message = dialects.get("anthropic").decode(payload)
        except (DialectError, RecursionError) as error:
            reason = "nested too deep" if isinstance(error, RecursionError) else str(error)
            return WarningRecord(first.number, f"not a message: {reason} (left out)")
        key = self._index.keys[first.number]
        parts = [number for number in self._silent if number < first.number]
        self._silent = [number for number in self._silent if number > first.number]
        parts += [line.number for line in lines[1:]]
        self._stands_in.update((self._index.keys[number], key) for number in parts)
        return MessageRecord(
            msgspec.structs.replace(message, **known),
            at=moment(lines[-1].value.get("timestamp")),
            key=key,
            parent=text_or(first.value.get("parentUuid")) or None,
            line=first.number,
        )


def _closes_reply(row: Row) -> bool:
    """Return whether a line ends a reply: the user's words or a compaction."""
    kind = row.value.get("type")
    return (kind == "user" and not written.result_ids(row.value)) or row.value.get(
        "subtype"
    ) == "compact_boundary"


def _only_results(row: Row) -> bool:
    blocks = items(mapping(row.value.get("message")).get("content"))
    return all(mapping(block).get("type") == "tool_result" for block in blocks)


def _has_media(message: Message) -> bool:
    """Return whether a message holds media: pasted images are the user's own."""
    return any(part.__struct_config__.tag == "media" for part in message.parts)


def _injected(heard: MessageRecord, flag: bool) -> MessageRecord:
    return msgspec.structs.replace(heard, message=msgspec.structs.replace(heard.message, injected=flag))


def _beside(row: Row) -> Iterator[Record]:
    """Yield the facts of a line outside the tree."""
    kind = text_or(row.value.get("type"))
    if kind in _TITLES and text_or(row.value.get(_TITLES[kind])):
        yield FactRecord("title", {"title": row.value[_TITLES[kind]]}, row.number)
    elif kind == "queue-operation" and text_or(row.value.get("content")):
        yield FactRecord(
            "queued", {k: row.value[k] for k in ("operation", "content") if k in row.value}, row.number
        )
