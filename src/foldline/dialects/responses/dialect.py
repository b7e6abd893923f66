"""OpenAI Responses items; a reply consists of several items, and is read as one `Message`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from foldline.core.log import codec
from foldline.core.log.dialects import Traits
from foldline.core.log.messages import Message, Native, Opaque, Part, Role, Thinking
from foldline.dialects.dialect import Dialect, Replace, Slot, replied
from foldline.dialects.payload import (
    Fields,
    as_sent,
    block_types,
    fields_of,
    is_list,
    items_of,
    parse,
    peek,
    read,
    read_usage,
)
from foldline.dialects.responses.edits import edit_native
from foldline.dialects.responses.form import check_message
from foldline.dialects.responses.items import (
    CALLS,
    KINDS,
    Item,
    answered_key,
    is_call,
    is_models,
    is_output,
    kind_of,
    role_of,
    slots,
)
from foldline.dialects.responses.rules import check
from foldline.dialects.responses.write import ResponsesWriter
from foldline.dialects.values import OPENAI_RESPONSES, Losses, Problem
from foldline.errors import DialectError

LEAST_THRESHOLD = 1_000  # input tokens; the API refuses a smaller one (developers.openai.com, "Compaction")
_STOPS = {"max_output_tokens": "length", "content_filter": "error", "max_messages": "length"}
_OWN_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text"})
# fields of replies only: from the server, or added by the SDK
_OF_REPLIES = frozenset({"created_by", "parsed_arguments", "parsed"})
_CARRIED = frozenset(
    {
        "type", "id", "status", "role", "content", "call_id", "name", "arguments", "input", "output",
        "action", "actions", "operation", "summary", "encrypted_content", "approval_request_id", "approve",
        "reason", "tools", "execution", "max_output_length",
    }
)  # fmt: skip
_ON_PARTS = ("annotations", "logprobs", "detail", "prompt_cache_breakpoint")


class OpenAIResponsesDialect(Dialect):
    """The dialect `openai-responses`.

    Requests contain no reasoning without a following item, and no repeated items.
    """

    name = OPENAI_RESPONSES
    message_check = staticmethod(check_message)
    traits = Traits(splits_replies=True)
    element = "item"
    lists = "input"
    bare = True
    references = True

    # ---- reading

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read an item (dict, JSON bytes or SDK object), or a list of items that are one reply.

        The message keeps them as received. Raises DialectError (with `index`) for anything else, also for a
        list with more than one reply.
        """
        if not is_list(payload):
            return super().decode(payload, index=index)
        pairs = [read(item, index) for item in cast("Sequence[Any]", payload)]
        if not pairs:
            raise DialectError("a list of items must not be empty", index=index)
        items = [item for item, _ in pairs]
        if len(items) > 1 and any(role_of(item, index) != "assistant" for item in items):
            raise DialectError(
                "a list of items can be one message only if the model wrote all of them", index=index
            )
        return self._message(items, b"[" + b",".join(raw for _, raw in pairs) + b"]", index)

    def spans(self, payloads: Sequence[Any]) -> list[tuple[int, int]]:
        """Return the start and end of each message: consecutive items of the model are one reply."""
        spans: list[tuple[int, int]] = []
        in_reply = False
        for place, payload in enumerate(payloads):
            by_model = not is_list(payload) and role_of(read(payload, place)[0], place) == "assistant"
            if by_model and in_reply:
                spans[-1] = (spans[-1][0], place + 1)
            else:
                spans.append((place, place + 1))
            in_reply = by_model
        return spans

    def elements(self, native: Native) -> int:
        """Return the number of items of a message."""
        return len(parse(native.raw)) if native.raw.startswith(b"[") else 1

    def decode_reply(self, reply: Any) -> Message:
        """Read a complete Response: its output items in a form to send back, usage, model and stop reason.

        An item, or a list of items, is read like in `decode`. Raises DialectError for a reply without output.
        """
        if is_list(reply):
            return self.decode(reply)
        body, _ = read(reply)
        output = body.get("output")
        if body.get("object") != "response" and not isinstance(output, list):
            return self.decode(reply)
        if not isinstance(output, list):
            raise DialectError(
                "the reply has no output, a list of items (is it a streamed event? pass its response)"
            )
        items = [cast("Item", _sendable(item)) for item in items_of(output)]
        if any(not isinstance(cast("Any", item), dict) for item in items):
            raise DialectError("an item of a reply's output must be an object")
        raw = codec.encode(items)
        parts = tuple(part for item in as_sent(items, raw) for part, _ in slots(item))
        usage = read_usage(
            body.get("usage"),
            prompt="input_tokens",
            output="output_tokens",
            reads="input_tokens_details.cached_tokens",
            writes="input_tokens_details.cache_write_tokens",
        )
        message = Message("assistant", parts, native=Native(self.name, raw))
        return replied(message, usage, body.get("model"), _stop(body, items))

    def recognises(self, payload: Any) -> bool:
        """Return whether an item, or a list of items, is valid in this dialect only."""
        if is_list(payload):
            return any(self.recognises(item) for item in cast("Sequence[Any]", payload))
        kind = peek(payload, "type")
        if kind == "message":
            blocks = block_types(payload)
            return isinstance(peek(payload, "content"), str) or bool(blocks & (_OWN_PARTS | {"refusal"}))
        if isinstance(kind, str) and kind in KINDS - {"compaction"}:
            return True
        return bool(block_types(payload) & _OWN_PARTS) or peek(payload, "encrypted_content") is not None

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a Response."""
        return peek(payload, "object") == "response" or (
            isinstance(peek(payload, "output"), list) and peek(payload, "usage") is not None
        )

    def _parts(self, body: Any, index: int | None) -> tuple[Role, Sequence[Part]]:
        items = _items(body)
        parts = [part for item in items for part, _ in slots(item, index)]
        return role_of(items[0], index), parts

    def _message(self, body: Any, raw: bytes, index: int | None) -> Message:
        message = super()._message(body, raw, index)
        # an output without a call was written by a program, not by the user
        injected = message.role == "user" and kind_of(_items(body)[0]) != "message"
        return msgspec.structs.replace(message, injected=True) if injected else message

    def compaction(self, tokens: int) -> Fields:
        """Return request fields that make the server compact an input of more than `tokens`."""
        if tokens < LEAST_THRESHOLD:
            return {}
        return {"context_management": [{"type": "compaction", "compact_threshold": tokens}]}

    # ---- repairs

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return the id of a call, or the call id of an output."""
        if is_call(body):
            return [(body, CALLS[str(kind_of(body))].id)], []
        key = answered_key(body)
        return [], [(body, key)] if is_output(body) and isinstance(body.get(key), str) else []

    def reply_messages(self, body: Fields) -> tuple[list[Any], Replace]:
        """Return the items of a Response, and a function that replaces them."""
        if not isinstance(body.get("output"), list):
            return super().reply_messages(body)
        return body["output"], lambda new: {**body, "output": new}

    def is_models(self, body: Fields) -> bool:
        """Return whether an item was written by the model."""
        return is_models(body)

    # ---- writing

    def _is_system(self, body: Any) -> bool:
        return isinstance(body, str)

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> ResponsesWriter:
        return ResponsesWriter(call.id for message, _ in received for call in message.calls)

    def _edited(self, body: Any, edits: Mapping[int, Part | None], index: int) -> list[Item] | None:
        return edit_native(_items(body), edits, index)

    def count_losses(self, body: Any, losses: Losses) -> None:
        """Count the fields of items that are lost; opaque items are counted as parts."""
        for item in map(fields_of, _items(body)):
            kind = kind_of(item)
            if kind in CALLS and kind != "function_call":
                losses.add(f"{kind} became a function call")
            if kind != "message" and kind not in CALLS and not str(kind).endswith(("_output", "_response")):
                continue
            for key, value in item.items():
                if key not in _CARRIED and value is not None:
                    losses.field(key)
            for part in map(fields_of, [*items_of(item.get("content")), *items_of(item.get("output"))]):
                for key in _ON_PARTS:
                    if part.get(key) not in (None, [], "auto"):
                        losses.field(key)

    def is_open(self, message: Message) -> bool:
        """Return whether a message ends in reasoning, which is left out if no item of the model follows."""
        return bool(message.parts) and isinstance(message.parts[-1], Thinking | Opaque)

    def speaker(self, message: Fields) -> str:
        """Return the role of an item; "item" for one that is neither a message nor an output."""
        if kind_of(message) == "message":
            return super().speaker(message)
        return "tool" if is_output(message) else "item"

    def text_message(self, role: str, text: str) -> Fields:
        """Return a message item with a single text."""
        return {"type": "message", **super().text_message(role, text)}

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text part of a message."""
        return {"type": "output_text" if role == "assistant" else "input_text", "text": text}

    # ---- rules

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        check(problems, bodies, last)


def _items(body: Any) -> list[Item]:
    """Return the items of a message: one, or those of a reply."""
    return cast("list[Item]", body if isinstance(body, list) else [body])


def _sendable(value: Any) -> Any:
    """Return a value of a reply for a request: without nulls and fields that only replies have."""
    if isinstance(value, list):
        return [_sendable(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return {
        key: _sendable(item) if key == "content" else item
        for key, item in fields.items()
        if key not in _OF_REPLIES and (item is not None or key == "result")
    }


def _stop(body: dict[str, Any], items: Sequence[Item]) -> str | None:
    status = body.get("status")
    if status == "completed":
        return "tools" if any(is_call(item) for item in items) else "end"
    if status == "incomplete":
        details = body.get("incomplete_details")
        reason = cast("dict[str, Any]", details).get("reason") if isinstance(details, dict) else None
        return _STOPS.get(str(reason), "length")
    return {"failed": "error", "cancelled": "aborted"}.get(str(status))
