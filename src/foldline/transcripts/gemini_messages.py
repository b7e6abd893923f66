"""Gemini CLI's message records as `openai-chat` payloads; calls and results share one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from foldline.core.log.messages import Usage
from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts import payloads
from foldline.transcripts.lines import Row
from foldline.transcripts.payloads import content_of, message_record
from foldline.transcripts.records import FactRecord, MessageRecord, Pictures, Record, WarningRecord

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


def sort_parts(holder: Row, field: str) -> GeminiContent:
    """Sort the parts of a content by kind; it is text, a part or a list of both."""
    found = GeminiContent()
    content = holder.get(field)
    for one in items_of(content) if isinstance(content, list) else [content]:
        part = Row({"text": one} if isinstance(one, str) else fields_of(one))
        packed, response = part.inner("inlineData"), part.inner("functionResponse")
        if isinstance(part.get("text"), str):
            (found.thoughts if part.get("thought") is True else found.text).append(part["text"])
        elif isinstance(part.get("functionCall"), dict):
            found.calls.append(_call(part.inner("functionCall")))
        elif isinstance(part.get("functionResponse"), dict):
            found.results.append(_result(response))
            found.media.extend(sort_parts(response, "parts").media)
        elif packed.text("data"):
            found.media.append(payloads.packed(packed.text("mimeType"), packed["data"]))
        elif part:
            found.unknown.append(part)
    return found


def _call(made: Row) -> Json:
    return payloads.call(made.text("id", made.text("name")), made.get("name"), made.get("args"))


def _result(response: Row) -> Result:
    """Read a result; Gemini CLI wraps it in `output` or `error`."""
    body, told = response.get("response"), response.inner("response")
    error = told.get("error")
    value = error if error is not None and "output" not in told else told.get("output", body)
    return response.text("id", response.text("name")), payloads.words_of(value), error is not None


def records(row: Row, answered_calls: set[str]) -> Iterator[Record | Pictures]:
    """Yield the records of a message; `answered_calls` grows by those whose results it yields."""
    kind = row.text("type")
    if kind == "gemini":
        yield from _reply(row, answered_calls)
    elif kind == "user":
        yield from _user(row, answered_calls)
    elif kind in _SHOWN:
        yield FactRecord(kind, {"content": row.get("content"), "at": row.time("timestamp")}, row.line)
    else:
        yield WarningRecord(row.line, f"Gemini CLI writes no message of type {kind[:40]!r} (left out)")


def is_setup(message: Row) -> bool:
    """Return whether a message is what Gemini CLI says before the user does."""
    return "\n".join(sort_parts(message, "content").text).lstrip().startswith(_SETUP)


def _user(row: Row, answered_calls: set[str]) -> Iterator[Record]:
    found, line = sort_parts(row, "content"), row.line
    at, key = row.time("timestamp"), row.text("id") or None
    fresh = [result for result in found.results if result[0] not in answered_calls]
    yield from _answers(fresh, row, answered_calls)
    yield from (FactRecord("part", part, line) for part in found.unknown)
    if found.results and not found.text and not (fresh and found.media):
        if not fresh:
            yield FactRecord("repeated", {"results": [result[0] for result in found.results]}, line)
        return
    starts = (at for at, text in enumerate(found.text) if text.lstrip().startswith(_FILES))
    end = next(starts, len(found.text))  # what follows the user's own words is the files that they refer to
    own, read = found.text[:end], found.text[end:]
    if own or found.media or not read:
        injected = bool(found.results) or "\n".join(own).lstrip().startswith(_SETUP)
        payload = payloads.user(_content(own, found.media))
        yield message_record(payload, line, at=at, key=key, injected=injected)
    if read:
        key = None if own or found.media else key
        yield message_record(payloads.user(_content(read, [])), line, at=at, key=key, injected=True)


def _content(texts: list[str], media: list[Json]) -> Any:
    return content_of([*({"type": "text", "text": text} for text in texts), *media]) or ""


def _reply(row: Row, answered_calls: set[str]) -> Iterator[Record | Pictures]:
    """Yield what the model said, then the results of its calls, then the images in them."""
    found, recorded = sort_parts(row, "content"), row.rows("toolCalls")
    known = {call.text("id") for call in recorded}
    calls = [call for call in found.calls if call["id"] not in known] + [_call(call) for call in recorded]
    thoughts = [*found.thoughts, *map(_thought, row.rows("thoughts"))]
    yield from (FactRecord("part", part, row.line) for part in found.unknown)
    payload = payloads.reply("".join(found.text), "\n\n".join(thoughts), calls)
    if payloads.is_empty(payload):
        left = {key: row[key] for key in ("id", "model", "tokens") if key in row}
        yield FactRecord("empty", left, row.line)
        return
    yield message_record(
        payload,
        row.line,
        at=row.time("timestamp"),
        key=row.text("id") or None,
        usage=_usage(row.inner("tokens")),
        model=row.text("model") or None,
        stop="tools" if calls else "end",
    )
    for call in recorded:
        answered = sort_parts(call, "result")
        results = answered.results
        if answered.text and not results:
            results = [(call.text("id"), "\n".join(answered.text), False)]
        failed = call.text("status") in ("error", "cancelled")
        marked = [(one, text, bad or failed) for one, text, bad in results]
        yield from _answers(marked, row, answered_calls)
        yield from (FactRecord("part", part, row.line) for part in answered.unknown)
        yield Pictures(answered.media, row.time("timestamp"), row.line)


def _answers(
    results: Iterable[Result], row: Row, answered_calls: set[str]
) -> Iterator[MessageRecord | WarningRecord]:
    for call, text, failed in results:
        answered_calls.add(call)
        payload = payloads.answer(call, text)
        yield message_record(payload, row.line, at=row.time("timestamp"), key=call, failed=failed)


def _thought(thought: Row) -> str:
    """Return a thought as Gemini shows it: its subject in bold, then its text."""
    subject, description = thought.text("subject"), thought.text("description")
    return f"**{subject}**\n{description}".strip() if subject else description


def _usage(tokens: Row) -> Usage | None:
    """Read a usage; `input` includes cached tokens, `output` no thoughts; Gemini's own tools add input."""
    keys = ("input", "cached", "tool", "output", "thoughts")
    given, cached, tool, output, thoughts = (tokens.count(key) or 0 for key in keys)
    return Usage(max(given - cached, 0) + tool, cached, 0, output + thoughts) if tokens else None
