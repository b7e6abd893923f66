"""OpenCode's exports: one JSON document, `{info, messages: [{info, parts}]}`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

from foldline.transcripts.opencode import messages as written
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.shared.lines import read_messages_document
from foldline.transcripts.shared.values import items, mapping, moment, text_or

_SESSION = ("id", "slug", "projectID", "parentID", "directory", "version", "time")


def read_opencode(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read an OpenCode export; messages are `openai-chat` payloads, one for each step of the model.

    A `MessageRecord.key` is the message's id (for a later step or a result its part's id); `line` is the
    message's place. Raises FormatError for a document without a list of messages.
    """
    holder = yield from read_messages_document(stream, name)
    info = mapping(holder.get("info"))
    yield FactRecord("format", {"format": "opencode", "dialect": "openai-chat"})
    told = {key: info[key] for key in _SESSION if key in info}
    yield FactRecord("session", {**told, "cwd": info.get("directory")}, 1)
    if text_or(info.get("title")):
        yield FactRecord("title", {"title": info["title"]}, 1)
    reader = _OpenCodeReader(_session(info, items(holder["messages"])), _summaries(items(holder["messages"])))
    for place, message in enumerate(items(holder["messages"]), 1):
        if isinstance(message, dict):
            yield from reader.take(mapping(message), place)
        else:
            yield WarningRecord(place, "a message that is not a JSON object (left out)")
    yield from reader.end()


def _session(info: dict[str, Any], messages: list[Any]) -> str:
    """Return the id of the session to read: the document's, or the first message's if no message has that."""
    known = [text_or(mapping(mapping(one).get("info")).get("sessionID")) for one in messages]
    named = text_or(info.get("id"))
    return named if named in known else next((one for one in known if one), "")


def _summaries(messages: list[Any]) -> dict[str, dict[str, Any]]:
    """Return the finished compaction summaries, by the message that asked for each."""
    found: dict[str, dict[str, Any]] = {}
    for message in map(mapping, messages):
        info = mapping(message.get("info"))
        if info.get("summary") is True and info.get("finish") and not info.get("error"):
            found[text_or(info.get("parentID"))] = message
    return found


class _OpenCodeReader:
    """Turn messages into records, and compactions with their summaries into one record each."""

    def __init__(self, session: str, summaries: dict[str, dict[str, Any]]) -> None:
        self._session = session
        self._summaries = summaries
        self._model = ""
        self._tokens: int | None = None  # context tokens at the newest reply
        self._asked: dict[str, dict[str, Any]] = {}  # compaction parts by the message that holds each
        self._keys: set[str] = set()
        self._others: Counter[str] = Counter()

    def take(self, message: dict[str, Any], place: int) -> Iterator[Record]:
        """Take the next message; yield its records."""
        info = mapping(message.get("info"))
        role, session = info.get("role"), text_or(info.get("sessionID"))
        if self._session and session and session != self._session:
            self._others[session] += 1
        elif role == "user":
            yield from self._prompt(message, place)
        elif role == "assistant":
            yield from self._reply(message, place)
        else:
            yield WarningRecord(place, f"OpenCode writes no role {str(role)[:40]!r} (left out)")

    def end(self) -> Iterator[Record]:
        """Count the messages of other sessions."""
        if self._others:
            data = {"sessions": len(self._others), "messages": self._others.total()}
            yield FactRecord("sidechains", data)

    def _prompt(self, message: dict[str, Any], place: int) -> Iterator[Record]:
        key = text_or(mapping(message.get("info")).get("id"))
        asked = next((part for part in written.parts_of(message) if part.get("type") == "compaction"), None)
        if asked is None:
            yield from self._said(written.user(message, place))
            return
        self._asked[key] = asked
        if key not in self._summaries:
            yield FactRecord("compaction_failed", {"id": key, **asked}, place)
        rest = [part for part in written.parts_of(message) if part.get("type") != "compaction"]
        yield from self._said(written.user({**message, "parts": rest}, place))

    def _reply(self, message: dict[str, Any], place: int) -> Iterator[Record]:
        info = mapping(message.get("info"))
        model, parent = text_or(info.get("modelID")), text_or(info.get("parentID"))
        if model and model != self._model:
            self._model = model
            yield FactRecord("model", {"model": model, "provider": info.get("providerID")}, place)
        if info.get("summary") is True and self._summaries.get(parent) is message:
            yield from self._folded(message, place, self._asked.get(parent, {}))
        elif info.get("summary") is True:
            yield FactRecord("compaction_failed", {"id": info.get("id"), "error": info.get("error")}, place)
        else:
            yield from self._said(written.reply(message, place))
            usage = written.usage(mapping(info.get("tokens")))
            self._tokens = usage.total if usage else self._tokens

    def _said(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if isinstance(record, MessageRecord) and record.key:
                self._keys.add(record.key)
            yield record

    def _folded(self, message: dict[str, Any], place: int, asked: dict[str, Any]) -> Iterator[Record]:
        """Yield a compaction: its summary, and the first message that OpenCode kept."""
        info = mapping(message.get("info"))
        found, _ = written.steps(message)
        summary = "\n".join(text for step in found for text in step.text if text)
        tail = text_or(asked.get("tail_start_id"))
        if tail and tail not in self._keys:
            yield WarningRecord(
                place, f"the first kept message {tail} is not in the file; read as keeping nothing"
            )
        at = moment(mapping(info.get("time")).get("completed"))
        before, self._tokens = self._tokens, None
        if not summary.strip():
            yield FactRecord("boundary", {"tokens_before": before}, place)
            return
        yield CompactionRecord(summary, tail if tail in self._keys else None, before, at=at, line=place)
        if usage := written.usage(mapping(info.get("tokens"))):
            yield FactRecord("usage", {"compaction": place, "tokens": usage.total}, place)
