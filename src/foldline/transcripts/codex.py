"""Codex's rollouts: items of the Responses API, one per line, between events and turn contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.dialects.responses.items import is_models
from foldline.transcripts import codex_items
from foldline.transcripts.lines import Row, count_fact, scan_rows, take_rows
from foldline.transcripts.payloads import is_injected
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record

_SESSION = (
    "id", "timestamp", "cwd", "originator", "cli_version", "source", "model_provider", "git",
    "forked_from_id",
)  # fmt: skip
_FACT_OF = {
    "error": "error", "stream_error": "error", "warning": "warning", "turn_aborted": "turn_aborted",
    "item_completed": "item_completed", "thread_rolled_back": "rolled_back", "token_count": "usage",
}  # fmt: skip


def read_codex(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a Codex rollout; messages are `openai-responses` payloads, all items of a reply are one message.

    A `MessageRecord.key` is the number of the message's first line. Turns rolled back are only counted.
    """
    rollbacks = _CodexRollbacks()
    scan_rows(stream, rollbacks.add)
    reader = _CodexReader()
    yield from take_rows(stream, lambda row: () if rollbacks.covers(row.line) else reader.take(row))
    yield from reader.end_reply()
    yield from count_fact("left_out", dict(reader.left_out))
    yield from count_fact("branches", {"branches": len(rollbacks.ranges), "messages": rollbacks.lost})


class _CodexRollbacks:
    """Which turns were rolled back; keeps a line number for each prompt and item."""

    def __init__(self) -> None:
        self.ranges: list[range] = []
        self.lost = 0
        self._last = 0
        self._turns: list[int] = []
        self._said: list[int] = []

    def add(self, row: Row) -> None:
        self._last = row.line
        item = codex_items.item_of(row)
        event = item.get("type") if row.get("type") == "event_msg" else None
        if event == "thread_rolled_back" and (turns := item.count("num_turns")):
            for begin in self._turns[-turns:][:1]:
                self.ranges.append(range(begin, row.line))
                self.lost += sum(line >= begin for line in self._said)
                self._said = [line for line in self._said if line < begin]
            del self._turns[-turns:]
        elif event is None and item.get("type") not in (None, "turn_context"):
            self._said.append(row.line)
            if item.get("role") == "user" and not is_injected(codex_items.texts(item)):
                self._turns.append(row.line)

    def covers(self, line: int) -> bool:
        """Return whether a line was rolled back, or written since: it may roll back others."""
        return line > self._last or any(line in lines for lines in self.ranges)


class _CodexReader:
    """Turns lines into records; holds back the items of a reply until it ends."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._reply: list[Row] = []
        self._prompts = codex_items.Prompts()
        self._known: dict[str, Any] = {}  # the session's facts as last reported
        self._total: Any = None  # tokens that the session has used so far
        self._size: int | None = None  # context tokens at the newest reply
        self._headers = 0

    def take(self, row: Row) -> Iterator[Record]:
        kind, payload = row.text("type"), row.inner("payload")
        if kind == "session_meta":
            yield from self._session(payload)
        elif kind == "turn_context":
            for fact, field in (("model", "model"), ("cwd", "cwd"), ("thinking", "effort")):
                yield from self._changed(row, fact, payload.get(field))
        elif kind == "event_msg":
            yield from self._event(row, payload)
        elif kind == "token_usage_record":  # as Codex 0.169 writes it before the event that shows it
            yield from self._counted(row, payload.inner("usage"), repeated=False)
        elif kind == "compacted":
            yield from self._compaction(row, payload)
        elif kind == "response_item" or ("payload" not in row and (kind or "role" in row)):
            yield from self._item(row)
        elif "record_type" in row:
            self.left_out[row.text("record_type", "record")] += 1
        elif "timestamp" in row and "id" in row:
            yield from self._session(row)
        else:
            yield FactRecord(kind or "unknown", payload or row, row.line)

    # ---- the session

    def _session(self, payload: Row) -> Iterator[Record]:
        """Yield the header; a second one belongs to the session that this one was forked from."""
        self._headers += 1
        header, line = payload.only(_SESSION), payload.line
        if self._headers > 1:
            yield FactRecord("forked_from", header, line)
            return
        yield FactRecord("session", header, line)
        system = payload.inner("base_instructions").text("text") or payload.text("base_instructions")
        if system:
            yield FactRecord("system", {"system": system}, line)
        else:
            yield from payload.facts(instructions="instructions")
        if payload.get("dynamic_tools"):
            yield FactRecord("tools", {"tools": payload["dynamic_tools"]}, line)
        self._known["cwd"] = payload.get("cwd")

    def _changed(self, row: Row, kind: str, value: Any) -> Iterator[Record]:
        """Yield a setting if it changed."""
        if value and self._known.get(kind) != value:
            self._known[kind] = value
            yield FactRecord(kind, {kind: value}, row.line)

    # ---- messages

    def _item(self, row: Row) -> Iterator[Record]:
        item = codex_items.item_of(row)
        kind = item.text("type", "item")
        if not codex_items.is_sendable(item) and not codex_items.has_content(item):
            self.left_out[f"{kind} without words"] += 1
        elif not codex_items.is_sendable(item):
            yield FactRecord(kind, item, row.line)
        elif is_models(item):
            self._reply.append(row)
        else:
            yield from self.end_reply()
            for record in codex_items.message_records([row]):
                if isinstance(record, MessageRecord) and record.message.role == "user":
                    self._prompts.add(item, record.key or "", injected=record.message.injected)
                yield record

    def end_reply(self, tokens: Row | None = None) -> Iterator[Record]:
        """Yield the reply that was held back, with its token count."""
        if self._reply:
            reply, self._reply = self._reply, []
            usage = codex_items.usage(tokens or Row())
            yield from codex_items.message_records(reply, usage=usage, model=self._known.get("model"))

    # ---- events

    def _event(self, row: Row, payload: Row) -> Iterator[Record]:
        kind = payload.text("type")
        yield from self._changed(row, "window", payload.get("model_context_window"))
        if kind == "token_count":
            info = payload.inner("info")
            total = info.inner("total_token_usage")
            repeated, self._total = total == self._total, total
            yield from self._counted(row, info.inner("last_token_usage"), repeated=repeated)
        elif kind == "thread_name_updated" and payload.text("thread_name"):
            yield from payload.facts(title="thread_name")
        elif kind in _FACT_OF:
            yield FactRecord(_FACT_OF[kind], payload, row.line)
        else:
            self.left_out[kind or "event_msg"] += 1  # shown in the terminal: the items have the same content

    def _counted(self, row: Row, tokens: Row, *, repeated: bool) -> Iterator[Record]:
        """End the reply with its tokens; `repeated`: it is the last count again."""
        self._size = tokens.count("total_tokens") or self._size
        if self._reply and tokens and not repeated:
            yield from self.end_reply(tokens)
        elif tokens and (row.get("type") != "event_msg" or codex_items.usage(tokens) is None):
            yield FactRecord("usage", tokens, row.line)
        else:
            self.left_out["token_count again"] += 1

    def _compaction(self, row: Row, payload: Row) -> Iterator[Record]:
        yield from self.end_reply()
        summary, quoted, sealed = codex_items.kept_items(payload, self._prompts)
        if summary:
            at, data = row.time("timestamp"), payload.without("message")
            yield CompactionRecord(
                summary, None, self._size, at=at, line=row.line, data=data, quoted=tuple(quoted)
            )
        else:
            yield FactRecord("boundary", {**payload, "tokens_before": self._size}, row.line)
        for place, item in enumerate(sealed):
            line = Row({**row, "payload": item}, row.line)
            yield from codex_items.message_records([line], key=f"{row.line}.{place}")
