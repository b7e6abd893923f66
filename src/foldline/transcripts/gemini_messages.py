"""Read Gemini CLI's messages as `openai-chat` payloads; calls and their results share one message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from foldline.core.log.messages import Usage
from foldline.dialects.payload import fields_of, items_of
from foldline.transcripts import payloads
from foldline.transcripts.lines import Row
from foldline.transcripts.payloads import content_of, message_record
from foldline.transcripts.records import FactRecord, MessageRecord, Record, ResultImages, WarningRecord

_SETUP = ("This is the Gemini CLI. We are setting up the context", "<session_context>")
_FILES = "--- Content from referenced files ---"
_SHOWN = ("info", "error", "warning")

Json = dict[str, Any]
Result = tuple[str, str, bool]  # call id, text, whether it failed


class GeminiContent(msgspec.Struct):
    """The parts of a content, by kind; `media` are images or files."""

    text: list[str] = []
    thoughts: list[str] = []
    calls: list[Json] = []
    results: list[Result] = []
    media: list[Json] = []
    unknown: list[Json] = []


def sort_parts(holder: Row, field: str) -> GeminiContent:
    """Sort the parts of a content by kind; the content is text, a part or a list of both."""
    result = GeminiContent()
    content = holder.get(field)
    for item in items_of(content) if isinstance(content, list) else [content]:
        part = Row({"text": item} if isinstance(item, str) else fields_of(item))
        packed, response = part.inner("inlineData"), part.inner("functionResponse")
        if isinstance(part.get("text"), str):
            (result.thoughts if part.get("thought") is True else result.text).append(part["text"])
        elif isinstance(part.get("functionCall"), dict):
            result.calls.append(_call(part.inner("functionCall")))
        elif isinstance(part.get("functionResponse"), dict):
            result.results.append(_result(response))
            result.media.extend(sort_parts(response, "parts").media)
        elif packed.text("data"):
            result.media.append(payloads.packed(packed.text("mimeType"), packed["data"]))
        elif part:
            result.unknown.append(part)
    return result


def _call(call: Row) -> Json:
    return payloads.call(call.text("id", call.text("name")), call.get("name"), call.get("args"))


def _result(response: Row) -> Result:
    """Read a result; Gemini CLI wraps it in `output` or `error`."""
    body, fields = response.get("response"), response.inner("response")
    error = fields.get("error")
    value = error if error is not None and "output" not in fields else fields.get("output", body)
    return response.text("id", response.text("name")), payloads.as_text(value), error is not None


def records(row: Row, answered_calls: set[str]) -> Iterator[Record | ResultImages]:
    """Yield the records of a message; `answered_calls` grows by those whose results it yields."""
    kind = row.text("type")
    if kind == "gemini":
        yield from _reply(row, answered_calls)
    elif kind == "user":
        yield from _user(row, answered_calls)
    elif kind in _SHOWN:
        yield FactRecord(kind, {"content": row.get("content"), "at": row.time("timestamp")}, row.line)
    else:
        yield WarningRecord(row.line, f"unknown type of Gemini CLI's messages: {kind[:40]!r} (left out)")


def is_setup(message: Row) -> bool:
    """Return whether a message is one that Gemini CLI sends before the user's first."""
    return "\n".join(sort_parts(message, "content").text).lstrip().startswith(_SETUP)


def _user(row: Row, answered_calls: set[str]) -> Iterator[Record]:
    content, line = sort_parts(row, "content"), row.line
    at, key = row.time("timestamp"), row.text("id") or None
    fresh = [result for result in content.results if result[0] not in answered_calls]
    yield from _answers(fresh, row, answered_calls)
    yield from (FactRecord("part", part, line) for part in content.unknown)
    if content.results and not content.text and not (fresh and content.media):
        if not fresh:
            yield FactRecord("repeated", {"results": [result[0] for result in content.results]}, line)
        return
    starts = (index for index, text in enumerate(content.text) if text.lstrip().startswith(_FILES))
    end = next(starts, len(content.text))  # the referenced files follow the user's text
    typed, files = content.text[:end], content.text[end:]
    if typed or content.media or not files:
        injected = bool(content.results) or "\n".join(typed).lstrip().startswith(_SETUP)
        payload = payloads.user(_content(typed, content.media))
        yield message_record(payload, line, at=at, key=key, injected=injected)
    if files:
        key = None if typed or content.media else key
        yield message_record(payloads.user(_content(files, [])), line, at=at, key=key, injected=True)


def _content(texts: list[str], media: list[Json]) -> Any:
    return content_of([*({"type": "text", "text": text} for text in texts), *media]) or ""


def _reply(row: Row, answered_calls: set[str]) -> Iterator[Record | ResultImages]:
    """Yield a reply, then the results of its calls, then the images in them."""
    content, recorded = sort_parts(row, "content"), row.rows("toolCalls")
    recorded_ids = {call.text("id") for call in recorded}
    unrecorded = [call for call in content.calls if call["id"] not in recorded_ids]
    calls = [*unrecorded, *map(_call, recorded)]
    thoughts = [*content.thoughts, *map(_thought, row.rows("thoughts"))]
    yield from (FactRecord("part", part, row.line) for part in content.unknown)
    payload = payloads.reply("".join(content.text), "\n\n".join(thoughts), calls)
    if payloads.is_empty(payload):
        fields = {key: row[key] for key in ("id", "model", "tokens") if key in row}
        yield FactRecord("empty", fields, row.line)
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
        result = sort_parts(call, "result")
        results = result.results
        if result.text and not results:
            results = [(call.text("id"), "\n".join(result.text), False)]
        failed = call.text("status") in ("error", "cancelled")
        marked = [(call_id, text, is_error or failed) for call_id, text, is_error in results]
        yield from _answers(marked, row, answered_calls)
        yield from (FactRecord("part", part, row.line) for part in result.unknown)
        yield ResultImages(result.media, row.time("timestamp"), row.line)


def _answers(
    results: Iterable[Result], row: Row, answered_calls: set[str]
) -> Iterator[MessageRecord | WarningRecord]:
    for call, text, failed in results:
        answered_calls.add(call)
        payload = payloads.answer(call, text)
        yield message_record(payload, row.line, at=row.time("timestamp"), key=call, failed=failed)


def _thought(thought: Row) -> str:
    """Return a thought as Gemini CLI shows it: its subject in bold, then its text."""
    subject, description = thought.text("subject"), thought.text("description")
    return f"**{subject}**\n{description}".strip() if subject else description


def _usage(tokens: Row) -> Usage | None:
    """Read a usage; `input` includes cached tokens, `output` no thoughts; Gemini's own tools add input."""
    keys = ("input", "cached", "tool", "output", "thoughts")
    input_tokens, cached, tool, output, thoughts = (tokens.count(key) or 0 for key in keys)
    return Usage(max(input_tokens - cached, 0) + tool, cached, 0, output + thoughts) if tokens else None
