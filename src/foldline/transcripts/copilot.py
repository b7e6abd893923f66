"""GitHub Copilot CLI's event files: one event per line, messages and bookkeeping.

A first pass finds the events that a rewind dropped. A compaction runs in the background: it keeps what was
said meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.dialects import OPENAI_CHAT
from foldline.transcripts import payloads
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
from foldline.transcripts.payloads import message_record, with_models
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord

_RESULT = "tool.execution_complete"
_SAID = ("system.message", "user.message", "assistant.message", _RESULT, "system.notification")
_BOOKKEEPING = {
    "hook.start", "hook.end", "assistant.turn_start", "assistant.turn_end", "tool.execution_start",
    "permission.requested", "permission.completed", "session.compaction_start", "session.snapshot_rewind",
}  # fmt: skip
_SESSION = ("sessionId", "version", "copilotVersion", "startTime", "cwd", "gitRoot", "repository", "branch")

Json = dict[str, Any]


def read_copilot(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a Copilot CLI session; messages are `openai-chat` payloads, sub-agents are left out.

    A `MessageRecord.key` is the event's id. Messages rewound (`session.snapshot_rewind`) are only counted.
    """
    rewinds = _CopilotRewinds()
    scan_rows(stream, rewinds.add)
    yield FactRecord("format", {"format": "copilot-cli", "dialect": OPENAI_CHAT})
    yield from with_models(_CopilotReader(rewinds.lines).read(stream))
    if rewinds.lines:
        yield FactRecord("branches", {"branches": rewinds.count, "messages": rewinds.messages})


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
        kind = row.value.get("type")
        self._line_of[text_or(row.value.get("id"))] = row.number
        if kind in _SAID:
            self._said.add(row.number)
        if kind == "session.snapshot_rewind":
            target = text_or(mapping(row.value.get("data")).get("upToEventId"))
            lines = range(self._line_of.get(target, row.number), row.number)
            self.count += bool(lines)
            self.lines.update(lines)
            self.messages += len(self._said.intersection(lines))
            self._said.difference_update(lines)


class _CopilotReader:
    """Turn events into records; hold back the images of a tool batch until its last result."""

    def __init__(self, rewound: set[int]) -> None:
        self._rewound = rewound
        self._sidechain = 0
        self._model = ""
        self._system = ""
        self._pictures: list[Record] = []
        self._left: Counter[str] = Counter()
        self._folding = False  # a compaction is running in the background
        self._kept: str | None = None  # the first message said meanwhile

    def read(self, stream: BinaryIO) -> Iterator[Record]:
        """Yield the records of a file, and count what was left out."""
        yield from take_rows(stream, self._take)
        yield from self._end_batch()
        if self._sidechain:
            yield FactRecord("sidechains", {"messages": self._sidechain})
        if self._left:
            yield FactRecord("left_out", dict(self._left))

    def _take(self, row: Row) -> Iterator[Record]:
        """Take the next event; yield its records."""
        kind, data = text_or(row.value.get("type")), mapping(row.value.get("data"))
        if row.number in self._rewound:
            return
        if row.value.get("agentId") or data.get("agentId") or data.get("parentToolCallId"):
            self._sidechain += kind in _SAID  # of an agent that a tool call started
        elif kind in _SAID:
            if kind != _RESULT:
                yield from self._end_batch()
            for record in self._said(row, kind, data):
                if isinstance(record, MessageRecord) and self._folding:
                    self._kept = self._kept or record.key
                yield record
        elif kind in _BOOKKEEPING:
            self._left[kind] += 1
            if kind == "session.compaction_start":
                self._folding, self._kept = True, None
        else:
            yield from self._beside(row, kind, data)

    def _end_batch(self) -> Iterator[Record]:
        pictures, self._pictures = self._pictures, []
        yield from pictures

    # ---- messages

    def _said(self, row: Row, kind: str, data: Json) -> Iterator[Record]:
        """Yield a message and what Copilot put around it."""
        if kind == "assistant.message":
            yield from self._reply(row, data)
        elif kind == _RESULT:
            yield from self._result(row, data)
        elif kind == "user.message":
            yield from self._prompt(row, data)
        elif kind == "system.notification":
            yield _message(row, payloads.user(text_or(data.get("content"))), injected=True)
        elif data.get("content") == self._system:
            self._left["system.message again"] += 1
        else:
            self._system = text_or(data.get("content"))
            role = "developer" if data.get("role") == "developer" else "system"
            yield _message(row, {"role": role, "content": data.get("content")})

    def _prompt(self, row: Row, data: Json) -> Iterator[Record]:
        """Yield what the user typed; what Copilot put around it follows as an injected message."""
        typed, sent = data.get("content"), text_or(data.get("transformedContent"))
        attached = [mapping(one) for one in items(data.get("attachments"))]
        for one in attached:
            if not _is_media(one):
                yield FactRecord("attachment", one, row.number)
        payload = payloads.user(typed, [_media(one) for one in attached if _is_media(one)])
        yield _message(row, payload, injected=text_or(data.get("source"), "user") != "user")
        around = (sent.replace(typed, "", 1) if isinstance(typed, str) else sent).strip()
        if around:
            at = moment(row.value.get("timestamp"))
            yield message_record(payloads.user(around), row.number, at=at, injected=True)

    def _reply(self, row: Row, data: Json) -> Iterator[Record]:
        self._model = text_or(data.get("model")) or self._model
        calls = [
            payloads.call(one.get("toolCallId"), one.get("name"), one.get("arguments"))
            for one in map(mapping, items(data.get("toolRequests")))
        ]
        output = count_or_none(data.get("outputTokens"))
        if output is not None:
            yield FactRecord("usage", {"output": output, "key": row.value.get("id")}, row.number)
        sealed = [data[key] for key in ("reasoningOpaque", "encryptedContent") if data.get(key)]
        text, thinking = text_or(data.get("content")), text_or(data.get("reasoningText"))
        payload = payloads.reply(text, thinking, calls, [payloads.sealed_thought(one) for one in sealed])
        if payloads.is_empty(payload):
            yield FactRecord("empty", data, row.number)  # a reply without text, thoughts or calls
            return
        yield _message(row, payload, model=self._model or None, stop="tools" if calls else "end")

    def _result(self, row: Row, data: Json) -> Iterator[Record]:
        told, call = mapping(data.get("result")), text_or(data.get("toolCallId"))
        text = text_or(told.get("content")) or text_or(mapping(data.get("error")).get("message"))
        yield _message(row, payloads.answer(call, text), failed=data.get("success") is False)
        shown = [_media(one) for one in map(mapping, items(told.get("contents"))) if _is_media(one)]
        if shown:
            payload = payloads.shown(shown, f"[Shown by tool call {call}]")
            self._pictures.append(message_record(payload, row.number, injected=True))

    # ---- events that are not messages

    def _beside(self, row: Row, kind: str, data: Json) -> Iterator[Record]:
        line = row.number
        if kind in ("session.start", "session.resume"):
            told = {**mapping(data.get("context")), **data}
            yield FactRecord("session", {key: told[key] for key in _SESSION if key in told}, line)
            yield from self._switched(line, data.get("selectedModel"))
        elif kind == "session.model_change":
            yield from self._switched(line, data.get("newModel"))
        elif kind == "session.title_changed" and text_or(data.get("title")):
            yield FactRecord("title", {"title": data["title"]}, line)
        elif kind == "session.compaction_complete":
            yield self._compaction(row, data)
        elif kind == "session.shutdown":
            yield FactRecord("usage", data, line)
        else:
            yield FactRecord(kind or "unknown", data, line)

    def _switched(self, line: int, model: Any) -> Iterator[Record]:
        if text_or(model):
            self._model = model
            yield FactRecord("model", {"model": model}, line)

    def _compaction(self, row: Row, data: Json) -> Record:
        kept, self._kept, self._folding = self._kept, None, False
        summary = text_or(data.get("summaryContent"))
        if data.get("success") is False:
            return FactRecord("compaction_failed", data, row.number)
        if not summary.strip():
            return FactRecord("boundary", data, row.number)
        tokens, at = count_or_none(data.get("preCompactionTokens")), moment(row.value.get("timestamp"))
        return CompactionRecord(summary, kept, tokens, at=at, line=row.number)


def _message(row: Row, payload: Json, **known: Any) -> MessageRecord | WarningRecord:
    """Make the message of an event, with its id, parent and time."""
    return message_record(
        payload,
        row.number,
        at=moment(row.value.get("timestamp")),
        key=text_or(row.value.get("id")) or None,
        parent=text_or(row.value.get("parentId")) or None,
        **known,
    )


def _is_media(one: Json) -> bool:
    """Return whether an attachment is here, as base64."""
    return bool(text_or(one.get("mimeType")) and text_or(one.get("data")))


def _media(one: Json) -> Json:
    return payloads.packed(one["mimeType"], one["data"], text_or(one.get("displayName")))
