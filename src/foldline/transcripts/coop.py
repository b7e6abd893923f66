"""coop's session files: a message a line, and the newest compaction in a file beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.core.log.messages import Usage
from foldline.errors import DialectError
from foldline.transcripts import blocks
from foldline.transcripts.base import About, Folded, Heard, Record, Warned
from foldline.transcripts.beside import beside
from foldline.transcripts.injected import is_injected
from foldline.transcripts.lines import Row, rows
from foldline.transcripts.source import path_of
from foldline.transcripts.values import count_or_none, items, mapping, moment, text_or

_FOLD = ("summary", "first_kept_message_id", "messages_at_compaction")  # what `Folded` has fields for


def read_coop(stream: BinaryIO, _name: str) -> Iterator[Record]:
    """Read a coop session; messages become `anthropic` payloads, a `Heard.key` is the message's id.

    The compaction in SESSION_compaction.json stands where its time says: before the first newer message.
    """
    yield About("format", {"format": "coop", "dialect": "anthropic"})
    state: dict[str, Any] | Warned = {}
    if (path := path_of(stream)) is not None:
        stem = path.name.removesuffix(".gz").removesuffix(".jsonl")
        yield About("session", {"id": stem})
        state = beside(path.with_name(f"{stem}_compaction.json"))
    if isinstance(state, Warned):
        yield state
        state = {}
    elif state and not isinstance(state.get("summary"), str):
        yield Warned(0, f"the compaction beside {path} has no summary (left out)")
        state = {}
    fold, model = _Fold(state), ""
    for item in rows(stream):
        record = item if isinstance(item, Warned) else _heard(item)
        if isinstance(record, Heard):
            yield from fold.before(record)
            if record.message.model and record.message.model != model:
                model = record.message.model
                yield About("model", {"model": model}, record.line)
        yield record
    yield from fold.rest()


class _Fold:
    """The compaction that waits for its place among the messages. What it kept is named by id, or counted.

    coop itself never begins with results: their calls were folded, so the message after them is the first kept.
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

    def before(self, heard: Heard) -> Iterator[Folded]:
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
            yield Warned(
                0, f"its compaction's first kept message {self._id} is not here; read as keeping nothing"
            )
        yield self._folded()

    def _folded(self) -> Folded:
        state = self._state
        before = state.get("tokens_before", state.get("tokens_at_compaction"))
        more = {key: value for key, value in state.items() if key not in _FOLD}
        number = count_or_none(state.get("compaction_count")) or None
        self._state = {}
        return Folded(
            state["summary"],
            self._kept,
            count_or_none(before),
            self._at,
            self._line,
            number=number,
            data=more,
        )


def _heard(row: Row) -> Heard | Warned:
    """A message."""
    value, line = row.value, row.number
    try:
        content = [block for block in map(_block, map(mapping, items(value.get("content")))) if block]
    except DialectError as error:
        return blocks.unread(error, line)
    if not content:
        return Warned(line, "a message that says nothing (left out)")
    role, about = value.get("role"), mapping(value.get("metadata"))
    words = "\n".join(text_or(block.get("text"), "\0") for block in content)
    known: dict[str, Any] = {"injected": is_injected(words)} if role == "user" else _known(about, content)
    key, at = text_or(value.get("id")) or None, moment(value.get("created"))
    return blocks.heard({"role": role, "content": content}, line, at=at, key=key, **known)


def _block(block: dict[str, Any]) -> dict[str, Any] | None:
    """A block of coop's as one of Anthropic's."""
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
    """What a reply's metadata say of it: coop counts as Anthropic does, cached input apart."""
    keys = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    numbers = [count_or_none(about.get(key)) for key in keys]
    calls = any(block["type"] == "tool_use" for block in content)
    return {
        "usage": Usage(*(number or 0 for number in numbers)) if any(numbers) else None,
        "model": text_or(about.get("model")) or None,
        "stop": "tools" if calls else "end",
    }
