"""UI messages of the Vercel AI SDK, as used by `useChat` and stored by applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from foldline.core.log.dialects import Traits
from foldline.core.log.messages import Message, Part, Role, Text, Usage
from foldline.core.log.steps import steps
from foldline.dialects.dialect import Dialect, Replace, Slot, replied
from foldline.dialects.payload import Fields, fields_of, items_of, peek, read, read_usage
from foldline.dialects.ui_message.form import check_message, from_plain_text
from foldline.dialects.ui_message.read import ROLES, role_of, slots
from foldline.dialects.ui_message.tools import OPEN, STREAMING, is_tool, is_tool_type
from foldline.dialects.ui_message.write import UIWriter, edit_native
from foldline.dialects.values import ANTHROPIC, UI_MESSAGE, Losses, Problem, Report, reporter
from foldline.errors import DialectError

_STOPS = {
    "stop": "end",
    "tool-calls": "tools",
    "length": "length",
    "content-filter": "error",
    "error": "error",
}
_REPLY = "responseMessage"
_CARRIED = ("id", "role", "parts", "content", "reasoning", "toolInvocations", "experimental_attachments")
_ON_PARTS = (
    "providerMetadata", "callProviderMetadata", "resultProviderMetadata", "approval", "title", "toolMetadata",
)  # fmt: skip
_SIGNED = {"signature", "redactedData"}


class UIMessageDialect(Dialect):
    """The dialect `ui-message`.

    A tool part is read as a call and its result. Messages of AI SDK 4 are read too. A result in a later
    message is written into the part of its call.
    """

    name = UI_MESSAGE
    edit_native = staticmethod(edit_native)
    traits = Traits(unique_ids=False)
    templated = False

    def decode_reply(self, reply: Any) -> Message:
        """Read the argument of `onFinish` ({messages, responseMessage}), or a message with metadata.

        The usage is that of the last step: `metadata.usage`, or `usage` next to the message. `totalUsage` is
        the sum of all steps, not a context size, so it is used only for a message with one step.
        """
        body, _ = read(reply)
        native, event = body, cast("Fields", {})
        if _REPLY in body:
            native, event = body[_REPLY], body
            if not isinstance(native, dict):
                raise DialectError("the reply has no responseMessage with parts")
        message = self.decode(native if event else reply)
        metadata = {**fields_of(cast("Fields", native).get("metadata")), **event}
        model = metadata.get("model", metadata.get("modelId"))
        aborted = metadata.get("isAborted") is True
        stop = "aborted" if aborted else _STOPS.get(str(metadata.get("finishReason")))
        return replied(message, _usage(metadata, message), model, stop)

    def recognises(self, payload: Any) -> bool:
        """Return whether a message is valid in this dialect only: typed parts, or calls of AI SDK 4."""
        role = peek(payload, "role")
        if not isinstance(role, str) or role not in ROLES:
            return False
        parts = peek(payload, "parts")
        if isinstance(parts, list):
            return all(isinstance(peek(part, "type"), str) for part in items_of(parts))
        return isinstance(peek(payload, "toolInvocations"), list)

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is the argument of `onFinish`, or a message with its usage in the metadata."""
        if peek(payload, _REPLY) is not None:
            return True
        metadata = fields_of(peek(payload, "metadata"))
        return peek(payload, "parts") is not None and bool({"usage", "totalUsage"} & metadata.keys())

    def adopt(self, payload: Any, salt: str) -> Any:
        """Return a plain text message as a UI message, with an id derived from its text and `salt`."""
        return from_plain_text(payload, salt)

    def check_message(self, report: Report, body: Fields, salt: str = "") -> Fields:
        """Report broken rules of a message and return it repaired (`form.py`)."""
        return check_message(report, body, salt)

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return the call ids of a message; results have no ids of their own."""
        parts = [fields_of(part) for part in items_of(body.get("parts"))]
        return [(part, "toolCallId") for part in parts if isinstance(part.get("toolCallId"), str)], []

    def reply_messages(self, body: Fields) -> tuple[list[Any], Replace]:
        """Return the message of a reply, and a function that replaces it."""
        if _REPLY not in body:
            return super().reply_messages(body)
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
        return UIWriter(own_id for _, body in received if isinstance(own_id := peek(body, "id"), str))

    def count_losses(self, body: Any, losses: Losses) -> None:
        """Count the fields of a message and of its native parts that are lost."""
        for key, value in fields_of(body).items():
            if key not in _CARRIED and value is not None:
                losses.field(key)
        for native in map(fields_of, items_of(fields_of(body).get("parts"))):
            if native.get("type") not in ("text", "reasoning", "file") and not is_tool(native):
                continue  # counted as an opaque part
            for key in _ON_PARTS:
                converted = native.get("type") == "reasoning" and _is_signature(native.get(key))
                if native.get(key) and not converted:
                    losses.field(key)

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Check that call ids are unique in a message, and that only the last calls have no results.

        `validateUIMessages` accepts a valid list, and providers its `convertToModelMessages`, except for open
        calls at the end.
        """
        for index, body in bodies:
            report = reporter(problems, index)
            seen: set[str] = set()
            waiting: list[str] = []
            parts = items_of(body.get("parts")) if body.get("role") == "assistant" else []
            for part in map(fields_of, parts):
                kind, call_id = str(part.get("type")), part.get("toolCallId")
                if kind == "step-start":
                    _report_missing(report, waiting)
                elif is_tool_type(kind) and isinstance(call_id, str) and part.get("state") != STREAMING:
                    if call_id in seen:
                        report("call-duplicate", f"two calls of one message have the id {call_id!r}")
                    seen.add(call_id)
                    if part.get("state") in OPEN and part.get("providerExecuted") is not True:
                        waiting.append(call_id)
            if index != last:
                _report_missing(report, waiting)


def _is_signature(metadata: Any) -> bool:
    """Return whether provider metadata contains only Anthropic's signature, which is converted."""
    own = fields_of(metadata).get(ANTHROPIC)
    return (
        fields_of(metadata).keys() == {ANTHROPIC}
        and isinstance(own, dict)
        and fields_of(own).keys() <= _SIGNED
    )


def _usage(metadata: Fields, message: Message) -> Usage | None:
    usage = metadata.get("usage")
    if not isinstance(usage, dict) and len(steps(message)) == 1:
        usage = metadata.get("totalUsage")
    counts = read_usage(
        usage,
        prompt="inputTokens|promptTokens",
        output="outputTokens|completionTokens",
        reads="inputTokenDetails.cacheReadTokens|cachedInputTokens",
        writes="inputTokenDetails.cacheWriteTokens",
        disjoint=True,
    )
    if counts is None:
        return None
    cached = counts.cache_read + counts.cache_write
    # some providers of AI SDK 5 exclude cached tokens from inputTokens
    return msgspec.structs.replace(counts, input=counts.input - (cached if counts.input >= cached else 0))


def _report_missing(report: Report, waiting: list[str]) -> None:
    for call_id in waiting:
        report("result-missing", f"call {call_id!r} has no result, but other content follows")
    waiting.clear()
