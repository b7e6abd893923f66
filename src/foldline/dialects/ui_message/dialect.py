"""UI messages of the Vercel AI SDK, as `useChat` holds them and applications store them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from foldline.core.log import codec
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Native, Text, Usage
from foldline.core.log.steps import steps
from foldline.dialects.edits import replacements, with_edits
from foldline.dialects.losses import lost_fields
from foldline.dialects.payload import as_sent, count, parse, peek, read, read_any
from foldline.dialects.stored import in_words
from foldline.dialects.ui_message.edits import edit_native
from foldline.dialects.ui_message.read import ROLES, role_of, slots
from foldline.dialects.ui_message.rules import validate as check_rules
from foldline.dialects.ui_message.write import UIWriter, made_of
from foldline.dialects.values import UI_MESSAGE, Problem, Rendered
from foldline.errors import DialectError

_STOPS = {
    "stop": "end",
    "tool-calls": "tools",
    "length": "length",
    "content-filter": "error",
    "error": "error",
}
_REPLY = "responseMessage"


class UIMessageDialect:
    """The dialect `ui-message`."""

    name = UI_MESSAGE

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read a UI message (dict or JSON bytes); it is kept as received beside its parts.

        A tool part gives a call and its result, in the message's order. Messages of AI
        SDK 4 are read too. Raises DialectError (with `index`) if it is not a UI message.
        """
        body, raw = read(payload, index)
        return self._message(body, raw, index)

    def decode_reply(self, reply: Any) -> Message:
        """Read what `onFinish` gets ({messages, responseMessage}), or an assistant message with metadata.

        Usage is that of the last step: `metadata.usage`, or `usage` beside the message. `totalUsage` adds up
        all steps, which is not a context size, so it counts only for a message of one step.
        """
        body, raw = read(reply)
        around: dict[str, Any] = {}
        if _REPLY in body:
            around, native = body, body[_REPLY]
            if not isinstance(native, dict):
                raise DialectError("the reply has no responseMessage with parts")
            body, raw = cast("dict[str, Any]", native), codec.encode(native)
        message = self._message(body, raw, None)
        metadata = body.get("metadata")
        told = {**(cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}), **around}
        model, stop = told.get("model", told.get("modelId")), told.get("finishReason")
        known = _STOPS.get(stop) if isinstance(stop, str) else None
        return msgspec.structs.replace(
            message,
            usage=_usage(told, message),
            model=model if isinstance(model, str) else None,
            stop="aborted" if told.get("isAborted") is True else known,
        )

    def decode_system(self, system: Any) -> Message:
        """Read a system prompt given separately (text, or text blocks); rendered, it is `system` again."""
        given, raw = read_any(system)
        value = as_sent(given, raw)
        blocks = cast("list[Any]", value) if isinstance(value, list) else [{"text": value}]
        texts = [peek(block, "text") for block in blocks]
        if any(not isinstance(text, str) for text in texts):
            raise DialectError("system must be a string or a list of text blocks")
        return Message("system", tuple(Text(text) for text in texts), native=Native(UI_MESSAGE, raw))

    def render(self, items: Sequence[tuple[Message, Sequence[Edit]]], *, whole: bool = False) -> Rendered:
        """Write messages, each with its edits, as a list of UI messages.

        Its own messages come back as received, edited ones with just those parts changed, and a call that a
        later message answers with its result. All others are encoded, one message each, a result in the part
        of its call. `warnings` names and counts what could not be carried. Raises DialectError for an edit of
        a part that does not exist.
        """
        items = in_words(items)
        del whole  # a list may begin with any role here
        bodies = [_body(message, index) for index, (message, _) in enumerate(items)]
        writer = UIWriter(_ids(bodies))
        for index, ((message, edits), body) in enumerate(zip(items, bodies, strict=True)):
            if body is None:
                kept = with_edits(message, edits, index)
                if kept is not None:
                    lost_fields(message.native, writer.losses, index)
                    writer.add(kept, made_of(message))
            elif not isinstance(body, dict):
                writer.native_system(_edited_system(message, body, edits, index))
            else:
                own = cast("dict[str, Any]", body)
                new = edit_native(own, replacements(edits), index) if edits else own
                if new is not None:
                    writer.native(new)
        return writer.finish()

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """Return every rule that a list breaks; empty if the AI SDK accepts and converts it. Never raises."""
        return check_rules(messages, system)

    def recognises(self, payload: Any) -> bool:
        """Return whether a message can only be in this dialect: parts with types, or calls of AI SDK 4."""
        role = peek(payload, "role")
        if not isinstance(role, str) or role not in ROLES:
            return False
        parts = peek(payload, "parts")
        if isinstance(parts, list):
            return all(isinstance(peek(part, "type"), str) for part in cast("list[Any]", parts))
        return isinstance(peek(payload, "toolInvocations"), list)

    def _message(self, body: dict[str, Any], raw: bytes, index: int | None) -> Message:
        body = as_sent(body, raw)
        role = role_of(body, index)
        return Message(role, tuple(part for part, _ in slots(body, index)), native=Native(UI_MESSAGE, raw))


def _body(message: Message, index: int) -> Any:
    """Return the native message, or the system prompt, as received; None for one of another dialect."""
    native = message.native
    return parse(native.raw, index) if native is not None and native.dialect == UI_MESSAGE else None


def _ids(bodies: Sequence[Any]) -> set[str]:
    return {own for body in bodies if isinstance(own := peek(body, "id"), str)}


def _edited_system(message: Message, system: Any, edits: Sequence[Edit], index: int | None) -> Any:
    if not edits:
        return system
    kept = with_edits(message, edits, index)
    return kept.text if kept is not None else ""


def _usage(told: dict[str, Any], message: Message) -> Usage | None:
    usage = told.get("usage")
    if not isinstance(usage, dict) and len(steps(message)) == 1:
        usage = told.get("totalUsage")
    if not isinstance(usage, dict):
        return None
    fields = cast("dict[str, Any]", usage)
    details = fields.get("inputTokenDetails")
    inner = cast("dict[str, Any]", details) if isinstance(details, dict) else {}
    read_back = count(inner.get("cacheReadTokens")) or count(fields.get("cachedInputTokens"))
    written = count(inner.get("cacheWriteTokens"))
    given = count(fields.get("inputTokens")) or count(fields.get("promptTokens"))
    # some providers of AI SDK 5 leave cached tokens out of inputTokens
    whole = given >= read_back + written
    return Usage(
        input=given - read_back - written if whole else given,
        cache_read=read_back,
        cache_write=written,
        output=count(fields.get("outputTokens")) or count(fields.get("completionTokens")),
    )
