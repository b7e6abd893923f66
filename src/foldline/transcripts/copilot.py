"""GitHub Copilot CLI's event files: one event per line, messages and bookkeeping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.shared import chat
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.lines import Row, read_rows, scan_rows
from foldline.transcripts.shared.values import count_or_none, items, mapping, moment, text_or

_SAID = (
    "system.message",
    "user.message",
    "assistant.message",
    "tool.execution_complete",
    "system.notification",
)
_BOOKKEEPING = {
    "hook.start", "hook.end", "assistant.turn_start", "assistant.turn_end", "tool.execution_start",
    "permission.requested", "permission.completed", "session.compaction_start", "session.snapshot_rewind",
}  # fmt: skip
_SESSION = ("sessionId", "version", "copilotVersion", "startTime", "cwd", "gitRoot", "repository", "branch")


def read_copilot(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a Copilot CLI session; messages are `openai-chat` payloads, sub-agents are left out.

    A `MessageRecord.key` is the event's id. Messages rewound (`session.snapshot_rewind`) are only counted.
    """
    index = _CopilotRewinds()
    scan_rows(stream, index.add)
    yield FactRecord("format", {"format": "copilot-cli", "dialect": "openai-chat"})
    reader = _CopilotReader()
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            yield item
        elif item.number in index.rewound:
            continue
        elif _sub_agent(item.value):
            reader.sidechain += item.value.get("type") in _SAID
        else:
            yield from reader.take(item)
    yield from reader.end()
    if index.rewound:
        yield FactRecord("branches", {"branches": index.rewinds, "messages": index.messages_rewound})


class _CopilotRewinds:
    """Which lines were rewound; keeps an id and a line number for each event."""

    def __init__(self) -> None:
        self.rewound: set[int] = set()
        self.rewinds = 0
        self.messages_rewound = 0
        self._lines: dict[str, int] = {}
        self._said: set[int] = set()

    def add(self, row: Row) -> None:
        """Note an event; a rewind drops everything from the event that it names."""
        kind = row.value.get("type")
        self._lines[text_or(row.value.get("id"))] = row.number
        if kind in _SAID:
            self._said.add(row.number)
        if kind == "session.snapshot_rewind":
            target = text_or(mapping(row.value.get("data")).get("upToEventId"))
            lines = range(self._lines.get(target, row.number), row.number)
            self.rewinds += bool(lines)
            self.rewound.update(lines)
            self.messages_rewound += len(self._said.intersection(lines))
            self._said.difference_update(lines)


def _sub_agent(value: dict[str, Any]) -> bool:
    """Return whether an event belongs to an agent that a tool call started."""
    data = mapping(value.get("data"))
    return bool(value.get("agentId") or data.get("agentId") or data.get("parentToolCallId"))


class _CopilotReader:
    """Turn events into records; hold back the images of a tool batch until its last result."""

    def __init__(self) -> None:
        self.sidechain = 0
        self._model = ""
        self._system = ""
        self._pictures: list[Record] = []
        self._left: Counter[str] = Counter()
        self._folding = False  # a compaction is running in the background
        self._kept: str | None = None  # the first message said meanwhile

    def take(self, row: Row) -> Iterator[Record]:
        """Take the next event; yield its records."""
        kind = text_or(row.value.get("type"))
        data = mapping(row.value.get("data"))
        if kind in _SAID:
            if kind != "tool.execution_complete":
                yield from self._end_batch()
            for record in self._told(row, kind, data):
                if isinstance(record, MessageRecord) and self._folding:
                    self._kept = self._kept or record.key
                yield record
        elif kind in _BOOKKEEPING:
            self._left[kind] += 1
            if kind == "session.compaction_start":
                self._folding, self._kept = True, None
        else:
            yield from self._beside(row, kind, data)

    def end(self) -> Iterator[Record]:
        """Yield what was held back, and count what was left out."""
        yield from self._end_batch()
        if self.sidechain:
            yield FactRecord("sidechains", {"messages": self.sidechain})
        if self._left:
            yield FactRecord("left_out", dict(self._left))

    def _end_batch(self) -> Iterator[Record]:
        pictures, self._pictures = self._pictures, []
        yield from pictures

    def _told(self, row: Row, kind: str, data: dict[str, Any]) -> Iterator[Record]:
        """Yield a message and what Copilot put around it."""
        if kind == "assistant.message":
            yield from self._reply(row, data)
        elif kind == "tool.execution_complete":
            yield from self._result(row, data)
        elif kind == "user.message":
            yield from self._prompt(row, data)
        elif kind == "system.notification":
            yield _message(row, {"role": "user", "content": text_or(data.get("content"))}, injected=True)
        elif data.get("content") == self._system:
            self._left["system.message again"] += 1
        else:
            self._system = text_or(data.get("content"))
            role = "developer" if data.get("role") == "developer" else "system"
            yield _message(row, {"role": role, "content": data.get("content")})

    def _prompt(self, row: Row, data: dict[str, Any]) -> Iterator[Record]:
        """Yield what the user typed; what Copilot put around it follows as an injected message."""
        typed, sent = data.get("content"), text_or(data.get("transformedContent"))
        content: Any = typed
        pictures: list[dict[str, Any]] = []
        for attachment in map(mapping, items(data.get("attachments"))):
            mime, packed = text_or(attachment.get("mimeType")), text_or(attachment.get("data"))
            if mime and packed:
                name = text_or(attachment.get("displayName"))
                pictures.append(chat.media(mime, f"data:{mime};base64,{packed}", name))
            else:
                yield FactRecord("attachment", attachment, row.number)
        if pictures:
            text = [{"type": "text", "text": typed}] if typed else []
            content = [*text, *pictures]
        machine = text_or(data.get("source"), "user") != "user" or is_injected(text_or(typed))
        yield _message(row, {"role": "user", "content": content}, injected=machine)
        around = (
            sent.replace(typed, "", 1).strip() if isinstance(typed, str) and typed in sent else sent.strip()
        )
        if around:
            payload = {"role": "user", "content": around}
            yield chat.heard(payload, row.number, at=moment(row.value.get("timestamp")), injected=True)

    def _reply(self, row: Row, data: dict[str, Any]) -> Iterator[Record]:
        model = text_or(data.get("model"))
        if model and model != self._model:
            self._model = model
            yield FactRecord("model", {"model": model}, row.number)
        calls = [
            chat.call(text_or(one.get("toolCallId")), text_or(one.get("name")), one.get("arguments"))
            for one in map(mapping, items(data.get("toolRequests")))
        ]
        output = count_or_none(data.get("outputTokens"))
        if output is not None:
            yield FactRecord("usage", {"output": output, "key": row.value.get("id")}, row.number)
        details = [
            chat.sealed_thought(data[key]) for key in ("reasoningOpaque", "encryptedContent") if data.get(key)
        ]
        payload = chat.reply(text_or(data.get("content")), text_or(data.get("reasoningText")), calls, details)
        if chat.is_empty(payload):
            yield FactRecord("empty", data, row.number)  # a reply without text, thoughts or calls
            return
        yield _message(row, payload, model=self._model or None, stop="tools" if calls else "end")

    def _result(self, row: Row, data: dict[str, Any]) -> Iterator[Record]:
        told, error = mapping(data.get("result")), mapping(data.get("error"))
        call = text_or(data.get("toolCallId"))
        failed = data.get("success") is False
        text = text_or(told.get("content")) or text_or(error.get("message"))
        yield _message(row, chat.answer(call, text), failed=failed)
        shown = [
            chat.media(text_or(one.get("mimeType")), f"data:{one.get('mimeType')};base64,{one.get('data')}")
            for one in map(mapping, items(told.get("contents")))
            if text_or(one.get("mimeType")) and text_or(one.get("data"))
        ]
        if shown:
            label = {"type": "text", "text": f"[Shown by tool call {call}]"}
            payload = {"role": "user", "content": [label, *shown]}
            self._pictures.append(chat.heard(payload, row.number, injected=True))

    def _beside(self, row: Row, kind: str, data: dict[str, Any]) -> Iterator[Record]:
        """Yield the facts of an event that is not a message."""
        if kind in ("session.start", "session.resume"):
            told = {**mapping(data.get("context")), **data}
            yield FactRecord("session", {key: told[key] for key in _SESSION if key in told}, row.number)
            yield from self._switched(row, text_or(data.get("selectedModel")))
        elif kind == "session.model_change":
            yield from self._switched(row, text_or(data.get("newModel")))
        elif kind == "session.title_changed" and text_or(data.get("title")):
            yield FactRecord("title", {"title": data["title"]}, row.number)
        elif kind == "session.compaction_complete":
            yield from self._folded(row, data)
        elif kind == "session.shutdown":
            yield FactRecord("usage", data, row.number)
        else:
            yield FactRecord(kind or "unknown", data, row.number)

    def _switched(self, row: Row, model: str) -> Iterator[Record]:
        if model and model != self._model:
            self._model = model
            yield FactRecord("model", {"model": model}, row.number)

    def _folded(self, row: Row, data: dict[str, Any]) -> Iterator[Record]:
        """Yield a compaction; it keeps what was said while it ran in the background."""
        kept, self._kept, self._folding = self._kept, None, False
        summary = text_or(data.get("summaryContent"))
        if data.get("success") is False:
            yield FactRecord("compaction_failed", data, row.number)
        elif not summary.strip():
            yield FactRecord("boundary", data, row.number)
        else:
            tokens = count_or_none(data.get("preCompactionTokens"))
            at = moment(row.value.get("timestamp"))
            yield CompactionRecord(summary, kept, tokens, at=at, line=row.number)


def _message(row: Row, payload: dict[str, Any], **known: Any) -> MessageRecord | WarningRecord:
    """Make the message of an event, with its id, parent and time."""
    return chat.heard(
        payload,
        row.number,
        at=moment(row.value.get("timestamp")),
        key=text_or(row.value.get("id")) or None,
        parent=text_or(row.value.get("parentId")) or None,
        **known,
    )
