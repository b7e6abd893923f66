"""The records that every transcript reader yields, and limits for all readers."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline.core.log.messages import Message

MAX_LINE = 128 * 1024 * 1024  # bytes; longer lines are skipped with a warning
MAX_WHOLE = 256 * 1024 * 1024  # bytes of a JSON document; larger ones must be JSON lines
MAX_DEPTH = 200  # levels of nesting in a message; no agent writes more


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
    `data` holds the file's other fields about it, unchanged; they stay with the boundary (`Receipt.origin`);
    `quoted` are the keys of older messages that it kept word for word next to the summary.
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
    system, tools, window (tokens in which to replay a recording), note, branches, label, queued, boundary (a
    compaction without a summary) or a name from the file.
    """

    kind: str
    data: dict[str, Any] = {}
    line: int = 0


class ResultImages(msgspec.Struct, frozen=True):
    """The images of a result, as parts of `openai-chat`, which readers yield after the result.

    Chat Completions allows none in results: `finished` joins those of a batch into one message.
    """

    parts: list[dict[str, Any]]
    at: float | None = None
    line: int = 0


class WarningRecord(msgspec.Struct, frozen=True):
    """A problem in the file and how it was handled; `line` is 1-based."""

    line: int
    text: str


Record = MessageRecord | CompactionRecord | FactRecord | WarningRecord
