"""The records that every transcript reader yields, and the limits that all readers share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from foldline.core.log.messages import Message

MAX_LINE = 128 * 1024 * 1024
"""Bytes of the longest line that is read; longer ones are skipped with a warning."""

MAX_WHOLE = 256 * 1024 * 1024
"""Bytes of the largest JSON document that is loaded as one value; larger ones must be JSON lines."""

MAX_DEPTH = 200
"""Levels of nesting that a message may have; no agent writes deeper ones."""


class MessageRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message. `at` is Unix time; `key` and `parent` are the file's own ids; `line` is 1-based.

    In a JSON list `line` is the message's place in the list; for a message merged from several lines it is
    the first of them.
    """

    message: Message
    at: float | None = None
    key: str | None = None
    parent: str | None = None
    line: int = 0


class CompactionRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compaction that the agent itself made, in its place in the file.

    `first_kept` is the `MessageRecord.key` of the first message that it kept (None: it kept nothing);
    `tokens_before` is the agent's own count; `number` counts its compactions from 1, if the file does;
    `data` is what else the file says about it, unchanged; it stays with the boundary (`Receipt.origin`);
    `quoted` are the keys of older messages that it kept word for word beside the summary.
    """

    summary: str
    first_kept: str | None = None
    tokens_before: int | None = None
    at: float | None = None
    line: int = 0
    number: int | None = None
    data: dict[str, Any] = {}
    quoted: tuple[str, ...] = ()


class FactRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact about the session that is not a message.

    `kind` is format (always the first record: format, version, dialect), session, title, model, thinking,
    system, tools, window (tokens that a recording is to be replayed in), note, branches, label, queued,
    boundary (a compaction without a summary) or one of the file's own names.
    """

    kind: str
    data: dict[str, Any] = {}
    line: int = 0


class Pictures(msgspec.Struct, frozen=True):
    """Images in results, as parts of `openai-chat`: readers give them behind each result.

    `finished` makes one message of those of a batch: Chat Completions has none in results.
    """

    parts: list[dict[str, Any]]
    at: float | None = None
    line: int = 0


class WarningRecord(msgspec.Struct, frozen=True):
    """Something that could not be read as written, and what was done about it; `line` is 1-based."""

    line: int
    text: str


Record = MessageRecord | CompactionRecord | FactRecord | WarningRecord


def beside(kind: str, counts: dict[str, Any]) -> Iterator[FactRecord]:
    """Yield the fact that counts what was not read as messages, if it counts anything."""
    if any(counts.values()):
        yield FactRecord(kind, counts)


def reason_of(error: Exception) -> str:
    """Return why a payload is not a message."""
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def not_a_message(error: Exception, line: int) -> WarningRecord:
    """Return the warning about a payload that is not a message."""
    return WarningRecord(line, f"not a message: {reason_of(error)} (left out)")
