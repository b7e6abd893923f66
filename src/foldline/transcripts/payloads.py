"""What readers make of an agent's own message form: a payload of an API, and from it a record.

An agent whose messages are nearest to Anthropic's is read as `anthropic` (`text_block`, `call_block`, …), any
other as Chat Completions (`reply`, `call`, `answer`, …). `message_record` decodes the payload and adds what
the file knows beside it.

Agents also send reminders, hook output, command output and notices as user messages. None of it is a request:
`is_injected` tells it from the user's own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from foldline import dialects
from foldline.core.ledger.text.origin import past_notices
from foldline.core.log.codec import encode
from foldline.core.log.messages import Message, Text, ToolResult, Usage
from foldline.errors import DialectError
from foldline.transcripts.lines import count_or_none, text_or
from foldline.transcripts.records import FactRecord, MessageRecord, Record, WarningRecord, not_a_message

_IMAGE = "image/"
_TAGS = (
    "system-reminder", "local-command-caveat", "local-command-stdout", "local-command-stderr", "command-name",
    "command-message", "command-args", "command-contents", "bash-stdout", "bash-stderr", "bash-input",
    "task-notification", "user-prompt-submit-hook", "environment_context", "user_instructions",
    "INSTRUCTIONS", "turn_aborted", "ide_opened_file", "ide_selection", "permissions instructions", "skill",
    "subagent_notification",
)  # fmt: skip
_WRAPPED = re.compile(
    r"\s*<(?P<tag>" + "|".join(re.escape(tag) for tag in _TAGS) + r")(?:\s[^>]*)?>.*?</(?P=tag)>", re.DOTALL
)
_ARGUMENTS = re.compile(r"<command-args>\s*[^<\s]")

# ---- records


def message_record(
    payload: dict[str, Any],
    line: int,
    *,
    dialect: str = dialects.OPENAI_CHAT,
    at: float | None = None,
    key: str | None = None,
    parent: str | None = None,
    failed: bool = False,
    injected: bool = False,
    **known: Any,
) -> MessageRecord | WarningRecord:
    """Decode a payload, with what the file knows about it (`known`: usage, model, stop).

    `failed` marks its results as errors; `injected` says that a program wrote it, which the text of a user
    message may show too. A payload that is not a message becomes a warning with its line.
    """
    try:
        message = dialects.get(dialect).decode(payload)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, line)
    if failed:
        message = mark_failed(message)
    message = msgspec.structs.replace(message, injected=injected or is_programs(message), **known)
    return MessageRecord(message, at=at, key=key, parent=parent, line=line)


def mark_failed(message: Message) -> Message:
    """Return a message with all its results marked as errors."""
    parts = [
        msgspec.structs.replace(part, is_error=True) if isinstance(part, ToolResult) else part
        for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))


def with_models(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records, and before the first message of each other model a fact that names it."""
    model: Any = None
    for record in records:
        if isinstance(record, FactRecord) and record.kind == "model":
            if record.data.get("model") == model:
                continue
            model = record.data.get("model")
        elif isinstance(record, MessageRecord) and record.message.model not in (None, model):
            model = record.message.model
            yield FactRecord("model", {"model": model}, record.line)
        yield record


def usage_of(counted: dict[str, Any], names: Sequence[str], *, inclusive: bool = False) -> Usage:
    """Read a usage by the names of its input, cached input read and written, and output.

    `inclusive`: the input includes the cached tokens.
    """
    given, read, written, output = (count_or_none(counted.get(name)) or 0 for name in names)
    return Usage(max(given - read - written, 0) if inclusive else given, read, written, output)


# ---- whose words


def is_programs(message: Message) -> bool:
    """Return whether a program wrote a user message; one with media or results is not told by its text."""
    alone = message.role == "user" and all(isinstance(part, Text) for part in message.parts)
    return alone and is_injected(message.text)


def is_injected(text: str) -> bool:
    """Return whether a program wrote a user message's whole text: known tags around it, or known notices.

    A slash command with arguments is the user's own; a reminder next to the user's words does not count.
    """
    if _ARGUMENTS.search(text):
        return False
    at = past_notices(text)
    while wrapped := _WRAPPED.match(text, at):
        at = past_notices(text, wrapped.end())
    return at > 0 and not text[at:].strip()


# ---- Chat Completions


def user(text: Any, media: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Write a user message; beside media its text is a part of its own."""
    if not media:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [*([{"type": "text", "text": text}] if text else []), *media]}


def shown(media: Sequence[dict[str, Any]], label: str = "[Shown by the tool calls above]") -> dict[str, Any]:
    """Write the images in results as a user message: Chat Completions has none in results."""
    return user(label, media)


def reply(
    text: str,
    thinking: str,
    calls: Sequence[dict[str, Any]],
    details: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Write what a model said, thought and called; `details` are its encrypted thoughts.

    Next to readable thoughts they are only a signature, which costs no tokens; alone they are the thoughts.
    Equal ones are kept once: some agents repeat them with every paragraph.
    """
    payload: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thinking:
        payload["reasoning_content"] = thinking
    if details:
        known = {encode(one["data"]): one for one in reversed(details)}
        payload["reasoning_opaque" if thinking else "reasoning_details"] = list(known.values())[::-1]
    if calls:
        payload["tool_calls"] = list(calls)
    elif not text:
        payload["content"] = ""  # null is allowed only with calls
    return payload


def is_empty(payload: dict[str, Any]) -> bool:
    """Return whether a reply has neither text nor thoughts nor calls."""
    return not payload["content"] and payload.keys() == {"role", "content"}


def call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Write a tool call; arguments other than text become JSON text."""
    written = arguments if isinstance(arguments, str) else encode(arguments or {}).decode()
    function = {"name": text_or(name), "arguments": written}
    return {"id": text_or(call_id), "type": "function", "function": function}


def sealed_thought(data: Any, **known: Any) -> dict[str, Any]:
    """Write encrypted reasoning in the form of OpenRouter's `reasoning_details`."""
    return {"type": "reasoning.encrypted", "data": data, **known}


def answer(call_id: Any, text: str) -> dict[str, Any]:
    """Write a tool result; Chat Completions has no mark for a failed one."""
    return {"role": "tool", "tool_call_id": text_or(call_id), "content": text}


def media(mime: str, url: str, name: str = "") -> dict[str, Any]:
    """Write an image or a file, given as a URL or a data URL."""
    if mime.startswith(_IMAGE):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": name or "file", "file_data": url}}


def packed(mime: str, data: str, name: str = "") -> dict[str, Any]:
    """Write an image or a file, given as base64."""
    return media(mime, f"data:{mime};base64,{data}", name)


def words_of(value: Any) -> str:
    """Return a value as a result's text: text as it is, null as nothing, others as JSON."""
    return value if isinstance(value, str) else "" if value is None else encode(value).decode("utf-8")


# ---- Anthropic's blocks


class BlockNames(msgspec.Struct, frozen=True):
    """What an agent calls the fields of its content blocks, which are Anthropic's but for these names."""

    call: str = "tool_use"
    arguments: str = "input"
    result_id: str = "tool_use_id"
    output: str = "content"
    failed: str = "is_error"
    flat_images: bool = False  # `mime_type` and `data` beside the type, without a `source`

    def read(self, block: dict[str, Any]) -> dict[str, Any] | None:
        """Write an agent's block as Anthropic's; None for blank text, which no API accepts.

        A thought without a signature, which the API requires, becomes text. Raises DialectError for a block
        of another kind, or with content of a wrong type.
        """
        kind = block.get("type")
        signature = text_or(block.get("signature"))
        if kind == "thinking" and signature:
            return {"type": kind, "thinking": text_or(block.get("thinking")), "signature": signature}
        if kind in ("text", "thinking"):
            words = text_or(block.get(kind))
            return {"type": "text", "text": words} if words.strip() else None
        if kind == self.call:
            return self._call(block)
        if kind == "tool_result":
            return self._result(block)
        if kind == "image" and self.flat_images:
            return image_block(text_or(block.get("mime_type")), text_or(block.get("data")))
        if kind == "image" and isinstance(block.get("source"), dict):
            return {"type": "image", "source": block["source"]}
        raise DialectError(f"a block of unknown type {str(kind)[:40]!r}")

    def _call(self, block: dict[str, Any]) -> dict[str, Any]:
        arguments = block.get(self.arguments)
        if not isinstance(arguments, dict):
            raise DialectError("the arguments of a call are not an object")
        known = {"id": text_or(block.get("id")), "name": text_or(block.get("name"))}
        return {"type": "tool_use", **known, "input": arguments}

    def _result(self, block: dict[str, Any]) -> dict[str, Any]:
        words = block.get(self.output)
        if not isinstance(words, str):
            raise DialectError("a tool result is not text")
        written = {"type": "tool_result", "tool_use_id": text_or(block.get(self.result_id)), "content": words}
        return {**written, "is_error": True} if block.get(self.failed) is True else written


def image_block(mime: str, data: str) -> dict[str, Any]:
    """Write an image given as base64."""
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}
