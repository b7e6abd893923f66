"""GenCode's session files: one JSON document with metadata, messages and compaction summaries.

A compaction removes what it folded from the file: its `CompactionRecord` stands where its summary does,
before what it kept. Summaries add up in GenCode, so each includes those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.dialects import ANTHROPIC
from foldline.errors import DialectError
from foldline.transcripts.lines import count_or_none, items, mapping, moment, read_messages_document, text_or
from foldline.transcripts.payloads import BlockNames, message_record
from foldline.transcripts.records import CompactionRecord, FactRecord, Record, WarningRecord, not_a_message

BLOCKS = BlockNames(result_id="toolUseId", failed="isError")

_SUMMARISED = re.compile(r"\[Earlier conversation - \d+ messages summarized\]\s*")
_KNOWN = ("title", "model")
_FULL = "fullMessageCount"


def read_gencode(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read a GenCode session; messages become `anthropic` payloads, `line` is a message's place."""
    session = yield from read_messages_document(stream, name)
    yield FactRecord("format", {"format": "gencode", "dialect": ANTHROPIC})
    yield from _about(session)
    messages = [mapping(message) for message in items(session["messages"])]
    yield from _system(session, messages)
    folds = _Folds(session, messages)
    yield from folds.missing()
    spoken = False
    for line, message in enumerate(messages, 1):
        if _is_summary(message):
            yield folds.take(message, line)
        elif message.get("role") != "system" or spoken:
            spoken = True
            yield from _records(message, line)


def _about(session: dict[str, Any]) -> Iterator[FactRecord]:
    """Yield what the metadata say; their completion counts are sums over a run, not context sizes."""
    metadata = mapping(session.get("metadata"))
    told = {key: value for key, value in metadata.items() if key not in _KNOWN and value is not None}
    if session.get(_FULL):
        told[_FULL] = session[_FULL]
    yield FactRecord("session", told, 1)
    for kind in _KNOWN:
        if text_or(metadata.get(kind)):
            yield FactRecord(kind, {kind: metadata[kind]}, 1)


def _system(session: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[FactRecord]:
    """Yield the system prompt: the separate one, and the system messages before all others."""
    found = [text_or(session.get("systemPrompt"))]
    for message in messages:
        if message.get("role") != "system":
            break
        if not _is_summary(message):
            found.append(text_or(message.get("content")))
    text = "\n\n".join(dict.fromkeys(one for one in found if one))
    if text:
        yield FactRecord("system", {"system": text}, 1)


def _is_summary(message: dict[str, Any]) -> bool:
    return message.get("role") == "system" and bool(_SUMMARISED.match(text_or(message.get("content"))))


class _Folds:
    """The compactions: system messages that hold a summary, and what `summaries` says about each."""

    def __init__(self, session: dict[str, Any], messages: list[dict[str, Any]]) -> None:
        self._told = [mapping(one) for one in items(session.get("summaries"))]
        self._shown = [text_or(one.get("content")) for one in messages if _is_summary(one)]
        full = session.get(_FULL) or mapping(session.get("metadata")).get(_FULL)
        self._absent = (count_or_none(full) or 0) - len(messages) + len(self._shown)
        self._so_far: list[str] = []

    def missing(self) -> Iterator[CompactionRecord]:
        """Yield the compactions whose summary is in no message."""
        for one in self._told:
            content = text_or(one.get("content"))
            if content and not any(content in shown for shown in self._shown):
                yield self._compaction(content, one, 1)

    def take(self, message: dict[str, Any], line: int) -> CompactionRecord:
        """Return the compaction whose summary a message holds."""
        text = _SUMMARISED.sub("", text_or(message.get("content")), count=1)
        known = (one for one in self._told if text_or(one.get("content")) and one["content"] in text)
        return self._compaction(text, next(known, dict[str, Any]()), line)

    def _compaction(self, text: str, told: dict[str, Any], line: int) -> CompactionRecord:
        self._so_far.append(text)
        more = {key: value for key, value in told.items() if key != "content"}
        if self._absent > 0:
            more["messages_absent"], self._absent = self._absent, 0
        at, number = moment(told.get("generatedAt")), len(self._so_far)
        return CompactionRecord("\n\n".join(self._so_far), at=at, line=line, number=number, data=more)


def _records(message: dict[str, Any], line: int) -> Iterator[Record]:
    """Yield a message, after the facts about its pruned results."""
    role, content = message.get("role"), message.get("content")
    if not role or not isinstance(content, str | list):
        yield WarningRecord(line, "a message without a role, or without content (left out)")
        return
    parts = [mapping(block) for block in items(content)]  # pyright: ignore[reportUnknownArgumentType]
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
