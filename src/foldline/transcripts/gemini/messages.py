"""Gemini CLI's message records as `openai-chat` payloads; calls and results share one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.messages import Usage
from foldline.transcripts.records import FactRecord, MessageRecord, Record, WarningRecord
from foldline.transcripts.shared import chat
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.values import count_or_none, items, mapping, moment, text_or

_SETUP = ("This is the Gemini CLI. We are setting up the context", "<session_context>")
_FILES = "--- Content from referenced files ---"
_SHOWN = ("info", "error", "warning")


class GeminiContent(msgspec.Struct):
    """Content by kind: text, thoughts, calls, results by call id, and images or files."""

    text: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    results: list[tuple[str, str, bool]] = []  # call id, text, whether it failed
    media: list[dict[str, Any]] = []
    unknown: list[dict[str, Any]] = []


def parts(content: Any) -> list[dict[str, Any]]:
    """Return the parts of a message's content, which is text, a part or a list of both."""
    listed = items(content) if isinstance(content, list) else [content]
    return [{"text": one} if isinstance(one, str) else mapping(one) for one in listed]


def sort_parts(content: Any) -> GeminiContent:
    """Sort the parts of a content by kind."""
    found = GeminiContent()
    for part in parts(content):
        packed = mapping(part.get("inlineData"))
        if isinstance(part.get("text"), str):
            (found.thoughts if part.get("thought") is True else found.text).append(part["text"])
        elif isinstance(part.get("functionCall"), dict):
            made = mapping(part["functionCall"])
            found.calls.append(_call(made))
        elif isinstance(part.get("functionResponse"), dict):
            found.results.append(_result(mapping(part["functionResponse"])))
            found.media.extend(sort_parts(items(part["functionResponse"].get("parts"))).media)
        elif text_or(packed.get("data")):
            mime = text_or(packed.get("mimeType"))
            found.media.append(chat.media(mime, f"data:{mime};base64,{packed['data']}"))
        elif part:
            found.unknown.append(part)
    return found


def _call(made: dict[str, Any]) -> dict[str, Any]:
    name = text_or(made.get("name"))
    return chat.call(text_or(made.get("id"), name), name, made.get("args"))


def _result(response: dict[str, Any]) -> tuple[str, str, bool]:
    """Return call id, text and whether the call failed; Gemini CLI wraps a result in `output` or `error`."""
    body = response.get("response")
    told = mapping(body)
    error = told.get("error")
    value = error if error is not None and "output" not in told else told.get("output", body)
    text = value if isinstance(value, str) else encode(value).decode() if value is not None else ""
    return text_or(response.get("id"), text_or(response.get("name"))), text, error is not None


def records(value: dict[str, Any], line: int, told: set[str]) -> Iterator[Record]:
    """Yield the records of a message; `told` holds the call ids whose results were yielded, and grows."""
    kind = text_or(value.get("type"))
    if kind == "gemini":
        yield from _reply(value, line, told)
    elif kind == "user":
        yield from _user(value, line, told)
    elif kind in _SHOWN:
        yield FactRecord(kind, {"content": value.get("content"), "at": moment(value.get("timestamp"))}, line)
    else:
        yield WarningRecord(line, f"Gemini CLI writes no message of type {kind[:40]!r} (left out)")


def is_setup(message: dict[str, Any]) -> bool:
    """Return whether a message is what Gemini CLI says before the user does."""
    return "\n".join(sort_parts(message.get("content")).text).lstrip().startswith(_SETUP)


def _user(value: dict[str, Any], line: int, told: set[str]) -> Iterator[Record]:
    found = sort_parts(value.get("content"))
    at, key = moment(value.get("timestamp")), text_or(value.get("id")) or None
    fresh = [result for result in found.results if result[0] not in told]
    yield from _answers(fresh, line, at, told)
    yield from _strange(found.unknown, line)
    if found.results and not found.text and not (fresh and found.media):
        if not fresh:
            yield FactRecord("repeated", {"results": [result[0] for result in found.results]}, line)
        return
    own, read = _own(found.text)
    words = "\n".join(own)
    injected = bool(found.results) or words.lstrip().startswith(_SETUP) or is_injected(words)
    if own or found.media or not read:
        content = _content(own, found.media)
        yield chat.heard({"role": "user", "content": content}, line, at=at, key=key, injected=injected)
    if read:
        payload = {"role": "user", "content": _content(read, [])}
        yield chat.heard(payload, line, at=at, key=None if own or found.media else key, injected=True)


def _own(texts: list[str]) -> tuple[list[str], list[str]]:
    """Split texts into the user's own and those of referenced files, which Gemini CLI puts after them."""
    end = next((i for i, text in enumerate(texts) if text.lstrip().startswith(_FILES)), len(texts))
    return texts[:end], texts[end:]


def _content(texts: list[str], media: list[dict[str, Any]]) -> Any:
    """Return a single text as it is, several parts as a list."""
    if len(texts) <= 1 and not media:
        return "".join(texts)
    return [*({"type": "text", "text": text} for text in texts), *media]


def _reply(value: dict[str, Any], line: int, told: set[str]) -> Iterator[Record]:
    """Yield what the model said, then the results of its calls, then the images in them."""
    found = sort_parts(value.get("content"))
    recorded = [mapping(call) for call in items(value.get("toolCalls"))]
    known = {text_or(call.get("id")) for call in recorded}
    calls = [call for call in found.calls if call["id"] not in known] + [_call(call) for call in recorded]
    thoughts = [*found.thoughts, *map(_thought, map(mapping, items(value.get("thoughts"))))]
    at, key = moment(value.get("timestamp")), text_or(value.get("id")) or None
    yield from _strange(found.unknown, line)
    payload = chat.reply("".join(found.text), "\n\n".join(thoughts), calls)
    if chat.is_empty(payload):
        yield FactRecord(
            "empty", {key: value[key] for key in ("id", "model", "tokens") if key in value}, line
        )
        return
    yield chat.heard(
        payload,
        line,
        at=at,
        key=key,
        usage=usage(mapping(value.get("tokens"))),
        model=text_or(value.get("model")) or None,
        stop="tools" if calls else "end",
    )
    pictures: list[dict[str, Any]] = []
    for call in recorded:
        answered = sort_parts(call.get("result"))
        results = answered.results or (
            [(text_or(call.get("id")), "\n".join(answered.text), False)] if answered.text else []
        )
        failed = text_or(call.get("status")) in ("error", "cancelled")
        yield from _answers([(one, text, bad or failed) for one, text, bad in results], line, at, told)
        yield from _strange(answered.unknown, line)
        pictures.extend(answered.media)
    if pictures:
        label = {"type": "text", "text": "[Shown by the tool calls above]"}
        yield chat.heard({"role": "user", "content": [label, *pictures]}, line, at=at, injected=True)


def _answers(
    results: Iterable[tuple[str, str, bool]], line: int, at: float | None, told: set[str]
) -> Iterator[MessageRecord | WarningRecord]:
    for call, text, failed in results:
        told.add(call)
        yield chat.heard(chat.answer(call, text), line, at=at, key=call, failed=failed)


def _strange(unknown: list[dict[str, Any]], line: int) -> Iterator[Record]:
    for part in unknown:
        yield FactRecord("part", part, line)


def _thought(thought: dict[str, Any]) -> str:
    """Return a thought as Gemini shows it: its subject in bold, then its text."""
    subject, description = text_or(thought.get("subject")), text_or(thought.get("description"))
    return f"**{subject}**\n{description}".strip() if subject else description


def usage(tokens: dict[str, Any]) -> Usage | None:
    """Read a usage; `input` includes cached tokens, `output` no thoughts; Gemini's own tools add input."""
    if not tokens:
        return None
    keys = ("input", "cached", "tool", "output", "thoughts")
    given, cached, tool, output, thoughts = (count_or_none(tokens.get(key)) or 0 for key in keys)
    return Usage(max(given - cached, 0) + tool, cached, 0, output + thoughts)
