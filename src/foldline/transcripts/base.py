"""The records that every transcript reader yields, and the limits that all of them keep."""

from __future__ import annotations

from typing import Any

import msgspec

from foldline.core.log.messages import Message

MAX_LINE = 128 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is passed over with a warning."""

MAX_WHOLE = 256 * 1024 * 1024
"""Bytes of the largest JSON document that is loaded as one value; larger ones must be JSON lines."""

MAX_DEPTH = 200
"""Levels of nesting that a message may have; deeper ones are no message that an agent wrote."""


class Heard(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message. `at` is Unix time; `key` and `parent` are the file's own ids; `line` is 1-based.

    In a JSON list `line` is the message's place in the list. A message merged from several lines stands at
    its first one.
    """

    message: Message
    at: float | None = None
    key: str | None = None
    parent: str | None = None
    line: int = 0


class Folded(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compaction that the agent itself made, where it stands in the file.

    `first_kept` is the `Heard.key` of the first message that it kept (None: it kept nothing);
    `tokens_before` is the agent's own count; `number` counts its compactions from 1, where the file does;
    `data` is what else the file says of it, in the file's words, and stays with the boundary (`Receipt.origin`);
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


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact about the session that is no message.

    `kind` is format (always the first record: format, version, dialect), session, title, model, thinking,
    system, tools, window (tokens that a recording is to be replayed in), note, branches, label, queued,
    boundary (a compaction without a summary) or another name of the file's own.
    """

    kind: str
    data: dict[str, Any] = {}
    line: int = 0


class Warned(msgspec.Struct, frozen=True):
    """Something that could not be read as it stands, and what was done about it; `line` is 1-based."""

    line: int
    text: str


Record = Heard | Folded | About | Warned
