"""Convert an agent's own messages to payloads of an API, and these to records.

Messages close to Anthropic's are read as `anthropic` (`BlockNames`), all others as Chat Completions (`reply`,
`call`, `answer`, …). `message_record` decodes the payload and adds the file's other data about the message.

Agents also send reminders, hook output, command output and notices as user messages. `is_injected`
distinguishes them from the user's own requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
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
    Record,
    ResultImages,
    WarningRecord,
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
    is_reply: bool = False,
    **fields: Any,
) -> MessageRecord | WarningRecord:
    """Decode a payload, with the file's other data about it (`fields`: usage, model, stop).

    `failed` marks its results as errors; `injected`: a program wrote it, which the text of a user message may
    also show; `is_reply`: it is a complete reply, with a usage. A payload that is not a message becomes a
    warning with its line.
    """
    codec = dialects.get(dialect)
    try:
        message = codec.decode_reply(payload) if is_reply else codec.decode(payload)
    except (DialectError, RecursionError) as error:
        return not_a_message(error, line)
    if failed:
        message = mark_failed(message)
    message = msgspec.structs.replace(message, injected=injected or is_from_program(message), **fields)
    return MessageRecord(message, at=at, key=key, parent=parent, line=line)


def decode_rows(
    codec: dialects.Dialect, rows: Sequence[Row], payload_of: Callable[[Row], Any] = lambda row: row
) -> Generator[WarningRecord, None, tuple[Message, Sequence[Row]] | None]:
    """Return the message on these lines (one item, or the items of one reply), and the lines that it is from.

    Each item that the dialect does not know becomes a warning with its line; the others remain a message.
    """

    def decoded(items: Sequence[Row]) -> Message:
        payloads = [payload_of(row) for row in items]
        return codec.decode(payloads if len(payloads) > 1 else payloads[0])

    valid: list[Row] = []
    try:
        return (decoded(rows), rows) if rows else None
    except (DialectError, RecursionError):
        for row in rows:
            try:
                decoded([row])
                valid.append(row)
            except (DialectError, RecursionError) as error:
                yield not_a_message(error, row.line)
    return (decoded(valid), valid) if valid else None


def reason_of(error: Exception) -> str:
    """Return why a payload is not a message, for a warning or an error."""
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def not_a_message(error: Exception, line: int) -> WarningRecord:
    """Return the warning about a payload that is not a message."""
    return WarningRecord(line, f"not a message: {reason_of(error)} (left out)")


def mark_failed(message: Message) -> Message:
    """Return a message with all its results marked as errors."""
    parts = [
        msgspec.structs.replace(part, is_error=True) if isinstance(part, ToolResult) else part
        for part in message.parts
    ]
    return msgspec.structs.replace(message, parts=tuple(parts))


def finished(records: Iterable[Record | ResultImages]) -> Iterator[Record]:
    """Complete the records of a reader.

    A fact gives each model before its first message, and the images of a batch follow its last result.
    """
    model: Any = None
    images = ResultImages([])
    for record in records:
        if isinstance(record, ResultImages):
            images = ResultImages(images.parts + record.parts, record.at, record.line)
            continue
        if isinstance(record, CompactionRecord) or (
            isinstance(record, MessageRecord) and record.message.role != "tool"
        ):
            yield from _images_message(images)
            images = ResultImages([])
        if isinstance(record, FactRecord) and record.kind == "model":
            if record.data.get("model") == model:
                continue
            model = record.data.get("model")
        elif isinstance(record, MessageRecord) and record.message.model not in (None, model):
            model = record.message.model
            yield FactRecord("model", {"model": model}, record.line)
        yield record
    yield from _images_message(images)


def _images_message(images: ResultImages) -> Iterator[Record]:
    if images.parts:
        payload = user("[Shown by the tool calls above]", images.parts)
        yield message_record(payload, images.line, at=images.at, injected=True)


def usage_of(counts: dict[str, Any], names: Sequence[str], *, inclusive: bool = False) -> Usage:
    """Read a usage from the fields of its input, cached input read and written, and output.

    `inclusive`: the input includes the cached tokens.
    """
    input_tokens, read, written, output = (count_or_none(counts.get(name)) or 0 for name in names)
    return Usage(max(input_tokens - read - written, 0) if inclusive else input_tokens, read, written, output)


# ---- who wrote a message


def is_from_program(message: Message) -> bool:
    """Return whether a program wrote a user message, by its text; False if it has media or results."""
    only_text = message.role == "user" and all(isinstance(part, Text) for part in message.parts)
    return only_text and is_injected(message.text)


def is_injected(text: str) -> bool:
    """Return whether a user message's text is only known tags with their content, or known notices.

    A slash command with arguments is the user's own; so is a text that a reminder is attached to.
    """
    if _ARGUMENTS.search(text):
        return False
    at = past_notices(text)
    while wrapped := _WRAPPED.match(text, at):
        at = past_notices(text, wrapped.end())
    return at > 0 and not text[at:].strip()


# ---- Chat Completions


def user(text: Any, media: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """Write a user message; with media, its text is a separate part."""
    if not media:
        return {"role": "user", "content": text}
    return {"role": "user", "content": [*([{"type": "text", "text": text}] if text else []), *media]}


def content_of(parts: list[dict[str, Any]]) -> Any:
    """Return the text of a single text part, otherwise the list of parts."""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def reply(
    text: str, thinking: str, calls: Sequence[dict[str, Any]], details: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Write a reply with its text, thoughts and calls; `details` are encrypted thoughts.

    Next to readable thoughts they are only a signature, which costs no tokens. Equal ones are kept once: some
    agents repeat them with every paragraph.
    """
    payload: dict[str, Any] = {"role": "assistant", "content": text or None}
    if thinking:
        payload["reasoning_content"] = thinking
    if details:
        unique = {encode(detail["data"]): detail for detail in reversed(details)}
        payload["reasoning_opaque" if thinking else "reasoning_details"] = list(unique.values())[::-1]
    if calls:
        payload["tool_calls"] = list(calls)
    elif not text:
        payload["content"] = ""  # null is allowed only with calls
    return payload


def is_empty(payload: dict[str, Any]) -> bool:
    """Return whether a reply has no text, thoughts or calls."""
    return not payload["content"] and payload.keys() == {"role", "content"}


def call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """Write a tool call; arguments other than text become JSON text."""
    text = arguments if isinstance(arguments, str) else encode(arguments or {}).decode()
    function = {"name": text_or(name), "arguments": text}
    return {"id": text_or(call_id), "type": "function", "function": function}


def sealed_thought(data: Any, **fields: Any) -> dict[str, Any]:
    """Write encrypted reasoning in the form of OpenRouter's `reasoning_details`."""
    return {"type": "reasoning.encrypted", "data": data, **fields}


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


def as_text(value: Any) -> str:
    """Return a value as a result's text: null as "", other values than text as JSON."""
    return value if isinstance(value, str) else "" if value is None else encode(value).decode("utf-8")


# ---- Anthropic's blocks


class BlockNames(msgspec.Struct, frozen=True):
    """An agent's names for the fields of content blocks that are otherwise Anthropic's.

    `mime` names the field of an image's type, which is then next to its `data`, without a `source`.
    """

    call: str = "tool_use"
    arguments: str = "input"
    result_id: str = "tool_use_id"
    output: str = "content"
    failed: str = "is_error"
    signature: str = "signature"
    mime: str = ""

    def read(self, block: Row, *, signed: bool = True) -> dict[str, Any] | None:
        """Convert an agent's block to Anthropic's; None for blank text, which no API accepts.

        A thought without a signature becomes text, since the API requires one; so do all if not `signed`.
        Raises DialectError for a block of another kind, or with content of a wrong type.
        """
        kind, signature = block.get("type"), block.text(self.signature)
        if kind == "thinking" and block.get("redacted"):
            return {"type": "redacted_thinking", "data": signature}
        if kind in ("text", "thinking"):
            text = need_text(block, str(kind))
            if kind == "thinking" and signed and signature:
                return {"type": kind, "thinking": text, "signature": signature}
            return {"type": "text", "text": text} if text.strip() else None
        if kind == self.call:
            arguments = block.get(self.arguments)
            if not isinstance(arguments, dict):
                raise DialectError("the arguments of a call are not an object")
            fields = {"id": block.text("id"), "name": block.text("name")}
            return {"type": "tool_use", **fields, "input": arguments}
        if kind == "tool_result":
            written = {"type": kind, "tool_use_id": block.text(self.result_id)}
            return self.marked({**written, "content": need_text(block, self.output)}, block)
        if kind == "image" and (self.mime or isinstance(block.get("source"), dict)):
            packed = {"type": "base64", "media_type": block.text(self.mime), "data": block.text("data")}
            return {"type": "image", "source": packed if self.mime else block["source"]}
        raise DialectError(f"a block of unknown type {str(kind)[:40]!r}")

    def marked(self, result: dict[str, Any], block: Row) -> dict[str, Any]:
        """Return a result, marked as an error if the agent's block is."""
        return {**result, "is_error": True} if block.get(self.failed) is True else result

    def write(self, block: dict[str, Any], output: str = "") -> dict[str, Any] | None:
        """Convert one of Anthropic's blocks to the agent's (`output`: a result's text), if it has one."""
        match block:
            case {"type": "tool_use"}:
                fields = {"type": self.call, "id": block["id"], "name": block["name"]}
                return {**fields, self.arguments: block["input"]}
            case {"type": "tool_result"}:
                fields = {"type": "tool_result", self.result_id: block["tool_use_id"], self.output: output}
                return {**fields, self.failed: True} if block.get("is_error") is True else fields
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
    """Return the text of a field; raises DialectError for any other value."""
    value = holder.get(key)
    if not isinstance(value, str):
        raise DialectError(f"its {key} is not text")
    return value
