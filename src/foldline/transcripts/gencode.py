"""GenCode's session files: one JSON document with metadata, messages and compaction summaries.

A compaction removes what it folded from the file: its `CompactionRecord` comes where its summary is,
before what it kept. Summaries add up in GenCode, so each includes those before it; but one whose messages a
later one covers too was folded with them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.dialects.payload import items_of
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, read_messages_document
from foldline.transcripts.payloads import BlockNames, message_record
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord, not_a_message

BLOCKS = BlockNames(result_id="toolUseId", failed="isError")

_SUMMARISED = re.compile(r"\[Earlier conversation - \d+ messages summarized\]\s*")
_FULL = "fullMessageCount"


def read_gencode(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a GenCode session; messages become `anthropic` payloads, `line` is a message's place."""
    session = yield from read_messages_document(stream, name)
    messages = session.rows("messages")
    metadata = session.inner("metadata")  # their completion counts are sums over a run, not context sizes
    told = {key: value for key, value in metadata.without("title", "model").items() if value is not None}
    yield FactRecord("session", {**told, **session.only([_FULL])}, 1)
    yield from metadata.facts(title="title", model="model")
    leading = next((at for at, one in enumerate(messages) if one.get("role") != "system"), len(messages))
    prompts = [one.text("content") for one in messages[:leading] if not _is_summary(one)]
    system = "\n\n".join(dict.fromkeys(one for one in (session.text("systemPrompt"), *prompts) if one))
    if system:
        yield FactRecord("system", {"system": system}, 1)
    folds = _Folds(session, messages)
    yield from folds.missing()
    for line, message in enumerate(messages, 1):
        message.line = line
        if _is_summary(message):
            yield folds.take(message)
        elif line > leading:
            yield from _records(message)


def _is_summary(message: Row) -> bool:
    return message.get("role") == "system" and bool(_SUMMARISED.match(message.text("content")))


class _Folds:
    """The compactions: system messages that hold a summary, and what `summaries` says about each."""

    def __init__(self, session: Row, messages: list[Row]) -> None:
        self._told = [one for one in session.rows("summaries") if one.text("content")]
        self._shown = [one.text("content") for one in messages if _is_summary(one)]
        full = session.count(_FULL) or session.inner("metadata").count(_FULL) or 0
        self._absent = full - len(messages) + len(self._shown)
        self._so_far: list[str] = []
        self._folded = 0  # summaries that a later one stands for

    def missing(self) -> Iterator[CompactionRecord]:
        """Yield the compactions whose summary is in no message."""
        for number, one in enumerate(self._told, 1):
            if any(one["content"] in shown for shown in self._shown):
                continue
            if any(_covers(later, one) for later in self._told[number:]):
                self._folded += 1
            else:
                yield self._compaction(one["content"], one, 1)

    def take(self, message: Row) -> CompactionRecord:
        """Return the compaction whose summary a message holds."""
        text = _SUMMARISED.sub("", message.text("content"), count=1)
        told = next((one for one in self._told if one["content"] in text), Row())
        return self._compaction(text, told, message.line)

    def _compaction(self, text: str, told: Row, line: int) -> CompactionRecord:
        self._so_far.append(text)
        more = told.without("content")
        if self._absent > 0:
            more["messages_absent"], self._absent = self._absent, 0
        at, number = told.time("generatedAt"), len(self._so_far) + self._folded
        return CompactionRecord("\n\n".join(self._so_far), at=at, line=line, number=number, data=more)


def _covers(later: Row, earlier: Row) -> bool:
    """Return whether a summary is of all the messages that an earlier one is of."""
    (first, last), (start, end) = _range(later), _range(earlier)
    return 0 < first <= start <= end <= last


def _range(summary: Row) -> tuple[int, int]:
    """Return the first and the last message that a summary covers; (0, 0) where it does not say."""
    found = items_of(summary.get("coveringMessages"))
    return (found[0], found[1]) if len(found) == 2 and all(isinstance(one, int) for one in found) else (0, 0)


def _records(message: Row) -> Iterator[Record]:
    """Yield a message, after the facts about its pruned results."""
    role, content, line = message.get("role"), message.get("content"), message.line
    if not role or not isinstance(content, str | list):
        yield WarningRecord(line, "a message without a role, or without content (left out)")
        return
    parts = message.rows("content")
    for part in parts:
        if part.get("pruned") is True:
            yield FactRecord("pruned", {"call": part.get("toolUseId"), "at": part.get("prunedAt")}, line)
    try:
        written = content if isinstance(content, str) else [b for b in map(BLOCKS.read, parts) if b]
    except DialectError as error:
        yield not_a_message(error, line)
        return
    if not written:
        yield WarningRecord(line, "an empty message (left out)")
        return
    injected = role == "system"
    payload = {"role": "user" if injected else role, "content": written}
    yield message_record(payload, line, dialect=ANTHROPIC, key=str(line - 1), injected=injected)
