"""coop's session files: one message per line, and the newest compaction in a sidecar file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from foldline.core.log.messages import Usage
from foldline.errors import DialectError
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    WarningRecord,
    not_a_message,
)
from foldline.transcripts.shared import blocks
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.lines import Row, read_rows, scan_rows
from foldline.transcripts.shared.sidecar import read_sidecar, stem_of
from foldline.transcripts.shared.source import path_of
from foldline.transcripts.shared.values import count_or_none, items, mapping, moment, text_or

_BESIDE = "_compaction.json"  # behind the name of the session
_FOLD = (
    "summary",
    "first_kept_message_id",
    "messages_at_compaction",
)  # what `CompactionRecord` has fields for


def read_coop(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a coop session; messages become `anthropic` payloads, a `MessageRecord.key` is the message's id.

    The compaction in SESSION_compaction.json is placed by its time: before the first newer message.
    """
    yield FactRecord("format", {"format": "coop", "dialect": "anthropic"})
    state: dict[str, Any] | WarningRecord = {}
    if (path := path_of(stream)) is not None:
        stem = stem_of(path)
        yield FactRecord("session", {"id": stem})
        state = read_sidecar(path.with_name(f"{stem}{_BESIDE}"))
        if not state:
            other = _other_sidecar(stream, path)
            yield from _told_of(other, path)
            state = read_sidecar(other) if other is not None else {}
    if isinstance(state, WarningRecord):
        yield state
        state = {}
    elif state and not isinstance(state.get("summary"), str):
        yield WarningRecord(0, f"the compaction next to {path} has no summary (left out)")
        state = {}
    fold, model = _CoopCompaction(state), ""
    for item in read_rows(stream):
        record = item if isinstance(item, WarningRecord) else _heard(item)
        if isinstance(record, MessageRecord):
            yield from fold.before(record)
            if record.message.model and record.message.model != model:
                model = record.message.model
                yield FactRecord("model", {"model": model}, record.line)
        yield record
    yield from fold.rest()


def _other_sidecar(stream: BinaryIO, path: Path) -> Path | None:
    """Return the compaction beside a renamed session: it keeps from one of its messages."""
    wanted: dict[str, Path] = {}
    for other in sorted(path.parent.glob(f"*{_BESIDE}")):
        found = read_sidecar(other)
        if isinstance(found, dict) and text_or(found.get("first_kept_message_id")):
            wanted[found["first_kept_message_id"]] = other
    known: list[Path] = []

    def look(row: Row) -> None:
        if (other := wanted.get(text_or(row.value.get("id")))) is not None:
            known.append(other)

    if wanted:
        scan_rows(stream, look)
    return known[0] if known else None


def _told_of(taken: Path | None, path: Path) -> Iterator[WarningRecord]:
    """Warn of a compaction that is taken under another name, or of those that have no session."""
    if taken is not None:
        yield WarningRecord(0, f"{taken.name} keeps from a message of this session: read as its compaction")
        return
    for other in sorted(path.parent.glob(f"*{_BESIDE}")):
        session = other.name.removesuffix(_BESIDE)
        if not any(path.with_name(f"{session}{end}").exists() for end in (".jsonl", ".jsonl.gz")):
            own = f"{stem_of(path)}{_BESIDE}"
            yield WarningRecord(
                0, f"{other.name} has no session beside it: if it is this one's, name it {own}"
            )


class _CoopCompaction:
    """The compaction, waiting for its place among the messages. What it kept is given by id or by count.

    coop never begins a view with results, since their calls were folded: the message after them is the first
    kept.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        self._at = moment(state.get("created_at"))
        self._id = text_or(state.get("first_kept_message_id"))
        self._count = count_or_none(state.get("messages_at_compaction"))
        self._seen = 0
        self._begun = not self._id and self._count is None  # nothing is kept
        self._kept: str | None = None
        self._line = 0

    def before(self, heard: MessageRecord) -> Iterator[CompactionRecord]:
        """Yield the compaction if it stands before this message."""
        if not self._state:
            return
        newer = self._at is not None and heard.at is not None and heard.at > self._at
        if newer and (self._begun or self._seen == self._count):
            yield self._folded()
            return
        if not self._begun:
            self._begun = heard.key == self._id if self._id else self._seen == self._count
        results = bool(heard.message.results) and not heard.message.text
        if self._begun and self._kept is None and (self._id or self._count is not None) and not results:
            self._kept = heard.key
        self._seen += 1
        self._line = heard.line

    def rest(self) -> Iterator[Record]:
        """Yield the compaction if no message came after it."""
        if not self._state:
            return
        if not self._begun and self._id:
            yield WarningRecord(
                0, f"the first kept message {self._id} of its compaction is missing; read as keeping nothing"
            )
        yield self._folded()

    def _folded(self) -> CompactionRecord:
        state = self._state
        before = state.get("tokens_before", state.get("tokens_at_compaction"))
        more = {key: value for key, value in state.items() if key not in _FOLD}
        number = count_or_none(state.get("compaction_count")) or None
        self._state = {}
        return CompactionRecord(
            state["summary"],
            self._kept,
            count_or_none(before),
            self._at,
            self._line,
            number=number,
            data=more,
        )


def _heard(row: Row) -> MessageRecord | WarningRecord:
    """Read a line as a message."""
    value, line = row.value, row.number
    try:
        content = [block for block in map(_block, map(mapping, items(value.get("content")))) if block]
    except DialectError as error:
        return not_a_message(error, line)
    if not content:
        return WarningRecord(line, "an empty message (left out)")
    role, about = value.get("role"), mapping(value.get("metadata"))
    words = "\n".join(text_or(block.get("text"), "\0") for block in content)
    known: dict[str, Any] = {"injected": is_injected(words)} if role == "user" else _known(about, content)
    key, at = text_or(value.get("id")) or None, moment(value.get("created"))
    return blocks.heard({"role": role, "content": content}, line, at=at, key=key, **known)


def _block(block: dict[str, Any]) -> dict[str, Any] | None:
    """Write one of coop's blocks as one of Anthropic's."""
    kind = block.get("type")
    if kind == "text":
        return blocks.text(text_or(block.get("text")))
    if kind == "thinking":
        return blocks.thought(text_or(block.get("thinking")), text_or(block.get("signature")))
    if kind == "image":
        return blocks.image(text_or(block.get("mime_type")), text_or(block.get("data")))
    if kind == "tool_request":
        return blocks.call(block.get("id"), block.get("name"), block.get("arguments"))
    if kind == "tool_result":
        return blocks.result(block.get("id"), block.get("output"), failed=block.get("is_error") is True)
    raise DialectError(f"a block of unknown type {str(kind)[:40]!r}")


def _known(about: dict[str, Any], content: list[dict[str, Any]]) -> dict[str, Any]:
    """Read a reply's metadata; coop counts like Anthropic, with cached input separate."""
    keys = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    numbers = [count_or_none(about.get(key)) for key in keys]
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "usage": Usage(*(number or 0 for number in numbers)) if any(numbers) else None,
        "model": text_or(about.get("model")) or None,
        "stop": "tools" if calls else "end",
    }
