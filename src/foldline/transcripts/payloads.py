"""What readers make of an agent's own message form: a payload of an API, and from it a record.

An agent whose messages are nearest to Anthropic's is read as `anthropic` (`BlockNames`), any other as
Chat Completions (`reply`, `call`, `answer`, …). `message_record` decodes the payload and adds what the file
knows beside it.

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
from foldline.transcripts.lines import Row, count_or_none, text_or
from foldline.transcripts.records import (
    CompactionRecord,
    FactRecord,
    MessageRecord,
    Pictures,
    Record,
    WarningRecord,
    not_a_message,
)

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


def finished(records: Iterable[Record | Pictures]) -> Iterator[Record]:
    """Yield records with what no reader adds itself.

    A fact names each model before its first message, and the images of a batch follow its last result.
    """
    model: Any = None
    shown = Pictures([])
    for record in records:
        if isinstance(record, Pictures):
            shown = Pictures(shown.parts + record.parts, record.at, record.line)
            continue
        if isinstance(record, CompactionRecord) or (
            isinstance(record, MessageRecord) and record.message.role != "tool"
        ):
            yield from _told(shown)
            shown = Pictures([])
        if isinstance(record, FactRecord) and record.kind == "model":
            if record.data.get("model") == model:
                continue
            model = record.data.get("model")
        elif isinstance(record, MessageRecord) and record.message.model not in (None, model):
            model = record.message.model
            yield FactRecord("model", {"model": model}, record.line)
        yield record
    yield from _told(shown)


def _told(shown: Pictures) -> Iterator[Record]:
    if shown.parts:
        payload = user("[Shown by the tool calls above]", shown.parts)
        yield message_record(payload, shown.line, at=shown.at, injected=True)


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


def content_of(parts: list[dict[str, Any]]) -> Any:
    """Return a single text as it is, several parts as a list."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


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
    """What an agent calls the fields of its content blocks, which are Anthropic's but for these names.

    `mime` is the name of an image's type, which is then beside its `data`, without a `source`.
    """

    call: str = "tool_use"
    arguments: str = "input"
    result_id: str = "tool_use_id"
    output: str = "content"
    failed: str = "is_error"
    signature: str = "signature"
    mime: str = ""

    def read(self, block: Row, *, signed: bool = True) -> dict[str, Any] | None:
        """Write an agent's block as Anthropic's; None for blank text, which no API accepts.

        A thought without a signature, which the API requires, becomes text; so do all if not `signed`. Raises
        DialectError for a block of another kind, or with content of a wrong type.
        """
        kind, signature = block.get("type"), block.text(self.signature)
        if kind == "thinking" and block.get("redacted"):
            return {"type": "redacted_thinking", "data": signature}
        if kind in ("text", "thinking"):
            words = need_text(block, str(kind))
            if kind == "thinking" and signed and signature:
                return {"type": kind, "thinking": words, "signature": signature}
            return {"type": "text", "text": words} if words.strip() else None
        if kind == self.call:
            arguments = block.get(self.arguments)
            if not isinstance(arguments, dict):
                raise DialectError("the arguments of a call are not an object")
            known = {"id": block.text("id"), "name": block.text("name")}
            return {"type": "tool_use", **known, "input": arguments}
        if kind == "tool_result":
            written = {"type": kind, "tool_use_id": block.text(self.result_id)}
            return self.marked({**written, "content": need_text(block, self.output)}, block)
        if kind == "image" and (self.mime or isinstance(block.get("source"), dict)):
            packed = {"type": "base64", "media_type": block.text(self.mime), "data": block.text("data")}
            return {"type": "image", "source": packed if self.mime else block["source"]}
        raise DialectError(f"a block of unknown type {str(kind)[:40]!r}")

    def marked(self, result: dict[str, Any], told: Row) -> dict[str, Any]:
        """Return a result with the mark of an error, if the agent's own has one."""
        return {**result, "is_error": True} if told.get(self.failed) is True else result

    def write(self, block: dict[str, Any], output: str = "") -> dict[str, Any] | None:
        """Write one of Anthropic's blocks as the agent's, if it has such (`output`: a result's text)."""
        match block:
            case {"type": "tool_use"}:
                known = {"type": self.call, "id": block["id"], "name": block["name"]}
                return {**known, self.arguments: block["input"]}
            case {"type": "tool_result"}:
                known = {"type": "tool_result", self.result_id: block["tool_use_id"], self.output: output}
                return {**known, self.failed: True} if block.get("is_error") is True else known
            case {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}} if (
                self.mime
            ):
                return {"type": "image", self.mime: mime, "data": data}
            case {"type": "text" | "thinking"}:
                return block
            case {"type": "image"} if not self.mime:
                return block
            case _:
                return None


def need_text(holder: Row, key: str) -> str:
    """Return the text of a field; raises DialectError if it holds anything else."""
    value = holder.get(key)
    if not isinstance(value, str):
        raise DialectError(f"its {key} is not text")
    return value
