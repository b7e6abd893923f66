"""UI messages of the Vercel AI SDK, as `useChat` holds them and applications store them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from foldline.core.log.dialects import Traits
from foldline.core.log.messages import Message, Part, Role, Text, Usage
from foldline.core.log.steps import steps
from foldline.dialects.dialect import Dialect, Put, Slot, replied
from foldline.dialects.payload import Fields, fields_of, items_of, peek, read, read_usage
from foldline.dialects.ui_message.form import look, plain_text
from foldline.dialects.ui_message.read import ROLES, role_of, slots
from foldline.dialects.ui_message.tools import OPEN, STREAMING, is_tool, is_tool_type
from foldline.dialects.ui_message.write import UIWriter, edit_native
from foldline.dialects.values import ANTHROPIC, UI_MESSAGE, Losses, Problem, Say, reporter
from foldline.errors import DialectError

_STOPS = {
    "stop": "end",
    "tool-calls": "tools",
    "length": "length",
    "content-filter": "error",
    "error": "error",
}
_REPLY = "responseMessage"
_CARRIED = frozenset(
    {
        "id", "role", "parts", "content", "reasoning", "toolInvocations", "experimental_attachments",
    }
)  # fmt: skip
_ON_PARTS = (
    "providerMetadata",
    "callProviderMetadata",
    "resultProviderMetadata",
    "approval",
    "title",
    "toolMetadata",
)
_SIGNED = {"signature", "redactedData"}


class UIMessageDialect(Dialect):
    """The dialect `ui-message`.

    A tool part gives a call and its result, in the message's order. Messages of AI SDK 4 are read too. A
    result is written into the part of its call, also where a later message holds it.
    """

    name = UI_MESSAGE
    edit_native = staticmethod(edit_native)
    traits = Traits(unique_ids=False)
    templated = False

    def decode_reply(self, reply: Any) -> Message:
        """Read what `onFinish` gets ({messages, responseMessage}), or an assistant message with metadata.

        Usage is that of the last step: `metadata.usage`, or `usage` beside the message. `totalUsage` adds up
        all steps, which is not a context size, so it counts only for a message of one step.
        """
        body, _ = read(reply)
        native, around = body, cast("Fields", {})
        if _REPLY in body:
            native, around = body[_REPLY], body
            if not isinstance(native, dict):
                raise DialectError("the reply has no responseMessage with parts")
        message = self.decode(native if around else reply)
        told = {**fields_of(cast("Fields", native).get("metadata")), **around}
        model, stop = told.get("model", told.get("modelId")), _STOPS.get(str(told.get("finishReason")))
        return replied(
            message, _usage(told, message), model, "aborted" if told.get("isAborted") is True else stop
        )

    def recognises(self, payload: Any) -> bool:
        """Return whether a message can only be in this dialect: parts with types, or calls of AI SDK 4."""
        role = peek(payload, "role")
        if not isinstance(role, str) or role not in ROLES:
            return False
        parts = peek(payload, "parts")
        if isinstance(parts, list):
            return all(isinstance(peek(part, "type"), str) for part in items_of(parts))
        return isinstance(peek(payload, "toolInvocations"), list)

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is what `onFinish` gets, or a message whose metadata holds its usage."""
        if peek(payload, _REPLY) is not None:
            return True
        told = fields_of(peek(payload, "metadata"))
        return peek(payload, "parts") is not None and bool({"usage", "totalUsage"} & told.keys())

    def adopt(self, payload: Any, salt: str) -> Any:
        """Return a message of plain text as a UI message, with an id made from its text and `salt`."""
        return plain_text(payload, salt)

    def look(self, say: Say, body: Fields, salt: str = "") -> Fields:
        """Check a message by itself, and return it as it may be sent (`form.py`)."""
        return look(say, body, salt)

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return where a message holds the ids of its calls; a result has no other id."""
        held = [fields_of(part) for part in items_of(body.get("parts"))]
        return [(part, "toolCallId") for part in held if isinstance(part.get("toolCallId"), str)], []

    def in_reply(self, body: Fields) -> tuple[list[Any], Put]:
        """Return the message of a reply, and what puts another in its place."""
        if _REPLY not in body:
            return super().in_reply(body)
        return [body[_REPLY]], lambda new: {**body, _REPLY: new[0]}

    def _parts(self, body: Any, index: int | None) -> tuple[Role, Sequence[Part]]:
        return role_of(body, index), [part for part, _ in slots(body, index)]

    def _system_parts(self, system: Any) -> tuple[Text, ...]:
        blocks = items_of(system) if isinstance(system, list) else [{"text": system}]
        texts = [peek(block, "text") for block in blocks]
        if any(not isinstance(text, str) for text in texts):
            raise DialectError("system must be a string or a list of text blocks")
        return tuple(Text(text) for text in texts)

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> UIWriter:
        return UIWriter(own for _, body in received if isinstance(own := peek(body, "id"), str))

    def lose(self, body: Any, losses: Losses) -> None:
        """Count the fields of a message and of its parts that no part carries; sources and data are parts."""
        for key, value in fields_of(body).items():
            if key not in _CARRIED and value is not None:
                losses.field(key)
        for native in map(fields_of, items_of(fields_of(body).get("parts"))):
            if native.get("type") not in ("text", "reasoning", "file") and not is_tool(native):
                continue  # an opaque part; it is counted as one
            for key in _ON_PARTS:
                signs = native.get("type") == "reasoning" and _is_signature(native.get(key))
                if native.get(key) and not signs:
                    losses.field(key)

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Ids of calls are unique in a message, and only the end of the list may wait for results.

        A list without problems is accepted by `validateUIMessages`, and `convertToModelMessages` makes a
        request of it that a provider accepts, except for calls that still wait at its end.
        """
        for index, body in bodies:
            say = reporter(problems, index)
            seen: set[str] = set()
            waiting: list[str] = []
            parts = items_of(body.get("parts")) if body.get("role") == "assistant" else []
            for part in map(fields_of, parts):
                kind, call_id = str(part.get("type")), part.get("toolCallId")
                if kind == "step-start":
                    _missing(say, waiting)
                elif is_tool_type(kind) and isinstance(call_id, str) and part.get("state") != STREAMING:
                    if call_id in seen:
                        say("call-duplicate", f"two calls of one message have the id {call_id!r}")
                    seen.add(call_id)
                    if part.get("state") in OPEN and part.get("providerExecuted") is not True:
                        waiting.append(call_id)
            if index != last:
                _missing(say, waiting)


def _is_signature(metadata: Any) -> bool:
    """Return whether provider metadata holds only what thinking carries: Anthropic's signature."""
    own = fields_of(metadata).get(ANTHROPIC)
    return (
        fields_of(metadata).keys() == {ANTHROPIC}
        and isinstance(own, dict)
        and fields_of(own).keys() <= _SIGNED
    )


def _usage(told: Fields, message: Message) -> Usage | None:
    usage = told.get("usage")
    if not isinstance(usage, dict) and len(steps(message)) == 1:
        usage = told.get("totalUsage")
    found = read_usage(
        usage,
        given="inputTokens|promptTokens",
        output="outputTokens|completionTokens",
        cached="inputTokenDetails.cacheReadTokens|cachedInputTokens",
        written="inputTokenDetails.cacheWriteTokens",
        apart=True,
    )
    cached = found.cache_read + found.cache_write if found is not None else 0
    # some providers of AI SDK 5 leave cached tokens out of inputTokens
    if found is None or found.input < cached:
        return found
    return msgspec.structs.replace(found, input=found.input - cached)


def _missing(say: Say, waiting: list[str]) -> None:
    for call_id in waiting:
        say("result-missing", f"call {call_id!r} has no result, but more was said after it")
    waiting.clear()
