"""GitHub Copilot CLI's event files: one event per line, messages and bookkeeping.

A first pass finds the events that a rewind dropped. A compaction runs in the background: it keeps what was
said meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.transcripts import payloads
from foldline.transcripts.lines import Row, scan_rows, take_rows
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Pictures,
    Record,
    WarningRecord,
    beside,
)

_RESULT = "tool.execution_complete"
_SAID = ("system.message", "user.message", "assistant.message", _RESULT, "system.notification")
_BOOKKEEPING = {
    "hook.start", "hook.end", "assistant.turn_start", "assistant.turn_end", "tool.execution_start",
    "permission.requested", "permission.completed", "session.compaction_start", "session.snapshot_rewind",
}  # fmt: skip
_SESSION = ("sessionId", "version", "copilotVersion", "startTime", "cwd", "gitRoot", "repository", "branch")


def read_copilot(stream: BinaryIO, _name: str) -> Iterator[Record | Pictures]:
    """Read a Copilot CLI session; messages are `openai-chat` payloads, sub-agents are left out.

    A `MessageRecord.key` is the event's id. Messages rewound (`session.snapshot_rewind`) are only counted.
    """
    rewinds = _CopilotRewinds()
    scan_rows(stream, rewinds.add)
    reader = _CopilotReader(rewinds.lines)
    yield from take_rows(stream, reader.take)
    yield from beside("sidechains", {"messages": reader.sidechain})
    yield from beside("left_out", dict(reader.left))
    yield from beside("branches", {"branches": rewinds.count, "messages": rewinds.messages})


class _CopilotRewinds:
    """Which lines were rewound; keeps an id and a line number for each event."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.count = 0
        self.messages = 0
        self._line_of: dict[str, int] = {}
        self._said: set[int] = set()

    def add(self, row: Row) -> None:
        """Note an event; a rewind drops everything from the event that it names."""
        kind = row.get("type")
        self._line_of[row.text("id")] = row.line
        if kind in _SAID:
            self._said.add(row.line)
        if kind == "session.snapshot_rewind":
            lines = range(self._line_of.get(row.inner("data").text("upToEventId"), row.line), row.line)
            self.count += bool(lines)
            self.lines.update(lines)
            self.messages += len(self._said.intersection(lines))
            self._said.difference_update(lines)


class _CopilotReader:
    """Turn events into records."""

    def __init__(self, rewound: set[int]) -> None:
        self.sidechain = 0
        self.left: Counter[str] = Counter()
        self._rewound = rewound
        self._model = ""
        self._system = ""
        self._folding = False  # a compaction is running in the background
        self._kept: str | None = None  # the first message said meanwhile

    def take(self, row: Row) -> Iterator[Record | Pictures]:
        """Take the next event; yield its records."""
        kind, data = row.text("type"), row.inner("data")
        if row.line in self._rewound:
            return
        if row.get("agentId") or data.get("agentId") or data.get("parentToolCallId"):
            self.sidechain += kind in _SAID  # of an agent that a tool call started
        elif kind in _SAID:
            for record in self._said(row, kind, data):
                if isinstance(record, MessageRecord) and self._folding:
                    self._kept = self._kept or record.key
                yield record
        elif kind in _BOOKKEEPING:
            self.left[kind] += 1
            if kind == "session.compaction_start":
                self._folding, self._kept = True, None
        else:
            yield from self._beside(row, kind, data)

    # ---- messages

    def _said(self, row: Row, kind: str, data: Row) -> Iterator[Record | Pictures]:
        """Yield a message and what Copilot put around it."""
        if kind == "assistant.message":
            yield from self._reply(row, data)
        elif kind == _RESULT:
            told = data.inner("result")
            text = told.text("content") or data.inner("error").text("message")
            payload = payloads.answer(data.get("toolCallId"), text)
            yield _message(row, payload, failed=data.get("success") is False)
            yield Pictures(
                [_media(one) for one in told.rows("contents") if _is_media(one)],
                row.time("timestamp"),
                row.line,
            )
        elif kind == "user.message":
            yield from _prompt(row, data)
        elif kind == "system.notification":
            yield _message(row, payloads.user(data.text("content")), injected=True)
        elif data.get("content") == self._system:
            self.left["system.message again"] += 1
        else:
            self._system = data.text("content")
            role = "developer" if data.get("role") == "developer" else "system"
            yield _message(row, {"role": role, "content": data.get("content")})

    def _reply(self, row: Row, data: Row) -> Iterator[Record]:
        self._model = data.text("model") or self._model
        calls = [
            payloads.call(one.get("toolCallId"), one.get("name"), one.get("arguments"))
            for one in data.rows("toolRequests")
        ]
        output = data.count("outputTokens")
        if output is not None:
            yield FactRecord("usage", {"output": output, "key": row.get("id")}, row.line)
        sealed = map(payloads.sealed_thought, data.only(("reasoningOpaque", "encryptedContent")).values())
        payload = payloads.reply(data.text("content"), data.text("reasoningText"), calls, [*sealed])
        if payloads.is_empty(payload):
            yield FactRecord("empty", data, row.line)  # a reply without text, thoughts or calls
        else:
            yield _message(row, payload, model=self._model or None, stop="tools" if calls else "end")

    # ---- events that are not messages

    def _beside(self, row: Row, kind: str, data: Row) -> Iterator[Record]:
        line = row.line
        if kind in ("session.start", "session.resume"):
            told = {**data.inner("context"), **data}
            yield FactRecord("session", {key: told[key] for key in _SESSION if key in told}, line)
            yield from self._switched(data, "selectedModel")
        elif kind == "session.model_change":
            yield from self._switched(data, "newModel")
        elif kind == "session.title_changed" and data.text("title"):
            yield from data.facts(title="title")
        elif kind == "session.compaction_complete":
            yield self._compaction(row, data)
        else:
            yield FactRecord("usage" if kind == "session.shutdown" else kind or "unknown", data, line)

    def _switched(self, data: Row, field: str) -> Iterator[Record]:
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
    """Yield what the user typed; what Copilot put around it follows as an injected message."""
    typed, sent = data.get("content"), data.text("transformedContent")
    attached = data.rows("attachments")
    for one in attached:
        if not _is_media(one):
            yield FactRecord("attachment", one, row.line)
    payload = payloads.user(typed, [_media(one) for one in attached if _is_media(one)])
    yield _message(row, payload, injected=data.text("source", "user") != "user")
    around = (sent.replace(typed, "", 1) if isinstance(typed, str) else sent).strip()
    if around:
        yield message_record(payloads.user(around), row.line, at=row.time("timestamp"), injected=True)


def _message(row: Row, payload: dict[str, Any], **known: Any) -> MessageRecord | WarningRecord:
    """Make the message of an event, with its id, parent and time."""
    known |= {"key": row.text("id") or None, "parent": row.text("parentId") or None}
    return message_record(payload, row.line, at=row.time("timestamp"), **known)


def _is_media(one: Row) -> bool:
    """Return whether an attachment is here, as base64."""
    return bool(one.text("mimeType") and one.text("data"))


def _media(one: Row) -> dict[str, Any]:
    return payloads.packed(one["mimeType"], one["data"], one.text("displayName"))
