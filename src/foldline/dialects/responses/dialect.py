"""OpenAI Responses items: one reply of the model is several of them, and one `Message` here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from foldline.core.log import codec
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Native, Role, Text, Usage
from foldline.dialects.edits import check_edits, replacements, with_edits
from foldline.dialects.losses import lost_fields
from foldline.dialects.payload import as_sent, block_types, count, is_list, parse, peek, read, read_any
from foldline.dialects.responses.edits import edit_native
from foldline.dialects.responses.items import KINDS, Item, is_call, kind_of, role_of
from foldline.dialects.responses.read import slots
from foldline.dialects.responses.rules import validate as check_rules
from foldline.dialects.responses.write import ResponsesWriter
from foldline.dialects.steps import split_steps
from foldline.dialects.values import OPENAI_RESPONSES, Problem, Rendered
from foldline.errors import DialectError

_STOPS = {"max_output_tokens": "length", "content_filter": "error", "max_messages": "length"}
_OWN_PARTS = frozenset({"input_text", "input_image", "input_file", "output_text"})
# fields that only replies may have: the server's notes, and the SDK's own parse of a text
_OF_REPLIES = frozenset({"created_by", "parsed_arguments", "parsed"})


class OpenAIResponsesDialect:
    """The dialect `openai-responses`."""

    name = OPENAI_RESPONSES

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read an item (dict, JSON bytes or SDK object), or the list of items that are one reply.

        It is kept as received beside its parts. Raises DialectError (with `index`) for anything else, and for
        a list that holds more than one reply.
        """
        if not is_list(payload):
            item, raw = read(payload, index)
            return _message([item], raw, index)
        both = [read(item, index) for item in cast("Sequence[Any]", payload)]
        if not both:
            raise DialectError("a list of items must hold at least one", index=index)
        items = [item for item, _ in both]
        if len(items) > 1 and any(role_of(item, index) != "assistant" for item in items):
            raise DialectError(
                "a list of items is one message only if all of them are the model's", index=index
            )
        return _message(items, b"[" + b",".join(raw for _, raw in both) + b"]", index)

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
        items = [cast("Item", _sendable(item)) for item in cast("list[Any]", output)]
        if any(not isinstance(cast("Any", item), dict) for item in items):
            raise DialectError("an item of a reply's output must be an object")
        message = _message(items, codec.encode(items), None, role="assistant")
        model = body.get("model")
        return msgspec.structs.replace(
            message,
            usage=_usage(body.get("usage")),
            model=model if isinstance(model, str) else None,
            stop=_stop(body, items),
        )

    def decode_system(self, system: Any) -> Message:
        """Read `instructions` (text) as a system message; rendered, they are that field again."""
        value, raw = read_any(system)
        if not isinstance(value, str):
            raise DialectError("instructions must be a string")
        return Message("system", (Text(as_sent(value, raw)),), native=Native(OPENAI_RESPONSES, raw))

    def render(self, items: Sequence[tuple[Message, Sequence[Edit]]], *, whole: bool = False) -> Rendered:
        """Write messages, each with its edits, as a list of items.

        Its own items come back as received, edited ones with just those parts changed; others are encoded.
        `warnings` names and counts what could not be carried. `system` is what was given as instructions.
        A `whole` request holds no reasoning without what it led to, and no item twice.
        Raises DialectError for an edit of a part that does not exist.
        """
        ours = [message for message, _ in items if _is_ours(message)]
        writer = ResponsesWriter(call.id for message in ours for call in message.calls)
        for index, (message, edits) in enumerate(items):
            native = message.native
            if native is None or native.dialect != OPENAI_RESPONSES:
                kept = with_edits(message, edits, index)
                if kept is not None:
                    lost_fields(native, writer.losses, index)
                    for said in split_steps(kept):
                        writer.add(said)
                continue
            body = parse(native.raw, index)
            if isinstance(body, str):
                writer.native_system(_edited_text(body, message, edits, index))
                continue
            own = cast("list[Item]", body if isinstance(body, list) else [body])
            kept_items = edit_native(own, replacements(edits), index) if edits else own
            if kept_items is not None:
                writer.native(kept_items, message)
        return writer.finish(whole=whole)

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """Return every documented rule that the items break; empty if the API accepts them. Never raises."""
        return check_rules(messages, system)

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


def _is_ours(message: Message) -> bool:
    return message.native is not None and message.native.dialect == OPENAI_RESPONSES


def _message(items: Sequence[Item], raw: bytes, index: int | None, role: Role | None = None) -> Message:
    items = cast("Sequence[Item]", as_sent(items, raw))
    parts = tuple(part for item in items for part, _ in slots(item, index))
    role = role or role_of(items[0], index)
    # an output that answers no call was written by a program, not by the user
    injected = role == "user" and kind_of(items[0]) != "message"
    return Message(role, parts, native=Native(OPENAI_RESPONSES, raw), injected=injected)


def _edited_text(text: str, message: Message, edits: Sequence[Edit], index: int) -> str:
    wanted = replacements(edits)
    check_edits(wanted, message.parts, index)
    new = wanted.get(0, message.parts[0])
    return text if new == message.parts[0] else new.text if isinstance(new, Text) else ""


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


def _usage(usage: Any) -> Usage | None:
    """Read a usage; OpenAI's input_tokens include cached tokens, output_tokens include reasoning."""
    if not isinstance(usage, dict):
        return None
    fields = cast("dict[str, Any]", usage)
    details = fields.get("input_tokens_details")
    inner = cast("dict[str, Any]", details) if isinstance(details, dict) else {}
    read_back, written = count(inner.get("cached_tokens")), count(inner.get("cache_write_tokens"))
    return Usage(
        input=max(0, count(fields.get("input_tokens")) - read_back - written),
        cache_read=read_back,
        cache_write=written,
        output=count(fields.get("output_tokens")),
    )
