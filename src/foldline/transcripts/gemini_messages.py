"""Gemini CLI's message records as `openai-chat` payloads; calls and results share one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from foldline.core.log.messages import Usage
from foldline.transcripts import payloads
from foldline.transcripts.lines import count_or_none, items, mapping, moment, text_or
from foldline.transcripts.payloads import message_record
from foldline.transcripts.records import FactRecord, MessageRecord, Record, WarningRecord

_SETUP = ("This is the Gemini CLI. We are setting up the context", "<session_context>")
_FILES = "--- Content from referenced files ---"
_SHOWN = ("info", "error", "warning")

Json = dict[str, Any]
Result = tuple[str, str, bool]  # call id, text, whether it failed


class GeminiContent(msgspec.Struct):
    """Content by kind: text, thoughts, calls, results, and images or files."""

    text: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    results: list[Result] = []
    media: list[Json] = []
    unknown: list[Json] = []


def sort_parts(content: Any) -> GeminiContent:
    """Sort the parts of a content by kind; it is text, a part or a list of both."""
    found = GeminiContent()
    for one in items(content) if isinstance(content, list) else [content]:
        part: Json = {"text": one} if isinstance(one, str) else mapping(one)
        packed = mapping(part.get("inlineData"))
        if isinstance(part.get("text"), str):
            (found.thoughts if part.get("thought") is True else found.text).append(part["text"])
        elif isinstance(part.get("functionCall"), dict):
            found.calls.append(_call(mapping(part["functionCall"])))
        elif isinstance(part.get("functionResponse"), dict):
            found.results.append(_result(mapping(part["functionResponse"])))
            found.media.extend(sort_parts(items(part["functionResponse"].get("parts"))).media)
        elif text_or(packed.get("data")):
            found.media.append(payloads.packed(text_or(packed.get("mimeType")), packed["data"]))
        elif part:
            found.unknown.append(part)
    return found


def _call(made: Json) -> Json:
    return payloads.call(
        text_or(made.get("id"), text_or(made.get("name"))), made.get("name"), made.get("args")
    )


def _result(response: Json) -> Result:
    """Read a result; Gemini CLI wraps it in `output` or `error`."""
    body = response.get("response")
    told = mapping(body)
    error = told.get("error")
    value = error if error is not None and "output" not in told else told.get("output", body)
    call = text_or(response.get("id"), text_or(response.get("name")))
    return call, payloads.words_of(value), error is not None


def records(value: Json, line: int, answered_calls: set[str]) -> Iterator[Record]:
    """Yield the records of a message; `answered_calls` grows by those whose results it yields."""
    kind = text_or(value.get("type"))
    if kind == "gemini":
        yield from _reply(value, line, answered_calls)
    elif kind == "user":
        yield from _user(value, line, answered_calls)
    elif kind in _SHOWN:
        yield FactRecord(kind, {"content": value.get("content"), "at": moment(value.get("timestamp"))}, line)
    else:
        yield WarningRecord(line, f"Gemini CLI writes no message of type {kind[:40]!r} (left out)")


def is_setup(message: Json) -> bool:
    """Return whether a message is what Gemini CLI says before the user does."""
    return "\n".join(sort_parts(message.get("content")).text).lstrip().startswith(_SETUP)


def _user(value: Json, line: int, answered_calls: set[str]) -> Iterator[Record]:
    found = sort_parts(value.get("content"))
    at, key = moment(value.get("timestamp")), text_or(value.get("id")) or None
    fresh = [result for result in found.results if result[0] not in answered_calls]
    yield from _answers(fresh, line, at, answered_calls)
    yield from _strange(found.unknown, line)
    if found.results and not found.text and not (fresh and found.media):
        if not fresh:
            yield FactRecord("repeated", {"results": [result[0] for result in found.results]}, line)
        return
    own, read = _own(found.text)
    if own or found.media or not read:
        injected = bool(found.results) or "\n".join(own).lstrip().startswith(_SETUP)
        payload = payloads.user(_content(own, found.media))
        yield message_record(payload, line, at=at, key=key, injected=injected)
    if read:  # what follows the user's own words is the files that they refer to
        key = None if own or found.media else key
        yield message_record(payloads.user(_content(read, [])), line, at=at, key=key, injected=True)


def _own(texts: list[str]) -> tuple[list[str], list[str]]:
    """Split texts into the user's own and those of referenced files, which Gemini CLI puts after them."""
    end = next((i for i, text in enumerate(texts) if text.lstrip().startswith(_FILES)), len(texts))
    return texts[:end], texts[end:]


def _content(texts: list[str], media: list[Json]) -> Any:
    """Return a single text as it is, several parts as a list."""
    if len(texts) <= 1 and not media:
        return "".join(texts)
    return [*({"type": "text", "text": text} for text in texts), *media]


def _reply(value: Json, line: int, answered_calls: set[str]) -> Iterator[Record]:
    """Yield what the model said, then the results of its calls, then the images in them."""
    found = sort_parts(value.get("content"))
    recorded = [mapping(call) for call in items(value.get("toolCalls"))]
    known = {text_or(call.get("id")) for call in recorded}
    calls = [call for call in found.calls if call["id"] not in known] + [_call(call) for call in recorded]
    thoughts = [*found.thoughts, *map(_thought, map(mapping, items(value.get("thoughts"))))]
    at = moment(value.get("timestamp"))
    yield from _strange(found.unknown, line)
    payload = payloads.reply("".join(found.text), "\n\n".join(thoughts), calls)
    if payloads.is_empty(payload):
        left = {key: value[key] for key in ("id", "model", "tokens") if key in value}
        yield FactRecord("empty", left, line)
        return
    yield message_record(
        payload,
        line,
        at=at,
        key=text_or(value.get("id")) or None,
        usage=_usage(mapping(value.get("tokens"))),
        model=text_or(value.get("model")) or None,
        stop="tools" if calls else "end",
    )
    pictures: list[Json] = []
    for call in recorded:
        answered = sort_parts(call.get("result"))
        results = answered.results
        if answered.text and not results:
            results = [(text_or(call.get("id")), "\n".join(answered.text), False)]
        failed = text_or(call.get("status")) in ("error", "cancelled")
        yield from _answers(
            [(one, text, bad or failed) for one, text, bad in results], line, at, answered_calls
        )
        yield from _strange(answered.unknown, line)
        pictures.extend(answered.media)
    if pictures:
        yield message_record(payloads.shown(pictures), line, at=at, injected=True)


def _answers(
    results: Iterable[Result], line: int, at: float | None, answered_calls: set[str]
) -> Iterator[MessageRecord | WarningRecord]:
    for call, text, failed in results:
        answered_calls.add(call)
        yield message_record(payloads.answer(call, text), line, at=at, key=call, failed=failed)


def _strange(unknown: list[Json], line: int) -> Iterator[Record]:
    for part in unknown:
        yield FactRecord("part", part, line)


def _thought(thought: Json) -> str:
    """Return a thought as Gemini shows it: its subject in bold, then its text."""
    subject, description = text_or(thought.get("subject")), text_or(thought.get("description"))
    return f"**{subject}**\n{description}".strip() if subject else description


def _usage(tokens: Json) -> Usage | None:
    """Read a usage; `input` includes cached tokens, `output` no thoughts; Gemini's own tools add input."""
    if not tokens:
        return None
    keys = ("input", "cached", "tool", "output", "thoughts")
    given, cached, tool, output, thoughts = (count_or_none(tokens.get(key)) or 0 for key in keys)
    return Usage(max(given - cached, 0) + tool, cached, 0, output + thoughts)
