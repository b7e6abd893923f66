"""OpenCode's exports: one JSON document, `{info, messages: [{info, parts}]}`.

A reply holds the parts of several steps; each step is a message, followed by the results of its calls, which
OpenCode keeps in the calls themselves. A compaction is asked for by a user message, and answered by the
summary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from foldline.core.log.messages import Usage
from foldline.dialects import OPENAI_CHAT
from foldline.transcripts import payloads
from foldline.transcripts.lines import count_or_none, items, mapping, moment, read_messages_document, text_or
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import CompactionRecord, FactRecord, MessageRecord, Record, WarningRecord

_SESSION = ("id", "slug", "projectID", "parentID", "directory", "version", "time")
_STOPS = {"stop": "end", "tool-calls": "tools", "length": "length", "content-filter": "end", "error": "error"}
_SEALED = ("reasoningEncryptedContent", "reasoningOpaque", "signature", "redactedData")
_BOOKKEEPING = ("patch", "snapshot", "retry", "agent")

Json = dict[str, Any]


def read_opencode(stream: BinaryIO, name: str) -> Iterator[Record]:
    """Read an OpenCode export; messages are `openai-chat` payloads, one for each step of the model.

    A `MessageRecord.key` is the message's id (for a later step or a result its part's id); `line` is the
    message's place. Raises FormatError for a document without a list of messages.
    """
    holder = yield from read_messages_document(stream, name)
    info, messages = mapping(holder.get("info")), items(holder["messages"])
    yield FactRecord("format", {"format": "opencode", "dialect": OPENAI_CHAT})
    told = {key: info[key] for key in _SESSION if key in info}
    yield FactRecord("session", {**told, "cwd": info.get("directory")}, 1)
    if text_or(info.get("title")):
        yield FactRecord("title", {"title": info["title"]}, 1)
    reader = _OpenCodeReader(_session(info, messages), _summaries(messages))
    for place, message in enumerate(messages, 1):
        if isinstance(message, dict):
            yield from reader.take(mapping(message), place)
        else:
            yield WarningRecord(place, "a message that is not a JSON object (left out)")
    yield from reader.end()


def _session(info: Json, messages: list[Any]) -> str:
    """Return the id of the session to read: the document's, or the first message's if no message has that."""
    known = [text_or(_info(mapping(one)).get("sessionID")) for one in messages]
    named = text_or(info.get("id"))
    return named if named in known else next((one for one in known if one), "")


def _summaries(messages: list[Any]) -> dict[str, Json]:
    """Return the finished compaction summaries, by the message that asked for each."""
    found: dict[str, Json] = {}
    for message in map(mapping, messages):
        info = _info(message)
        if info.get("summary") is True and info.get("finish") and not info.get("error"):
            found[text_or(info.get("parentID"))] = message
    return found


class _OpenCodeReader:
    """Turn messages into records, and compactions with their summaries into one record each."""

    def __init__(self, session: str, summaries: dict[str, Json]) -> None:
        self._session = session
        self._summaries = summaries
        self._model = ""
        self._tokens: int | None = None  # context tokens at the newest reply
        self._asked: dict[str, Json] = {}  # compaction parts by the message that holds each
        self._keys: set[str] = set()
        self._others: Counter[str] = Counter()

    def take(self, message: Json, place: int) -> Iterator[Record]:
        """Take the next message; yield its records."""
        info = _info(message)
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

    def _prompt(self, message: Json, place: int) -> Iterator[Record]:
        key, parts = text_or(_info(message).get("id")), _parts(message)
        asked = next((part for part in parts if part.get("type") == "compaction"), None)
        if asked is not None:
            self._asked[key] = asked
            if key not in self._summaries:
                yield FactRecord("compaction_failed", {"id": key, **asked}, place)
            message = {**message, "parts": [part for part in parts if part.get("type") != "compaction"]}
        yield from self._said(_user(message, place))

    def _reply(self, message: Json, place: int) -> Iterator[Record]:
        info = _info(message)
        model, parent = text_or(info.get("modelID")), text_or(info.get("parentID"))
        if model and model != self._model:
            self._model = model
            yield FactRecord("model", {"model": model, "provider": info.get("providerID")}, place)
        if info.get("summary") is True and self._summaries.get(parent) is message:
            yield from self._compaction(message, place, self._asked.get(parent, {}))
        elif info.get("summary") is True:
            yield FactRecord("compaction_failed", {"id": info.get("id"), "error": info.get("error")}, place)
        else:
            yield from self._said(_reply(message, place))
            usage = _usage(mapping(info.get("tokens")))
            self._tokens = usage.total if usage else self._tokens

    def _said(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if isinstance(record, MessageRecord) and record.key:
                self._keys.add(record.key)
            yield record

    def _compaction(self, message: Json, place: int, asked: Json) -> Iterator[Record]:
        """Yield a compaction: its summary, and the first message that OpenCode kept."""
        info = _info(message)
        summary = "\n".join(text for step in _steps(message)[0] for text in step.text if text)
        tail = text_or(asked.get("tail_start_id"))
        if tail and tail not in self._keys:
            text = f"the first kept message {tail} is not in the file; read as keeping nothing"
            yield WarningRecord(place, text)
        at = moment(mapping(info.get("time")).get("completed"))
        before, self._tokens = self._tokens, None
        if not summary.strip():
            yield FactRecord("boundary", {"tokens_before": before}, place)
            return
        yield CompactionRecord(summary, tail if tail in self._keys else None, before, at=at, line=place)
        if usage := _usage(mapping(info.get("tokens"))):
            yield FactRecord("usage", {"compaction": place, "tokens": usage.total}, place)


# ---- what the user said


def _user(message: Json, line: int) -> Iterator[Record]:
    """Yield what the user wrote; what OpenCode added to it follows as an injected message."""
    info = _info(message)
    at, key = moment(mapping(info.get("time")).get("created")), text_or(info.get("id"))
    own: list[Json] = []
    added: list[Json] = []
    added_key = None
    for part in _parts(message):
        kind, synthetic = part.get("type"), part.get("synthetic") is True
        if kind == "text" and part.get("ignored") is not True:
            (added if synthetic else own).append(_text(part.get("text")))
            added_key = added_key or (text_or(part.get("id")) or None if synthetic else None)
        elif kind == "file" and _is_media(part):
            own.append(_media(part))
        elif kind == "subtask":
            own.append(_text(part.get("prompt")))
            yield FactRecord("subtask", part, line)
        else:
            yield FactRecord("attachment" if kind == "file" else text_or(kind, "part"), _bare(part), line)
    if own:
        yield message_record(payloads.user(_content(own)), line, at=at, key=key)
    if added:
        known: Json = {"key": added_key if own else key, "parent": key}
        yield message_record(payloads.user(_content(added)), line, at=at, injected=True, **known)


def _text(value: Any) -> Json:
    return {"type": "text", "text": value}


def _content(found: list[Json]) -> Any:
    """Return a single text as it is, several parts as a list."""
    return found[0]["text"] if len(found) == 1 and found[0]["type"] == "text" else found


def _is_media(part: Json) -> bool:
    """Return whether a file goes to the model as a file; text files and directories become synthetic text."""
    mime = text_or(part.get("mime"))
    return bool(text_or(part.get("url"))) and mime not in ("", "text/plain", "application/x-directory")


def _media(part: Json) -> Json:
    return payloads.media(text_or(part.get("mime")), text_or(part.get("url")), text_or(part.get("filename")))


# ---- what the model said


class _Step(msgspec.Struct):
    """What a model said in one step: text, thoughts, tool parts, and the tokens counted for it."""

    key: str
    text: list[str] = []
    thoughts: list[str] = []
    sealed: list[Json] = []
    tools: list[Json] = []
    tokens: Json = {}
    reason: str = ""


def _steps(message: Json) -> tuple[list[_Step], list[Json]]:
    """Sort a reply's parts into its steps; return parts that a model never sees separately."""
    info = _info(message)
    found = [_Step(text_or(info.get("id")))]
    beside: list[Json] = []
    for part in _parts(message):
        kind, step = part.get("type"), found[-1]
        if kind == "step-start":
            if step.text or step.thoughts or step.sealed or step.tools or step.reason:
                found.append(_Step(text_or(part.get("id"))))
        elif kind == "step-finish":
            step.tokens, step.reason = mapping(part.get("tokens")), text_or(part.get("reason"))
        elif kind == "text":
            step.text.append(text_or(part.get("text")))
        elif kind == "reasoning":
            step.thoughts.append(text_or(part.get("text")))
            step.sealed.extend(_sealed(part))
        elif kind == "tool":
            step.tools.append(part)
        else:
            beside.append(part)
    if not found[-1].tokens and len(found) == 1:
        found[-1].tokens = mapping(info.get("tokens"))
    found[-1].reason = found[-1].reason or text_or(info.get("finish"))
    return found, beside


def _sealed(part: Json) -> Iterator[Json]:
    """Yield encrypted reasoning, with the provider that gave it."""
    for provider, known in mapping(part.get("metadata")).items():
        fields = mapping(known)
        for name in _SEALED:
            if fields.get(name):
                yield payloads.sealed_thought(fields[name], provider=provider, id=fields.get("itemId"))


def _reply(message: Json, line: int) -> Iterator[Record]:
    """Yield what the model said, step by step, each followed by the results of its calls."""
    info, (found, beside) = _info(message), _steps(message)
    error = mapping(info.get("error"))
    for step in found:
        calls = [_call(part) for part in step.tools]
        text = "\n".join(text for text in step.text if text)
        thinking = "\n\n".join(thought for thought in step.thoughts if thought)
        payload = payloads.reply(text, thinking, calls, step.sealed)
        if payloads.is_empty(payload):
            yield FactRecord("empty", {"id": step.key, "tokens": step.tokens, "error": error}, line)
            continue
        yield message_record(
            payload,
            line,
            at=moment(mapping(info.get("time")).get("created")),
            key=step.key or None,
            parent=text_or(info.get("parentID")) or None,
            usage=_usage(step.tokens),
            model=text_or(info.get("modelID")) or None,
            stop="error" if error and step is found[-1] else _STOPS.get(step.reason),
        )
        yield from _results(step, line)
    if error:
        yield FactRecord("error", error, line)
    for part in beside:
        if part.get("type") not in _BOOKKEEPING:
            yield FactRecord(text_or(part.get("type"), "part"), _bare(part), line)


def _call(part: Json) -> Json:
    state = mapping(part.get("state"))
    given = state.get("input")
    arguments = given if given or not text_or(state.get("raw")) else state["raw"]
    return payloads.call(part.get("callID"), part.get("tool"), arguments)


def _results(step: _Step, line: int) -> Iterator[Record]:
    """Yield the results of a step; a running call has none. Images in results follow all of them."""
    shown: list[Json] = []
    for part in step.tools:
        state = mapping(part.get("state"))
        status, time = state.get("status"), mapping(state.get("time"))
        if status not in ("completed", "error"):
            continue
        failed = status == "error"
        call, text = (
            text_or(part.get("callID")),
            payloads.words_of(state.get("error" if failed else "output")),
        )
        known: Json = {"at": moment(time.get("end")), "key": text_or(part.get("id")) or None}
        yield message_record(payloads.answer(call, text), line, failed=failed, **known)
        if time.get("compacted"):
            yield FactRecord("pruned", {"call": call, "at": moment(time["compacted"])}, line)
        shown += [_media(one) for one in map(mapping, items(state.get("attachments"))) if _is_media(one)]
    if shown:
        yield message_record(payloads.shown(shown), line, injected=True)


def _usage(tokens: Json) -> Usage | None:
    """Read a usage; OpenCode's counts do not overlap, reasoning is separate. None if nothing was counted."""
    cache = mapping(tokens.get("cache"))
    numbers = [tokens.get("input"), cache.get("read"), cache.get("write"), tokens.get("output")]
    given, read, write, output = (count_or_none(number) or 0 for number in numbers)
    found = Usage(given, read, write, output + (count_or_none(tokens.get("reasoning")) or 0))
    return found if found.total else None


# ---- fields


def _info(message: Json) -> Json:
    return mapping(message.get("info"))


def _parts(message: Json) -> list[Json]:
    return [mapping(part) for part in items(message.get("parts"))]


def _bare(part: Json) -> Json:
    """Return a part without the ids of its session and message."""
    return {key: value for key, value in part.items() if key not in ("sessionID", "messageID")}
