"""OpenAI Responses items: one reply of the model is several of them, and one `Message` here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from foldline.core.log import codec
from foldline.core.log.dialects import Traits
from foldline.core.log.messages import Message, Native, Opaque, Part, Role, Text, Thinking
from foldline.dialects.dialect import Dialect, Put, Slot, replied
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
from foldline.dialects.responses.form import look
from foldline.dialects.responses.items import (
    CALLS,
    KINDS,
    Item,
    answered_key,
    is_call,
    is_output,
    kind_of,
    role_of,
    slots,
)
from foldline.dialects.responses.rules import check
from foldline.dialects.responses.write import ResponsesWriter
from foldline.dialects.values import OPENAI_RESPONSES, Losses, Problem, Say
from foldline.errors import DialectError

LEAST_THRESHOLD = 1_000  # input tokens; the API refuses a smaller one (developers.openai.com, "Compaction")
_STOPS = {"max_output_tokens": "length", "content_filter": "error", "max_messages": "length"}
_OWN_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text"})
# fields that only replies may have: the server's notes, and the SDK's own parse of a text
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

    A whole request holds no reasoning without what it led to, and no item twice.
    """

    name = OPENAI_RESPONSES
    looked = staticmethod(look)
    traits = Traits(splits_replies=True)
    element = "item"
    lists = "input"
    bare = True
    references = True

    # ---- in

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read an item (dict, JSON bytes or SDK object), or the list of items that are one reply.

        It is kept as received beside its parts. Raises DialectError (with `index`) for anything else, and for
        a list that holds more than one reply.
        """
        if not is_list(payload):
            return super().decode(payload, index=index)
        both = [read(item, index) for item in cast("Sequence[Any]", payload)]
        if not both:
            raise DialectError("a list of items must hold at least one", index=index)
        items = [item for item, _ in both]
        if len(items) > 1 and any(role_of(item, index) != "assistant" for item in items):
            raise DialectError(
                "a list of items is one message only if all of them are the model's", index=index
            )
        return self._message(items, b"[" + b",".join(raw for _, raw in both) + b"]", index)

    def spans(self, payloads: Sequence[Any]) -> list[tuple[int, int]]:
        """Return where each message begins and ends: consecutive items of the model are one reply."""
        found: list[tuple[int, int]] = []
        follows = False
        for place, payload in enumerate(payloads):
            models = not is_list(payload) and role_of(read(payload, place)[0], place) == "assistant"
            if models and follows:
                found[-1] = (found[-1][0], place + 1)
            else:
                found.append((place, place + 1))
            follows = models
        return found

    def elements(self, native: Native) -> int:
        """Return how many items a message takes."""
        return len(parse(native.raw)) if native.raw.startswith(b"[") else 1

    def decode_reply(self, reply: Any) -> Message:
        """Read a whole Response: its output items in the form to send back, usage, model, why it stopped.

        An item, or a list of them, is read as by `decode`. Raises DialectError if there is no output.
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
            given="input_tokens",
            output="output_tokens",
            cached="input_tokens_details.cached_tokens",
            written="input_tokens_details.cache_write_tokens",
        )
        message = Message("assistant", parts, native=Native(self.name, raw))
        return replied(message, usage, body.get("model"), _stop(body, items))

    def recognises(self, payload: Any) -> bool:
        """Return whether an item (or a list of them) can only be in this dialect."""
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
        # an output that answers no call was written by a program, not by the user
        injected = message.role == "user" and kind_of(_items(body)[0]) != "message"
        return msgspec.structs.replace(message, injected=True) if injected else message

    def _system_parts(self, system: Any) -> tuple[Text, ...]:
        if not isinstance(system, str):
            raise DialectError("instructions must be a string")
        return (Text(system),)

    def compaction(self, tokens: int) -> Fields:
        """Return the fields that have the server compact an input of more than so many tokens."""
        if tokens < LEAST_THRESHOLD:
            return {}
        return {"context_management": [{"type": "compaction", "compact_threshold": tokens}]}

    # ---- checked and mended

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return where an item holds the id of its call, or of the call that it answers."""
        if is_call(body):
            return [(body, CALLS[str(kind_of(body))].id)], []
        key = answered_key(body)
        return [], [(body, key)] if is_output(body) and isinstance(body.get(key), str) else []

    def in_reply(self, body: Fields) -> tuple[list[Any], Put]:
        """Return the items of a Response, and what puts others in their place."""
        if not isinstance(body.get("output"), list):
            return super().in_reply(body)
        return body["output"], lambda new: {**body, "output": new}

    def is_models(self, body: Fields) -> bool:
        """Return whether an item is the model's."""
        if kind_of(body) in ("message", None):
            return super().is_models(body)
        return role_of(body) == "assistant"

    # ---- out

    def _is_system(self, body: Any) -> bool:
        return isinstance(body, str)

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> ResponsesWriter:
        return ResponsesWriter(call.id for message, _ in received for call in message.calls)

    def _edited(self, body: Any, edits: Mapping[int, Part | None], index: int) -> list[Item] | None:
        return edit_native(_items(body), edits, index)

    def lose(self, body: Any, losses: Losses) -> None:
        """Count what no part of an item carries; an item that is one opaque part is named by it."""
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
        """Return whether a message ends in reasoning: it is left out where nothing follows."""
        return bool(message.parts) and isinstance(message.parts[-1], Thinking | Opaque)

    def turn(self, message: Fields) -> str:
        """Return who speaks in an item; "item" for what is not a message."""
        if kind_of(message) == "message":
            return super().turn(message)
        return "tool" if is_output(message) else "item"

    def said(self, role: str, text: str) -> Fields:
        """Return a message item of one text."""
        return {"type": "message", **super().said(role, text)}

    def text_part(self, role: str, text: str) -> Fields:
        """Return a text as a part of a message's content."""
        return {"type": "output_text" if role == "assistant" else "input_text", "text": text}

    # ---- rules

    def _check_system(self, say: Say, system: Any) -> None:
        if system is not None and not isinstance(system, str):
            say("system", "instructions must be a string")

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        check(problems, bodies, last)


def _items(body: Any) -> list[Item]:
    """Return the items of a message: one, or those of a reply."""
    return cast("list[Item]", body if isinstance(body, list) else [body])


def _sendable(value: Any) -> Any:
    """Return a value of a reply in the form of a request, without nulls and fields that only replies have."""
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
