"""coop's session files: one message per line, and the newest compaction in a file beside them.

The compaction is placed by its time: before the first newer message.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, read_sidecar, scan_rows, stem_of, take_rows
from foldline.transcripts.payloads import BlockNames, message_record, usage_of
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    WarningRecord,
    not_a_message,
)
from foldline.transcripts.source import path_of

BESIDE = "_compaction.json"
"""What follows the name of the session in that of its compaction."""

_FIRST_KEPT, _FILE = "first_kept_message_id", "file"

USAGE = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
BLOCKS = BlockNames("tool_request", "arguments", "id", "output", mime="mime_type")


def read_coop(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a coop session; messages become `anthropic` payloads, `MessageRecord.key` is a message's id."""
    state: Row | WarningRecord = Row()
    if (path := path_of(stream)) is not None:
        yield FactRecord("session", {"id": stem_of(path)})
        state = read_sidecar(path.with_name(f"{stem_of(path)}{BESIDE}")) or _renamed(stream, path)
        if isinstance(state, Row) and (other := state.pop(_FILE, "")):
            yield WarningRecord(0, f"{other} keeps from a message of this session: read as its compaction")
    if isinstance(state, Row) and state and not isinstance(state.get("summary"), str):
        state = WarningRecord(0, f"the compaction next to {path} has no summary (left out)")
    if isinstance(state, WarningRecord):
        yield state
        state = Row()
    fold = _CoopCompaction(state)
    yield from take_rows(stream, fold.take)
    yield from fold.rest()


def _renamed(stream: BinaryIO, path: Path) -> Row:
    """Return the compaction beside a renamed session that keeps from one of its messages, with its file."""
    found = [(other.name, read_sidecar(other)) for other in sorted(path.parent.glob(f"*{BESIDE}"))]
    wanted = {
        state.text(_FIRST_KEPT): Row({**state, _FILE: file})
        for file, state in found
        if isinstance(state, Row)
    }
    wanted.pop("", None)
    known: list[Row] = []
    if wanted:
        scan_rows(stream, lambda row: known.extend(wanted[key] for key in [row.text("id")] if key in wanted))
    return known[0] if known else Row()


class _CoopCompaction:
    """The messages, and the compaction that waits for its place among them.

    What it kept is given by id or by count. coop never begins a view with results, since their calls were
    folded: the message after them is the first kept.
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
        """Yield the message on a line, and the compaction if it comes before it."""
        record = _record(row)
        if isinstance(record, MessageRecord) and self._state:
            yield from self._before(record)
        yield record

    def _before(self, said: MessageRecord) -> Iterator[CompactionRecord]:
        newer = self._at is not None and said.at is not None and said.at > self._at
        if newer and (self._begun or self._seen == self._count):
            yield self._compaction()
            return
        if not self._begun:
            self._begun = said.key == self._id if self._id else self._seen == self._count
        results = bool(said.message.results) and not said.message.text
        if self._keeps and self._begun and self._kept is None and not results:
            self._kept = said.key
        self._seen += 1
        self._line = said.line

    def rest(self) -> Iterator[Record]:
        """Yield the compaction if no message came after it."""
        if self._state and not self._begun and self._id:
            text = f"the first kept message {self._id} of its compaction is missing; read as keeping nothing"
            yield WarningRecord(0, text)
        if self._state:
            yield self._compaction()

    def _compaction(self) -> CompactionRecord:
        state, self._state = self._state, Row()
        before = state.count("tokens_before" if "tokens_before" in state else "tokens_at_compaction")
        told = state.without("summary", _FIRST_KEPT, "messages_at_compaction")
        number = state.count("compaction_count") or None
        return CompactionRecord(
            state["summary"], self._kept, before, self._at, self._line, number=number, data=told
        )


def _record(row: Row) -> MessageRecord | WarningRecord:
    """Read a line as a message; a reply's metadata count like Anthropic, with cached input apart."""
    try:
        content = [block for one in row.rows("content") if (block := BLOCKS.read(one))]
    except DialectError as error:
        return not_a_message(error, row.line)
    if not content:
        return WarningRecord(row.line, "an empty message (left out)")
    known: dict[str, Any] = {"at": row.time("created"), "key": row.text("id") or None}
    if row.get("role") != "user":
        about = row.inner("metadata")
        usage = usage_of(about, USAGE)
        known["usage"] = usage if usage.total else None
        known["model"] = about.text("model") or None
        known["stop"] = "tools" if any(block["type"] == "tool_use" for block in content) else "end"
    payload = {"role": row.get("role"), "content": content}
    return message_record(payload, row.line, dialect=ANTHROPIC, **known)
