"""coop's session files: one message per line, and the newest compaction in a sidecar file.

The compaction is placed before the first message with a later time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, read_sidecar, scan_rows, stem_of, take_rows
from foldline.transcripts.payloads import BlockNames, message_record, not_a_message, usage_of
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.source import path_of

BESIDE = "_compaction.json"  # suffix to the stem of the session file's name
_FIRST_KEPT, _FILE = "first_kept_message_id", "file"

USAGE = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
BLOCKS = BlockNames("tool_request", "arguments", "id", "output", mime="mime_type")


def read_coop(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a coop session; messages become `anthropic` payloads, `MessageRecord.key` is a message's id."""
    state: Row | WarningRecord = Row()
    if (path := path_of(stream)) is not None:
        yield FactRecord("session", {"id": stem_of(path)})
        state = read_sidecar(path.with_name(f"{stem_of(path)}{BESIDE}")) or _renamed_state(stream, path)
        if isinstance(state, Row) and (other_file := state.pop(_FILE, "")):
            yield WarningRecord(0, f"{other_file} keeps a message of this session: read as its compaction")
    if isinstance(state, Row) and state and not isinstance(state.get("summary"), str):
        state = WarningRecord(0, f"the compaction next to {path} has no summary (left out)")
    if isinstance(state, WarningRecord):
        yield state
        state = Row()
    fold = _CoopCompaction(state)
    yield from take_rows(stream, fold.take)
    yield from fold.rest()


def _renamed_state(stream: BinaryIO, path: Path) -> Row:
    """Find the compaction of a renamed session, by the id of its first kept message."""
    states = [(other.name, read_sidecar(other)) for other in sorted(path.parent.glob(f"*{BESIDE}"))]
    by_first_kept = {
        state.text(_FIRST_KEPT): Row({**state, _FILE: file})
        for file, state in states
        if isinstance(state, Row)
    }
    by_first_kept.pop("", None)
    matches: list[Row] = []

    def note(row: Row) -> None:
        if state := by_first_kept.get(row.text("id")):
            matches.append(state)

    if by_first_kept:
        scan_rows(stream, note)
    return matches[0] if matches else Row()


class _CoopCompaction:
    """Passes the messages on, and inserts the compaction in its place.

    The first kept message is given by id or by count. coop never begins a view with results, whose calls were
    folded: then the message after them is the first kept one.
    """

    def __init__(self, state: Row) -> None:
        self._state = state
        self._at = state.time("created_at")
        self._id = state.text(_FIRST_KEPT)
        self._count = state.count("messages_at_compaction")
        self._seen = 0
        self._begun = not self._id and self._count is None  # nothing is kept
        self._keeps = not self._begun
        self._kept: str | None = None
        self._line = 0

    def take(self, row: Row) -> Iterator[Record]:
        """Yield the message on a line, after the compaction if that belongs before it."""
        record = _record(row)
        if isinstance(record, MessageRecord) and self._state:
            yield from self._compaction_before(record)
        yield record

    def _compaction_before(self, record: MessageRecord) -> Iterator[CompactionRecord]:
        newer = self._at is not None and record.at is not None and record.at > self._at
        if newer and (self._begun or self._seen == self._count):
            yield self._compaction()
            return
        if not self._begun:
            self._begun = record.key == self._id if self._id else self._seen == self._count
        results = bool(record.message.results) and not record.message.text
        if self._keeps and self._begun and self._kept is None and not results:
            self._kept = record.key
        self._seen += 1
        self._line = record.line

    def rest(self) -> Iterator[Record]:
        """Yield the compaction if no message is newer."""
        if self._state and not self._begun and self._id:
            text = f"the compaction's first kept message {self._id} is missing; read as keeping nothing"
            yield WarningRecord(0, text)
        if self._state:
            yield self._compaction()

    def _compaction(self) -> CompactionRecord:
        state, self._state = self._state, Row()
        before = state.count("tokens_before" if "tokens_before" in state else "tokens_at_compaction")
        data = state.without("summary", _FIRST_KEPT, "messages_at_compaction")
        number = state.count("compaction_count") or None
        return CompactionRecord(
            state["summary"], self._kept, before, self._at, self._line, number=number, data=data
        )


def _record(row: Row) -> MessageRecord | WarningRecord:
    """Read a line as a message; usage counts cached input separately, like Anthropic."""
    try:
        content = [block for raw in row.rows("content") if (block := BLOCKS.read(raw))]
    except DialectError as error:
        return not_a_message(error, row.line)
    if not content:
        return WarningRecord(row.line, "an empty message (left out)")
    fields: dict[str, Any] = {"at": row.time("created"), "key": row.text("id") or None}
    if row.get("role") != "user":
        metadata = row.inner("metadata")
        usage = usage_of(metadata, USAGE)
        fields["usage"] = usage if usage.total else None
        fields["model"] = metadata.text("model") or None
        fields["stop"] = "tools" if any(block["type"] == "tool_use" for block in content) else "end"
    payload = {"role": row.get("role"), "content": content}
    return message_record(payload, row.line, dialect=ANTHROPIC, **fields)
