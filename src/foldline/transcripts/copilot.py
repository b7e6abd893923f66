"""GitHub Copilot CLI's event files: one event per line, messages and bookkeeping.

A first pass finds the events that a rewind dropped. A compaction runs in the background: it keeps messages
that arrive meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.transcripts import payloads
from foldline.transcripts.lines import Row, count_fact, scan_rows, take_rows
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    ResultImages,
    WarningRecord,
)

_RESULT = "tool.execution_complete"
_SAID = ("system.message", "user.message", "assistant.message", _RESULT, "system.notification")
_BOOKKEEPING = {
    "hook.start", "hook.end", "assistant.turn_start", "assistant.turn_end", "tool.execution_start",
    "permission.requested", "permission.completed", "session.compaction_start", "session.snapshot_rewind",
}  # fmt: skip
_SESSION = ("sessionId", "version", "copilotVersion", "startTime", "cwd", "gitRoot", "repository", "branch")


def read_copilot(stream: BinaryIO, _name: str) -> Iterator[Record | ResultImages]:
    """Read a Copilot CLI session; messages are `openai-chat` payloads, sub-agents are left out.

    A `MessageRecord.key` is the event's id. Messages rewound (`session.snapshot_rewind`) are only counted.
    """
    rewinds = _CopilotRewinds()
    scan_rows(stream, rewinds.add)
    reader = _CopilotReader()
    yield from take_rows(stream, lambda row: () if rewinds.covers(row.line) else reader.take(row))
    yield from count_fact("sidechains", {"messages": reader.sidechain})
    yield from count_fact("left_out", dict(reader.left_out))
    yield from count_fact("branches", {"branches": rewinds.count, "messages": rewinds.messages})


class _CopilotRewinds:
    """Finds the lines that were rewound; keeps an id and a line number for each event."""

    def __init__(self) -> None:
        self.count = 0
        self.messages = 0
        self._last = 0
        self._lines: set[int] = set()
        self._line_of: dict[str, int] = {}
        self._messages: set[int] = set()

    def add(self, row: Row) -> None:
        """Note an event; a rewind drops everything from a given event on."""
        kind, self._last = row.get("type"), row.line
        self._line_of[row.text("id")] = row.line
        if kind in _SAID:
            self._messages.add(row.line)
        if kind == "session.snapshot_rewind":
            lines = range(self._line_of.get(row.inner("data").text("upToEventId"), row.line), row.line)
            self.count += bool(lines)
            self._lines.update(lines)
            self.messages += len(self._messages.intersection(lines))
            self._messages.difference_update(lines)

    def covers(self, line: int) -> bool:
        """Return whether a line was rewound, or written since: it may rewind others."""
        return line > self._last or line in self._lines


class _CopilotReader:
    """Turns events into records."""

    def __init__(self) -> None:
        self.sidechain = 0
        self.left_out: Counter[str] = Counter()
        self._model = ""
        self._system = ""
        self._folding = False  # a compaction is running in the background
        self._kept: str | None = None  # the first message since it started

    def take(self, row: Row) -> Iterator[Record | ResultImages]:
        kind, data = row.text("type"), row.inner("data")
        if row.get("agentId") or data.get("agentId") or data.get("parentToolCallId"):
            self.sidechain += kind in _SAID  # of a sub-agent
        elif kind in _SAID:
            for record in self._messages(row, kind, data):
                if isinstance(record, MessageRecord) and self._folding:
                    self._kept = self._kept or record.key
                yield record
        elif kind in _BOOKKEEPING:
            self.left_out[kind] += 1
            if kind == "session.compaction_start":
                self._folding, self._kept = True, None
        else:
            yield from self._facts(row, kind, data)

    # ---- messages

    def _messages(self, row: Row, kind: str, data: Row) -> Iterator[Record | ResultImages]:
        """Yield a message, and the text that Copilot added to it."""
        if kind == "assistant.message":
            yield from self._reply(row, data)
        elif kind == _RESULT:
            result = data.inner("result")
            text = result.text("content") or data.inner("error").text("message")
            payload = payloads.answer(data.get("toolCallId"), text)
            yield _message(row, payload, failed=data.get("success") is False)
            yield ResultImages(
                [_media(content) for content in result.rows("contents") if _is_media(content)],
                row.time("timestamp"),
                row.line,
            )
        elif kind == "user.message":
            yield from _prompt(row, data)
        elif kind == "system.notification":
            yield _message(row, payloads.user(data.text("content")), injected=True)
        elif data.get("content") == self._system:
            self.left_out["system.message again"] += 1
        else:
            self._system = data.text("content")
            role = "developer" if data.get("role") == "developer" else "system"
            yield _message(row, {"role": role, "content": data.get("content")})

    def _reply(self, row: Row, data: Row) -> Iterator[Record]:
        self._model = data.text("model") or self._model
        calls = [
            payloads.call(request.get("toolCallId"), request.get("name"), request.get("arguments"))
            for request in data.rows("toolRequests")
        ]
        output = data.count("outputTokens")
        if output is not None:
            yield FactRecord("usage", {"output": output, "key": row.get("id")}, row.line)
        sealed = map(payloads.sealed_thought, data.only(("reasoningOpaque", "encryptedContent")).values())
        payload = payloads.reply(data.text("content"), data.text("reasoningText"), calls, [*sealed])
        if payloads.is_empty(payload):
            yield FactRecord("empty", data, row.line)
        else:
            yield _message(row, payload, model=self._model or None, stop="tools" if calls else "end")

    # ---- events that are not messages

    def _facts(self, row: Row, kind: str, data: Row) -> Iterator[Record]:
        line = row.line
        if kind in ("session.start", "session.resume"):
            fields = {**data.inner("context"), **data}
            yield FactRecord("session", {key: fields[key] for key in _SESSION if key in fields}, line)
            yield from self._model_fact(data, "selectedModel")
        elif kind == "session.model_change":
            yield from self._model_fact(data, "newModel")
        elif kind == "session.title_changed" and data.text("title"):
            yield from data.facts(title="title")
        elif kind == "session.compaction_complete":
            yield self._compaction(row, data)
        else:
            yield FactRecord("usage" if kind == "session.shutdown" else kind or "unknown", data, line)

    def _model_fact(self, data: Row, field: str) -> Iterator[Record]:
        self._model = data.text(field) or self._model
        yield from data.facts(model=field)

    def _compaction(self, row: Row, data: Row) -> Record:
        kept, self._kept, self._folding = self._kept, None, False
        summary = data.text("summaryContent")
        if data.get("success") is False:
            return FactRecord("compaction_failed", data, row.line)
        if not summary.strip():
            return FactRecord("boundary", data, row.line)
        tokens, at = data.count("preCompactionTokens"), row.time("timestamp")
        return CompactionRecord(summary, kept, tokens, at=at, line=row.line)


def _prompt(row: Row, data: Row) -> Iterator[Record]:
    """Yield the user's text; text that Copilot added follows as an injected message."""
    typed, sent = data.get("content"), data.text("transformedContent")
    media: list[dict[str, Any]] = []
    for attachment in data.rows("attachments"):
        if _is_media(attachment):
            media.append(_media(attachment))
        else:
            yield FactRecord("attachment", attachment, row.line)
    payload = payloads.user(typed, media)
    yield _message(row, payload, injected=data.text("source", "user") != "user")
    added = (sent.replace(typed, "", 1) if isinstance(typed, str) else sent).strip()
    if added:
        yield message_record(payloads.user(added), row.line, at=row.time("timestamp"), injected=True)


def _message(row: Row, payload: dict[str, Any], **fields: Any) -> MessageRecord | WarningRecord:
    """Decode the message of an event, with its id, parent and time."""
    fields |= {"key": row.text("id") or None, "parent": row.text("parentId") or None}
    return message_record(payload, row.line, at=row.time("timestamp"), **fields)


def _is_media(attachment: Row) -> bool:
    """Return whether an attachment has its data, as base64."""
    return bool(attachment.text("mimeType") and attachment.text("data"))


def _media(attachment: Row) -> dict[str, Any]:
    return payloads.packed(attachment["mimeType"], attachment["data"], attachment.text("displayName"))
