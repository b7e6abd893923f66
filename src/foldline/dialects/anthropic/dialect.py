"""Messages of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from foldline.core.log import codec
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Native, Text, Usage
from foldline.dialects.anthropic.read import parts_of, role_of
from foldline.dialects.anthropic.rules import validate as check_rules
from foldline.dialects.anthropic.write import AnthropicWriter, edit_native
from foldline.dialects.edits import replacements, with_edits
from foldline.dialects.losses import lost_fields
from foldline.dialects.payload import as_sent, block_types, count, parse, peek, read, read_any
from foldline.dialects.steps import split_steps
from foldline.dialects.stored import in_words
from foldline.dialects.values import ANTHROPIC, Problem, Rendered
from foldline.errors import DialectError

_STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "pause_turn": "tools",  # the server paused in the middle of its own tools
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "error",
}
_OWN_BLOCKS = frozenset(
    {
        "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use",
        "search_result", "mcp_tool_use", "mcp_tool_result", "container_upload", "compaction",
    }
)  # fmt: skip


class AnthropicDialect:
    """The dialect `anthropic`."""

    name = ANTHROPIC

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read a native message (dict, JSON bytes or SDK object); it is kept as received beside its parts.

        Raises DialectError (with `index`) if it is not a Messages API message.
        """
        body, raw = read(payload, index)
        return self._message(body, raw, index)

    def decode_reply(self, reply: Any) -> Message:
        """Read a whole reply: its role and content in the form to send back, usage, model, why it stopped.

        Empty text blocks, which the API sends but does not take back, are left out.
        """
        body, raw = read(reply)
        if body.get("type") != "message" and "stop_reason" not in body and "usage" not in body:
            return self._message(body, raw, None)
        content = body.get("content")
        if isinstance(content, list):
            content = [block for block in cast("list[Any]", content) if not _is_empty_text(block)]
        sendable = {"role": body.get("role", "assistant"), "content": content}
        message = self._message(sendable, codec.encode(sendable), None)
        model, stop = body.get("model"), body.get("stop_reason")
        return msgspec.structs.replace(
            message,
            usage=_usage(body.get("usage")),
            model=model if isinstance(model, str) else None,
            stop=_STOPS.get(stop) if isinstance(stop, str) else None,
        )

    def decode_system(self, system: Any) -> Message:
        """Read a `system` field (text or text blocks) as a system message; rendering gives it back."""
        value, raw = read_any(system)
        if not isinstance(value, str | list):
            raise DialectError("system must be a string or a list of text blocks")
        parts = tuple(parts_of(as_sent(value, raw)))
        if any(not isinstance(part, Text) for part in parts):
            raise DialectError("system may hold only text blocks")
        return Message("system", parts, native=Native(ANTHROPIC, raw))

    def render(self, items: Sequence[tuple[Message, Sequence[Edit]]], *, whole: bool = False) -> Rendered:
        """Write messages, each with its edits, as an Anthropic list.

        Its own messages come back as received, edited ones with just those blocks changed; all others are
        encoded, and merged into turns with results first. System messages at the head become `system`, later
        ones and made ones become user text. `warnings` names and counts what could not be carried. A `whole`
        request that begins with the assistant gets a first user message, as the API requires.
        Raises DialectError for an edit of a part that does not exist.
        """
        items = in_words(items)
        ours = [message for message, _ in items if _is_ours(message)]
        writer = AnthropicWriter(call.id for message in ours for call in message.calls)
        for index, (message, edits) in enumerate(items):
            native = message.native
            body = parse(native.raw, index) if native is not None and _is_ours(message) else None
            if isinstance(body, dict) and message.role not in ("system", "developer"):
                own = cast("dict[str, Any]", body)
                new = edit_native(own, replacements(edits), index) if edits else own
                if new is not None:
                    writer.native(new, message)
            elif isinstance(body, dict) and writer.at_head and not edits:  # the API has no system message
                writer.native_system(cast("dict[str, Any]", body).get("content") or "")
            elif body is not None and not isinstance(body, dict):
                writer.native_system(_edited_system(body, edits))
            elif (kept := with_edits(message, edits, index)) is not None:
                lost_fields(native, writer.losses, index)
                for said in split_steps(msgspec.structs.replace(kept, native=native)):
                    writer.add(said)
        return writer.finish(whole=whole)

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """Return every documented rule that a list breaks; empty if the API accepts it. Never raises."""
        return check_rules(messages, system)

    def recognises(self, payload: Any) -> bool:
        """Return whether a message can only be in this dialect."""
        return bool(block_types(payload) & _OWN_BLOCKS)

    def _message(self, body: dict[str, Any], raw: bytes, index: int | None) -> Message:
        body = as_sent(body, raw)
        role = role_of(body, index)
        return Message(role, tuple(parts_of(body.get("content"), index)), native=Native(ANTHROPIC, raw))


def _is_ours(message: Message) -> bool:
    return message.native is not None and message.native.dialect == ANTHROPIC


def _edited_system(system: Any, edits: Sequence[Edit]) -> Any:
    if not edits:
        return system
    body = edit_native({"content": system}, replacements(edits))
    return body["content"] if body else ""


def _is_empty_text(block: Any) -> bool:
    text = peek(block, "text")
    return peek(block, "type") == "text" and isinstance(text, str) and not text.strip()


def _usage(usage: Any) -> Usage | None:
    """Read a usage; Anthropic's input_tokens leave out what was read from or written to the cache."""
    if not isinstance(usage, dict):
        return None
    fields = cast("dict[str, Any]", usage)
    return Usage(
        input=count(fields.get("input_tokens")),
        cache_read=count(fields.get("cache_read_input_tokens")),
        cache_write=count(fields.get("cache_creation_input_tokens")),
        output=count(fields.get("output_tokens")),
    )
