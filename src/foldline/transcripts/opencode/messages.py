"""OpenCode's messages and parts as `openai-chat` payloads: a step is a reply and its results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from foldline.core.log.codec import encode
from foldline.core.log.messages import Usage
from foldline.transcripts.records import FactRecord, Record
from foldline.transcripts.shared import chat
from foldline.transcripts.shared.injected import is_injected
from foldline.transcripts.shared.values import count_or_none, items, mapping, moment, text_or

_STOPS = {"stop": "end", "tool-calls": "tools", "length": "length", "content-filter": "end", "error": "error"}
_SEALED = ("reasoningEncryptedContent", "reasoningOpaque", "signature", "redactedData")
_BOOKKEEPING = ("patch", "snapshot", "retry", "agent")


class OpenCodeStep(msgspec.Struct):
    """What a model said in one step: text, thoughts, tool parts, and the tokens counted for it."""

    key: str
    text: list[str] = []
    thoughts: list[str] = []
    sealed: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] = []
    tokens: dict[str, Any] = {}
    reason: str = ""


def parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message."""
    return [mapping(part) for part in items(message.get("parts"))]


def user(message: dict[str, Any], line: int) -> Iterator[Record]:
    """Yield what the user wrote; what OpenCode added to it follows as an injected message."""
    info = mapping(message.get("info"))
    at, key = moment(mapping(info.get("time")).get("created")), text_or(info.get("id"))
    own: list[dict[str, Any]] = []
    added: list[dict[str, Any]] = []
    added_key = None
    for part in parts_of(message):
        kind = part.get("type")
        if kind == "text" and part.get("ignored") is not True:
            (added if part.get("synthetic") is True else own).append(_text(part.get("text")))
            added_key = added_key or (
                text_or(part.get("id")) or None if part.get("synthetic") is True else None
            )
        elif kind == "file" and _is_media(part):
            own.append(_media(part))
        elif kind == "subtask":
            own.append(_text(part.get("prompt")))
            yield FactRecord("subtask", part, line)
        else:
            yield FactRecord("attachment" if kind == "file" else text_or(kind, "part"), _bare(part), line)
    if own:
        content = _content(own)
        injected = isinstance(content, str) and is_injected(content)
        yield chat.heard({"role": "user", "content": content}, line, at=at, key=key, injected=injected)
    if added:
        added_key = added_key if own else key
        yield chat.heard(
            {"role": "user", "content": _content(added)},
            line,
            at=at,
            key=added_key,
            parent=key,
            injected=True,
        )


def _text(value: Any) -> dict[str, Any]:
    return {"type": "text", "text": value}


def _content(found: list[dict[str, Any]]) -> Any:
    """Return a single text as it is, several parts as a list."""
    return found[0]["text"] if len(found) == 1 and found[0]["type"] == "text" else found


def _is_media(part: dict[str, Any]) -> bool:
    """Return whether a file goes to the model as a file; text files and directories become synthetic text."""
    mime = text_or(part.get("mime"))
    return bool(text_or(part.get("url"))) and mime not in ("", "text/plain", "application/x-directory")


def _media(part: dict[str, Any]) -> dict[str, Any]:
    return chat.media(text_or(part.get("mime")), text_or(part.get("url")), text_or(part.get("filename")))


def _bare(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part without the ids of its session and message."""
    return {key: value for key, value in part.items() if key not in ("sessionID", "messageID")}


def steps(message: dict[str, Any]) -> tuple[list[OpenCodeStep], list[dict[str, Any]]]:
    """Sort a reply's parts into its steps; return parts that a model never sees separately."""
    info = mapping(message.get("info"))
    found = [OpenCodeStep(text_or(info.get("id")))]
    beside: list[dict[str, Any]] = []
    for part in parts_of(message):
        kind, step = part.get("type"), found[-1]
        if kind == "step-start":
            if step.text or step.thoughts or step.sealed or step.tools or step.reason:
                found.append(OpenCodeStep(text_or(part.get("id"))))
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


def _sealed(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield encrypted reasoning, with the provider that gave it."""
    for provider, known in mapping(part.get("metadata")).items():
        fields = mapping(known)
        for name in _SEALED:
            if fields.get(name):
                yield chat.sealed_thought(fields[name], provider=provider, id=fields.get("itemId"))


def reply(message: dict[str, Any], line: int) -> Iterator[Record]:
    """Yield what the model said, step by step, each followed by the results of its calls."""
    info = mapping(message.get("info"))
    found, beside = steps(message)
    at, parent = moment(mapping(info.get("time")).get("created")), text_or(info.get("parentID")) or None
    error = mapping(info.get("error"))
    for step in found:
        calls = [_call(part) for part in step.tools]
        thinking = "\n\n".join(thought for thought in step.thoughts if thought)
        payload = chat.reply("\n".join(text for text in step.text if text), thinking, calls, step.sealed)
        if chat.is_empty(payload):
            yield FactRecord("empty", {"id": step.key, "tokens": step.tokens, "error": error}, line)
            continue
        stop = "error" if error and step is found[-1] else _STOPS.get(step.reason)
        yield chat.heard(
            payload,
            line,
            at=at,
            key=step.key or None,
            parent=parent,
            usage=usage(step.tokens),
            model=text_or(info.get("modelID")) or None,
            stop=stop,
        )
        yield from _results(step, line)
    if error:
        yield FactRecord("error", error, line)
    for part in beside:
        if part.get("type") not in _BOOKKEEPING:
            yield FactRecord(text_or(part.get("type"), "part"), _bare(part), line)


def _call(part: dict[str, Any]) -> dict[str, Any]:
    state = mapping(part.get("state"))
    given = state.get("input")
    arguments = given if given or not text_or(state.get("raw")) else state["raw"]
    return chat.call(text_or(part.get("callID")), text_or(part.get("tool")), arguments)


def _results(step: OpenCodeStep, line: int) -> Iterator[Record]:
    """Yield the results of a step; a running call has none. Images in results follow all of them."""
    shown: list[dict[str, Any]] = []
    for part in step.tools:
        state = mapping(part.get("state"))
        status, time = state.get("status"), mapping(state.get("time"))
        if status not in ("completed", "error"):
            continue
        failed = status == "error"
        told = state.get("error" if failed else "output")
        text = told if isinstance(told, str) else encode(told).decode() if told is not None else ""
        call = text_or(part.get("callID"))
        at = moment(time.get("end"))
        yield chat.heard(
            chat.answer(call, text), line, at=at, key=text_or(part.get("id")) or None, failed=failed
        )
        if time.get("compacted"):
            yield FactRecord("pruned", {"call": call, "at": moment(time["compacted"])}, line)
        shown += [_media(one) for one in map(mapping, items(state.get("attachments"))) if _is_media(one)]
    if shown:
        label = _text("[Shown by the tool calls above]")
        yield chat.heard({"role": "user", "content": [label, *shown]}, line, injected=True)


def usage(tokens: dict[str, Any]) -> Usage | None:
    """Read a usage; OpenCode's counts do not overlap, reasoning is separate. None if nothing was counted."""
    cache = mapping(tokens.get("cache"))
    numbers = [tokens.get("input"), cache.get("read"), cache.get("write"), tokens.get("output")]
    given, read, write, output = (count_or_none(number) or 0 for number in numbers)
    found = Usage(given, read, write, output + (count_or_none(tokens.get("reasoning")) or 0))
    return found if found.total else None
