"""GenCode's session files: one JSON document with metadata, messages and compaction summaries.

A compaction removes the folded messages from the file: its `CompactionRecord` comes where its summary is,
before the kept messages. GenCode's summaries accumulate, so each record includes the earlier ones, except
those whose messages a later summary also covers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.dialects.payload import items_of
from foldline.errors import DialectError
from foldline.transcripts.lines import Row, read_messages_document
from foldline.transcripts.payloads import BlockNames, message_record, not_a_message
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord

BLOCKS = BlockNames(result_id="toolUseId", failed="isError")

_SUMMARISED = re.compile(r"\[Earlier conversation - \d+ messages summarized\]\s*")
_FULL = "fullMessageCount"


def read_gencode(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a GenCode session; messages become `anthropic` payloads, `line` is a message's place."""
    session = yield from read_messages_document(stream, name)
    messages = session.rows("messages")
    metadata = session.inner("metadata")  # its token counts are sums over a run, not context sizes
    fields = {key: value for key, value in metadata.without("title", "model").items() if value is not None}
    yield FactRecord("session", {**fields, **session.only([_FULL])}, 1)
    yield from metadata.facts(title="title", model="model")
    leading = len(list(takewhile(lambda message: message.get("role") == "system", messages)))
    prompts = [message.text("content") for message in messages[:leading] if not _is_summary(message)]
    system = "\n\n".join(dict.fromkeys(filter(None, (session.text("systemPrompt"), *prompts))))
    if system:
        yield FactRecord("system", {"system": system}, 1)
    compactions = _Compactions(session, messages)
    yield from compactions.missing()
    for line, message in enumerate(messages, 1):
        message.line = line
        if _is_summary(message):
            yield compactions.take(message)
        elif line > leading:
            yield from _records(message)


def _is_summary(message: Row) -> bool:
    return message.get("role") == "system" and bool(_SUMMARISED.match(message.text("content")))


class _Compactions:
    """The compactions: system messages with a summary, and the entry in `summaries` for each."""

    def __init__(self, session: Row, messages: list[Row]) -> None:
        self._summaries = [summary for summary in session.rows("summaries") if summary.text("content")]
        self._shown_texts = [summary.text("content") for summary in messages if _is_summary(summary)]
        full = session.count(_FULL) or session.inner("metadata").count(_FULL) or 0
        self._absent = full - len(messages) + len(self._shown_texts)
        self._texts: list[str] = []
        self._folded = 0  # summaries whose messages a later one covers

    def missing(self) -> Iterator[CompactionRecord]:
        """Yield the compactions whose summary is not in a message."""
        for number, summary in enumerate(self._summaries, 1):
            if any(summary["content"] in text for text in self._shown_texts):
                continue
            if any(_covers(later, summary) for later in self._summaries[number:]):
                self._folded += 1
            else:
                yield self._compaction(summary["content"], summary, 1)

    def take(self, message: Row) -> CompactionRecord:
        """Return the compaction of a message with a summary."""
        text = _SUMMARISED.sub("", message.text("content"), count=1)
        summary = next((summary for summary in self._summaries if summary["content"] in text), Row())
        return self._compaction(text, summary, message.line)

    def _compaction(self, text: str, summary: Row, line: int) -> CompactionRecord:
        self._texts.append(text)
        data = summary.without("content")
        if self._absent > 0:
            data["messages_absent"], self._absent = self._absent, 0
        at, number = summary.time("generatedAt"), len(self._texts) + self._folded
        return CompactionRecord("\n\n".join(self._texts), at=at, line=line, number=number, data=data)


def _covers(later: Row, earlier: Row) -> bool:
    """Return whether a summary covers all messages of an earlier one."""
    (first, last), (start, end) = _range(later), _range(earlier)
    return 0 < first <= start <= end <= last


def _range(summary: Row) -> tuple[int, int]:
    """Return the first and the last message that a summary covers; (0, 0) if that is missing."""
    numbers = items_of(summary.get("coveringMessages"))
    is_range = len(numbers) == 2 and all(isinstance(number, int) for number in numbers)
    return (numbers[0], numbers[1]) if is_range else (0, 0)


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
        blocks = content if isinstance(content, str) else [b for b in map(BLOCKS.read, parts) if b]
    except DialectError as error:
        yield not_a_message(error, line)
        return
    if not blocks:
        yield WarningRecord(line, "an empty message (left out)")
        return
    injected = role == "system"
    payload = {"role": "user" if injected else role, "content": blocks}
    yield message_record(payload, line, dialect=ANTHROPIC, key=str(line - 1), injected=injected)
