"""OpenCode's exports: one JSON document, `{info, messages: [{info, parts}]}`.

A reply has the parts of several steps; each step becomes a message, followed by the results of its calls,
which OpenCode keeps inside the calls. A user message requests a compaction, and the summary is its reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from foldline.core.log.messages import Usage
from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts import payloads
from foldline.transcripts.lines import Row, count_fact, moment, read_messages_document, text_or
from foldline.transcripts.payloads import content_of, message_record
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Record,
    ResultImages,
    WarningRecord,
)

STOPS = {"stop": "end", "tool-calls": "tools", "length": "length", "content-filter": "end", "error": "error"}
_SESSION = ("id", "slug", "projectID", "parentID", "directory", "version", "time")
_SEALED = ("reasoningEncryptedContent", "reasoningOpaque", "signature", "redactedData")
_BOOKKEEPING = ("patch", "snapshot", "retry", "agent")

Json = dict[str, Any]


def read_opencode(stream: BinaryIO, name: str) -> Iterator[Record | ResultImages]:
    """Read an OpenCode export; messages are `openai-chat` payloads, one for each step of the model.

    A `MessageRecord.key` is the message's id (for a later step or a result its part's id); `line` is the
    message's place. Raises FormatError for a document without a list of messages.
    """
    document = yield from read_messages_document(stream, name)
    info = document.inner("info")
    session = {key: info[key] for key in _SESSION if key in info}
    yield FactRecord("session", {**session, "cwd": info.get("directory")}, 1)
    yield from info.facts(title="title")
    messages = [_Message(value, place) for place, value in enumerate(items_of(document["messages"]), 1)]
    messages, undone = _without_undone(messages, info.inner("revert"))
    reader = _OpenCodeReader(info.text("id"), messages)
    for message in messages:
        yield from reader.take(message)
    others = {"sessions": len(reader.others), "messages": reader.others.total()}
    yield from count_fact("sidechains", others)
    yield from count_fact("branches", {"branches": int(undone > 0), "messages": undone})


class _Message:
    """A message of the document, and its place in it."""

    def __init__(self, value: Any, place: int) -> None:
        fields = Row(fields_of(value), place)
        self.line = place
        self.broken = not isinstance(value, dict)
        self.info = fields.inner("info")
        self.parts = fields.rows("parts")
        self.key, self.parent = self.info.text("id"), self.info.text("parentID")
        self.at = self.info.inner("time").time("created")
        finished = self.info.get("finish") and not self.info.get("error")
        self.is_finished_summary = self.info.get("summary") is True and bool(finished)


def _without_undone(messages: list[_Message], revert: Row) -> tuple[list[_Message], int]:
    """Leave out the messages that the user took back (`/undo`), from one message on; count them.

    If a part is named, its message keeps the parts before it.
    """
    key, part = revert.text("messageID"), revert.text("partID")
    at = next((place for place, message in enumerate(messages) if key and message.key == key), len(messages))
    end, undone = at, len(messages) - at
    if part and at < len(messages):
        ids = [part_row.text("id") for part_row in messages[at].parts]
        messages[at].parts = messages[at].parts[: ids.index(part) if part in ids else 0]
        end += bool(messages[at].parts)
    return messages[:end], undone


class _OpenCodeReader:
    """Turns messages into records; a compaction and its summary become one record."""

    def __init__(self, session: str, messages: list[_Message]) -> None:
        session_ids = [message.info.text("sessionID") for message in messages]
        self.others: Counter[str] = Counter()  # messages of other sessions
        self._session = session if session in session_ids else next(filter(None, session_ids), "")
        self._summaries = {message.parent: message for message in messages if message.is_finished_summary}
        self._tokens: int | None = None  # context tokens at the newest reply
        self._requests: dict[str, Row] = {}  # compaction parts, by the id of their message
        self._keys: set[str] = set()

    def take(self, message: _Message) -> Iterator[Record | ResultImages]:
        role, session = message.info.get("role"), message.info.text("sessionID")
        if message.broken:
            yield WarningRecord(message.line, "a message that is not a JSON object (left out)")
        elif self._session and session and session != self._session:
            self.others[session] += 1
        elif role == "user":
            yield from self._prompt(message)
        elif role == "assistant" and message.info.get("summary") is True:
            yield from self._compaction(message)
        elif role == "assistant":
            yield from self._with_keys(_reply(message))
            usage = _usage(message.info.inner("tokens"))
            self._tokens = usage.total if usage else self._tokens
        else:
            yield WarningRecord(
                message.line, f"unknown role of OpenCode's messages: {str(role)[:40]!r} (left out)"
            )

    def _prompt(self, message: _Message) -> Iterator[Record | ResultImages]:
        request = next((part for part in message.parts if part.get("type") == "compaction"), None)
        if request is not None:
            self._requests[message.key] = request
            if message.key not in self._summaries:
                yield FactRecord("compaction_failed", {"id": message.key, **request}, message.line)
            message.parts = [part for part in message.parts if part.get("type") != "compaction"]
        yield from self._with_keys(_user(message))

    def _with_keys(self, records: Iterator[Record | ResultImages]) -> Iterator[Record | ResultImages]:
        for record in records:
            if isinstance(record, MessageRecord) and record.key:
                self._keys.add(record.key)
            yield record

    def _compaction(self, message: _Message) -> Iterator[Record]:
        """Yield a compaction: its summary, and the first message that OpenCode kept."""
        info, line = message.info, message.line
        if self._summaries.get(message.parent) is not message:
            yield FactRecord("compaction_failed", {"id": info.get("id"), "error": info.get("error")}, line)
            return
        summary = "\n".join(text for step in _steps(message)[0] for text in step.text if text)
        tail = self._requests.get(message.parent, Row()).text("tail_start_id")
        if tail and tail not in self._keys:
            text = f"the first kept message {tail} is not in the file; read as keeping nothing"
            yield WarningRecord(line, text)
        at, before, self._tokens = info.inner("time").time("completed"), self._tokens, None
        if not summary.strip():
            yield FactRecord("boundary", {"tokens_before": before}, line)
            return
        yield CompactionRecord(summary, tail if tail in self._keys else None, before, at=at, line=line)
        if usage := _usage(info.inner("tokens")):
            yield FactRecord("usage", {"compaction": line, "tokens": usage.total}, line)


# ---- the user's messages


def _user(message: _Message) -> Iterator[Record]:
    """Yield the user's message; text that OpenCode added follows as an injected message."""
    line, at, key = message.line, message.at, message.key
    typed: list[Json] = []
    added: list[Json] = []
    added_key = None
    for part in message.parts:
        kind, synthetic = part.get("type"), part.get("synthetic") is True
        if kind == "text" and part.get("ignored") is not True:
            (added if synthetic else typed).append({"type": "text", "text": part.get("text")})
            added_key = added_key or (part.text("id") or None if synthetic else None)
        elif kind == "file" and _is_media(part):
            typed.append(_media(part))
        elif kind == "subtask":
            typed.append({"type": "text", "text": part.get("prompt")})
            yield FactRecord("subtask", part, line)
        else:
            yield _part_fact(part, "attachment" if kind == "file" else text_or(kind, "part"))
    if typed:
        yield message_record(payloads.user(content_of(typed)), line, at=at, key=key)
    if added:
        fields: Json = {"key": added_key if typed else key, "parent": key}
        yield message_record(payloads.user(content_of(added)), line, at=at, injected=True, **fields)


def _is_media(part: Row) -> bool:
    """Return whether a file is sent as a file; text files and directories are sent as synthetic text."""
    return bool(part.text("url")) and part.text("mime") not in ("", "text/plain", "application/x-directory")


def _media(part: Row) -> Json:
    return payloads.media(part.text("mime"), part.text("url"), part.text("filename"))


# ---- replies


class _Step(msgspec.Struct):
    """One step of a reply: text, thoughts, tool parts, and its token count."""

    key: str
    text: list[str] = []
    thoughts: list[str] = []
    sealed: list[Json] = []
    tools: list[Row] = []
    tokens: Row | None = None
    reason: str = ""


def _steps(message: _Message) -> tuple[list[_Step], list[Row]]:
    """Sort a reply's parts into steps; return parts that the model never sees separately."""
    steps = [_Step(message.key)]
    other_parts: list[Row] = []
    for part in message.parts:
        kind, step = part.get("type"), steps[-1]
        if kind == "step-start":
            if step.text or step.thoughts or step.sealed or step.tools or step.reason:
                steps.append(_Step(part.text("id")))
        elif kind == "step-finish":
            step.tokens, step.reason = part.inner("tokens"), part.text("reason")
        elif kind == "text":
            step.text.append(part.text("text"))
        elif kind == "reasoning":
            step.thoughts.append(part.text("text"))
            step.sealed.extend(_sealed(part))
        elif kind == "tool":
            step.tools.append(part)
        else:
            other_parts.append(part)
    if not steps[-1].tokens and len(steps) == 1:
        steps[-1].tokens = message.info.inner("tokens")
    steps[-1].reason = steps[-1].reason or message.info.text("finish")
    return steps, other_parts


def _sealed(part: Row) -> Iterator[Json]:
    """Yield encrypted reasoning, with its provider."""
    metadata = part.inner("metadata")
    for provider in metadata:
        fields = metadata.inner(provider)
        for data in fields.only(_SEALED).values():
            yield payloads.sealed_thought(data, provider=provider, id=fields.get("itemId"))


def _reply(message: _Message) -> Iterator[Record | ResultImages]:
    """Yield a reply step by step, each followed by the results of its calls."""
    info, line, (steps, other_parts) = message.info, message.line, _steps(message)
    error = info.inner("error")
    for step in steps:
        calls = [_call(part) for part in step.tools]
        text = "\n".join(text for text in step.text if text)
        thinking = "\n\n".join(thought for thought in step.thoughts if thought)
        payload, tokens = payloads.reply(text, thinking, calls, step.sealed), step.tokens or Row()
        if payloads.is_empty(payload):
            yield FactRecord("empty", {"id": step.key, "tokens": tokens, "error": error}, line)
            continue
        yield message_record(
            payload,
            line,
            at=message.at,
            key=step.key or None,
            parent=message.parent or None,
            usage=_usage(tokens),
            model=info.text("modelID") or None,
            stop="error" if error and step is steps[-1] else STOPS.get(step.reason),
        )
        for part in step.tools:
            yield from _result(part)
    if error:
        yield FactRecord("error", error, line)
    for part in other_parts:
        if part.get("type") not in _BOOKKEEPING:
            yield _part_fact(part, part.text("type", "part"))


def _call(part: Row) -> Json:
    state = part.inner("state")
    arguments = state.get("input") or state.text("raw") or state.get("input")
    return payloads.call(part.get("callID"), part.get("tool"), arguments)


def _result(part: Row) -> Iterator[Record | ResultImages]:
    """Yield the result of a call and its images; a running call has none."""
    state, call = part.inner("state"), part.text("callID")
    failed, time = state.get("status") == "error", state.inner("time")
    if not failed and state.get("status") != "completed":
        return
    payload = payloads.answer(call, payloads.as_text(state.get("error" if failed else "output")))
    key = part.text("id") or None
    yield message_record(payload, part.line, failed=failed, at=time.time("end"), key=key)
    if time.get("compacted"):
        yield FactRecord("pruned", {"call": call, "at": moment(time["compacted"])}, part.line)
    yield ResultImages(
        [_media(file) for file in state.rows("attachments") if _is_media(file)], time.time("end"), part.line
    )


def _usage(tokens: Row) -> Usage | None:
    """Read a usage; OpenCode's counts do not overlap, reasoning is separate. None if nothing was counted."""
    cache = tokens.inner("cache")
    output = (tokens.count("output") or 0) + (tokens.count("reasoning") or 0)
    usage = Usage(tokens.count("input") or 0, cache.count("read") or 0, cache.count("write") or 0, output)
    return usage if usage.total else None


def _part_fact(part: Row, kind: str) -> FactRecord:
    """Return the fact of a part, without the ids of its session and message."""
    return FactRecord(kind, part.without("sessionID", "messageID"), part.line)
