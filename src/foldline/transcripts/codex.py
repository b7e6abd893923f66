"""Codex's rollouts: items of the Responses API, one per line, with events and context between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.dialects import OPENAI_RESPONSES
from foldline.transcripts import codex_items as written
from foldline.transcripts.lines import Row, count_or_none, mapping, moment, scan_rows, take_rows, text_or
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
    index = _CodexRollbacks()
    scan_rows(stream, index.add)
    yield FactRecord("format", {"format": "codex", "dialect": OPENAI_RESPONSES})
    reader = _CodexReader()
    yield from take_rows(stream, lambda row: iter(()) if index.gone(row.number) else reader.take(row))
    yield from reader.end()
    if index.ranges:
        yield FactRecord("branches", {"branches": len(index.ranges), "messages": index.lost})


class _CodexRollbacks:
    """Which turns were rolled back; keeps a line number for each prompt and item."""

    def __init__(self) -> None:
        self.ranges: list[range] = []
        self.lost = 0
        self._turns: list[int] = []
        self._said: list[int] = []

    def add(self, row: Row) -> None:
        """Note a line: a prompt begins a turn, a rollback removes the newest turns."""
        item = written.item_of(row.value)
        event = item.get("type") if row.value.get("type") == "event_msg" else None
        if event == "thread_rolled_back":
            turns = count_or_none(item.get("num_turns")) or 0
            begin = self._turns[-turns:][:1]
            del self._turns[len(self._turns) - min(turns, len(self._turns)) :]
            if begin:
                self.ranges.append(range(begin[0], row.number))
                self.lost += sum(line >= begin[0] for line in self._said)
                self._said = [line for line in self._said if line < begin[0]]
        elif event is None and item.get("type") not in (None, "turn_context"):
            self._said.append(row.number)
            if item.get("role") == "user" and not is_injected(written.texts(item)):
                self._turns.append(row.number)

    def gone(self, line: int) -> bool:
        """Return whether a line was rolled back."""
        return any(line in lines for lines in self.ranges)


class _CodexReader:
    """Turn lines into records; hold back the items of one reply."""

    def __init__(self) -> None:
        self._reply: list[Row] = []
        self._prompts = written.Prompts()
        self._known: dict[str, Any] = {}  # the session's facts as last reported
        self._total: Any = None  # tokens that the session has used so far
        self._size: int | None = None  # context tokens at the newest reply
        self._left: Counter[str] = Counter()
        self._headers = 0

    def take(self, row: Row) -> Iterator[Record]:
        """Take the next line; yield what it completes."""
        kind = text_or(row.value.get("type"))
        payload = mapping(row.value.get("payload"))
        if kind == "session_meta":
            yield from self._session(row, payload)
        elif kind == "turn_context":
            yield from self._context(row, payload)
        elif kind == "event_msg":
            yield from self._event(row, payload)
        elif kind == "token_usage_record":
            yield from self._recorded(row, payload)
        elif kind == "compacted":
            yield from self._compaction(row, payload)
        elif kind == "response_item" or ("payload" not in row.value and (kind or "role" in row.value)):
            yield from self._item(row)
        elif "record_type" in row.value:
            self._left[text_or(row.value["record_type"], "record")] += 1
        elif "timestamp" in row.value and "id" in row.value:
            yield from self._session(row, row.value)
        else:
            yield FactRecord(kind or "unknown", payload or row.value, row.number)

    def end(self) -> Iterator[Record]:
        """Yield what was held back, and count what was left out."""
        yield from self._end_reply()
        if self._left:
            yield FactRecord("left_out", dict(self._left))

    # ---- the session

    def _session(self, row: Row, payload: dict[str, Any]) -> Iterator[Record]:
        """Yield the header; a second one belongs to the session from which this one was forked."""
        self._headers += 1
        told = {key: payload[key] for key in _SESSION if payload.get(key)}
        if self._headers > 1:
            yield FactRecord("forked_from", told, row.number)
            return
        yield FactRecord("session", told, row.number)
        base = payload.get("base_instructions")
        system = text_or(mapping(base).get("text")) or text_or(base)
        if system:
            yield FactRecord("system", {"system": system}, row.number)
        elif text_or(payload.get("instructions")):
            yield FactRecord("instructions", {"instructions": payload["instructions"]}, row.number)
        if payload.get("dynamic_tools"):
            yield FactRecord("tools", {"tools": payload["dynamic_tools"]}, row.number)
        self._known["cwd"] = payload.get("cwd")

    def _context(self, row: Row, payload: dict[str, Any]) -> Iterator[Record]:
        """Yield the settings of the next turn that changed."""
        for kind, field in (("model", "model"), ("cwd", "cwd"), ("thinking", "effort")):
            yield from self._changed(row, kind, payload.get(field))

    def _changed(self, row: Row, kind: str, value: Any) -> Iterator[Record]:
        if value and self._known.get(kind) != value:
            self._known[kind] = value
            yield FactRecord(kind, {kind: value}, row.number)

    # ---- messages

    def _item(self, row: Row) -> Iterator[Record]:
        item = written.item_of(row.value)
        kind = text_or(item.get("type"), "item")
        if not written.is_said(item) and not written.says_something(item):
            self._left[f"{kind} without words"] += 1
        elif not written.is_said(item):
            yield FactRecord(kind, item, row.number)
        elif written.is_models(item):
            self._reply.append(row)
        else:
            yield from self._end_reply()
            for record in written.message_records([row]):
                if isinstance(record, MessageRecord) and record.message.role == "user":
                    self._prompts.add(item, record.key or "", injected=record.message.injected)
                yield record

    def _end_reply(self, tokens: dict[str, Any] | None = None) -> Iterator[Record]:
        """Tell the reply held back, with the tokens counted for it."""
        if self._reply:
            reply, self._reply = self._reply, []
            yield from written.message_records(
                reply, usage=written.usage(tokens or {}), model=self._known.get("model")
            )

    # ---- events

    def _event(self, row: Row, payload: dict[str, Any]) -> Iterator[Record]:
        kind = text_or(payload.get("type"))
        window = payload.get("model_context_window")
        yield from self._changed(row, "window", window)
        if kind == "token_count":
            yield from self._counted(row, payload)
        elif kind == "thread_name_updated" and text_or(payload.get("thread_name")):
            yield FactRecord("title", {"title": payload["thread_name"]}, row.number)
        elif kind in _FACT_OF:
            yield FactRecord(_FACT_OF[kind], payload, row.number)
        else:
            self._left[kind or "event_msg"] += 1  # what the terminal showed: the items say the same

    def _counted(self, row: Row, payload: dict[str, Any]) -> Iterator[Record]:
        """The tokens of the reply that ended; told again and again while nothing is said."""
        info = mapping(payload.get("info"))
        tokens = mapping(info.get("last_token_usage"))
        total = mapping(info.get("total_token_usage"))
        self._size = count_or_none(tokens.get("total_tokens")) or self._size
        if self._reply and tokens and total != self._total:
            self._total = total
            yield from self._end_reply(tokens)
        elif tokens and written.usage(tokens) is None:
            yield FactRecord("usage", tokens, row.number)
        else:
            self._left["token_count again"] += 1

    def _recorded(self, row: Row, payload: dict[str, Any]) -> Iterator[Record]:
        """The tokens of one response, as Codex 0.169 writes them before the event that shows them."""
        tokens = mapping(payload.get("usage"))
        self._size = count_or_none(tokens.get("total_tokens")) or self._size
        if self._reply and tokens:
            yield from self._end_reply(tokens)
        elif tokens:
            yield FactRecord("usage", tokens, row.number)

    def _compaction(self, row: Row, payload: dict[str, Any]) -> Iterator[Record]:
        """Yield a compaction: its summary, the user messages it kept, and its encrypted part."""
        yield from self._end_reply()
        kept = written.kept_items(payload, self._prompts)
        if not kept.summary:
            yield FactRecord("boundary", {**payload, "tokens_before": self._size}, row.number)
        else:
            yield CompactionRecord(
                kept.summary,
                tokens_before=self._size,
                at=moment(row.value.get("timestamp")),
                line=row.number,
                data={key: value for key, value in payload.items() if key != "message"},
                quoted=tuple(kept.quoted),
            )
        for place, item in enumerate(kept.sealed):
            line = Row(row.number, {**row.value, "payload": item})
            yield from written.message_records([line], key=f"{row.number}.{place}")
