"""coop's session files: one message per line, and the newest compaction in a file beside them.

The compaction is placed by its time: before the first newer message. Where the file beside the session has
another session's name, it is found by the message that it keeps from.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.errors import DialectError
from foldline.transcripts.lines import (
    Row,
    count_or_none,
    items,
    mapping,
    moment,
    read_sidecar,
    scan_rows,
    stem_of,
    take_rows,
    text_or,
)
from foldline.transcripts.payloads import BlockNames, message_record, usage_of, with_models
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

USAGE = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
BLOCKS = BlockNames("tool_request", "arguments", "id", "output", "is_error", flat_images=True)

_FIRST_KEPT, _COUNT = "first_kept_message_id", "messages_at_compaction"
_FOLD = ("summary", _FIRST_KEPT, _COUNT)  # what `CompactionRecord` has fields for


def read_coop(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a coop session; messages become `anthropic` payloads, `MessageRecord.key` is a message's id."""
    yield FactRecord("format", {"format": "coop", "dialect": ANTHROPIC})
    state: dict[str, Any] = {}
    if (path := path_of(stream)) is not None:
        yield FactRecord("session", {"id": stem_of(path)})
        state = yield from _state(stream, path)
    fold = _CoopCompaction(state)
    yield from with_models(take_rows(stream, fold.take))
    yield from fold.rest()


# ---- the file beside the session


def _state(stream: BinaryIO, path: Path) -> Generator[WarningRecord, None, dict[str, Any]]:
    """Return the compaction beside a session ({}: there is none, or none that can be used)."""
    state = read_sidecar(path.with_name(f"{stem_of(path)}{BESIDE}"))
    if not state:
        others = sorted(path.parent.glob(f"*{BESIDE}"))
        if other := _other(stream, others):
            text = f"{other.name} keeps from a message of this session: read as its compaction"
            yield WarningRecord(0, text)
            state = read_sidecar(other)
        else:
            yield from _without_session(others, path)
    if isinstance(state, WarningRecord):
        yield state
        return {}
    if state and not isinstance(state.get("summary"), str):
        yield WarningRecord(0, f"the compaction next to {path} has no summary (left out)")
        return {}
    return state


def _other(stream: BinaryIO, others: list[Path]) -> Path | None:
    """Return the compaction of a renamed session: it keeps from one of its messages."""
    wanted: dict[str, Path] = {}
    for other in others:
        found = read_sidecar(other)
        if isinstance(found, dict) and text_or(found.get(_FIRST_KEPT)):
            wanted[found[_FIRST_KEPT]] = other
    known: list[Path] = []

    def look(row: Row) -> None:
        if (other := wanted.get(text_or(row.value.get("id")))) is not None:
            known.append(other)

    if wanted:
        scan_rows(stream, look)
    return known[0] if known else None


def _without_session(others: list[Path], path: Path) -> Iterator[WarningRecord]:
    """Warn of compactions that have no session: one may be this session's."""
    for other in others:
        session = other.name.removesuffix(BESIDE)
        if not any(path.with_name(f"{session}{end}").exists() for end in (".jsonl", ".jsonl.gz")):
            own = f"{stem_of(path)}{BESIDE}"
            text = f"{other.name} has no session beside it: if it is this one's, name it {own}"
            yield WarningRecord(0, text)


# ---- messages


class _CoopCompaction:
    """The messages, and the compaction that waits for its place among them.

    What it kept is given by id or by count. coop never begins a view with results, since their calls were
    folded: the message after them is the first kept.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._at = moment(state.get("created_at"))
        self._id = text_or(state.get(_FIRST_KEPT))
        self._count = count_or_none(state.get(_COUNT))
        self._seen = 0
        self._begun = not self._id and self._count is None  # nothing is kept
        self._kept: str | None = None
        self._line = 0

    def take(self, row: Row) -> Iterator[Record]:
        """Yield the message on a line, and the compaction if it stands before it."""
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
        if self._begun and self._kept is None and (self._id or self._count is not None) and not results:
            self._kept = said.key
        self._seen += 1
        self._line = said.line

    def rest(self) -> Iterator[Record]:
        """Yield the compaction if no message came after it."""
        if not self._state:
            return
        if not self._begun and self._id:
            text = f"the first kept message {self._id} of its compaction is missing; read as keeping nothing"
            yield WarningRecord(0, text)
        yield self._compaction()

    def _compaction(self) -> CompactionRecord:
        state, self._state = self._state, {}
        before = state.get("tokens_before", state.get("tokens_at_compaction"))
        return CompactionRecord(
            state["summary"],
            self._kept,
            count_or_none(before),
            self._at,
            self._line,
            number=count_or_none(state.get("compaction_count")) or None,
            data={key: value for key, value in state.items() if key not in _FOLD},
        )


def _record(row: Row) -> MessageRecord | WarningRecord:
    """Read a line as a message; a reply's metadata count like Anthropic, with cached input apart."""
    value, line = row.value, row.number
    try:
        content = [block for block in map(BLOCKS.read, map(mapping, items(value.get("content")))) if block]
    except DialectError as error:
        return not_a_message(error, line)
    if not content:
        return WarningRecord(line, "an empty message (left out)")
    known: dict[str, Any] = {}
    if value.get("role") != "user":
        about = mapping(value.get("metadata"))
        usage = usage_of(about, USAGE)
        known["usage"] = usage if usage.total else None
        known["model"] = text_or(about.get("model")) or None
        known["stop"] = "tools" if any(block["type"] == "tool_use" for block in content) else "end"
    payload = {"role": value.get("role"), "content": content}
    at, key = moment(value.get("created")), text_or(value.get("id")) or None
    return message_record(payload, line, dialect=ANTHROPIC, at=at, key=key, **known)
