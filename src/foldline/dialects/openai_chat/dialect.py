"""OpenAI Chat Completions messages, which most servers and libraries use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from foldline.core.log import codec
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Native, Usage
from foldline.dialects.edits import replacements, with_edits
from foldline.dialects.losses import lost_fields
from foldline.dialects.openai_chat.read import role_of, slots
from foldline.dialects.openai_chat.rules import validate as check_rules
from foldline.dialects.openai_chat.write import ChatWriter, edit_native
from foldline.dialects.payload import as_sent, block_types, count, parse, peek, read
from foldline.dialects.steps import split_steps
from foldline.dialects.stored import in_words
from foldline.dialects.values import OPENAI_CHAT, Problem, Rendered, check_text, reporter
from foldline.errors import DialectError

_STOPS = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "error",
    "error": "error",
}
_OWN_KEYS = ("tool_calls", "tool_call_id", "function_call", "refusal", "reasoning_content", "reasoning")
_OWN_PARTS = frozenset({"image_url", "input_audio", "file", "refusal"})
_EMPTY_IN_REPLIES = ("annotations", "tool_calls")  # lists that may be empty in a reply, but not in a request


class OpenAIChatDialect:
    """The dialect `openai-chat`."""

    name = OPENAI_CHAT

    def decode(self, payload: Any, *, index: int | None = None) -> Message:
        """Read a native message (dict, JSON bytes or SDK object); it is kept as received beside its parts.

        Raises DialectError (with `index`) if it is not a Chat Completions message.
        """
        body, raw = read(payload, index)
        return self._message(body, raw, index)

    def decode_reply(self, reply: Any) -> Message:
        """Read a whole ChatCompletion: its message in the form to send back, usage, model, why it stopped.

        A bare message is read as by `decode`. Raises DialectError if there is no choice in it.
        """
        body, _ = read(reply)
        if "choices" not in body:
            return self.decode(reply)
        choices = body["choices"]
        first = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
        choice = cast("dict[str, Any]", first) if isinstance(first, dict) else {}
        native = choice.get("message")
        if not isinstance(native, dict):
            raise DialectError(
                "the reply has no choices[0].message (is it a streamed chunk? join its deltas first)"
            )
        sendable = _sendable(cast("dict[str, Any]", native))
        message = self._message(sendable, codec.encode(sendable), None)
        model, stop = body.get("model"), choice.get("finish_reason")
        return msgspec.structs.replace(
            message,
            usage=_usage(body.get("usage")),
            model=model if isinstance(model, str) else None,
            stop=_STOPS.get(stop) if isinstance(stop, str) else None,
        )

    def decode_system(self, system: Any) -> Message:
        """Read a system prompt given separately (text, or a list of text parts) as a system message."""
        return self.decode({"role": "system", "content": system})

    def render(self, items: Sequence[tuple[Message, Sequence[Edit]]], *, whole: bool = False) -> Rendered:
        """Write messages, each with its edits, as a Chat Completions list.

        Its own messages come back as received, edited ones with just those parts changed; all others are
        encoded. `warnings` names and counts what could not be carried. `system` stays None: the
        system prompt is a message here. Raises DialectError for an edit of a part that does not exist.
        """
        items = in_words(items)
        del whole  # a request may begin with any role here
        writer = ChatWriter()
        for index, (message, edits) in enumerate(items):
            native = message.native
            if native is None or native.dialect != OPENAI_CHAT:
                kept = with_edits(message, edits, index)
                if kept is not None:
                    lost_fields(native, writer.losses, index)
                    for said in split_steps(kept):
                        writer.add(said)
                continue
            body = parse(native.raw, index)
            if edits:
                body = edit_native(body, replacements(edits), index)
            if body is not None:
                writer.native(body, message)
        return writer.finish()

    def validate(self, messages: Sequence[Any], system: Any = None) -> list[Problem]:
        """Return every documented rule that a list breaks; empty if the API accepts it. Never raises."""
        problems = check_rules(messages)
        if system is not None and not isinstance(system, str):
            problems.insert(0, Problem(-1, "system", "the system prompt must be a string"))
        check_text(reporter(problems, -1), system)
        return problems

    def recognises(self, payload: Any) -> bool:
        """Return whether a message can only be in this dialect."""
        if peek(payload, "role") in ("tool", "function") or any(peek(payload, key) for key in _OWN_KEYS):
            return True
        return bool(block_types(payload) & _OWN_PARTS)

    def _message(self, body: dict[str, Any], raw: bytes, index: int | None) -> Message:
        body = as_sent(body, raw)
        role = role_of(body, index)
        parts = tuple(part for part, _ in slots(body, index))
        name = body.get("name") if role == "user" else None
        return Message(
            role, parts, native=Native(OPENAI_CHAT, raw), name=name if isinstance(name, str) else None
        )


def _sendable(native: dict[str, Any]) -> dict[str, Any]:
    """Return a reply's message in the form of a request, without nulls and fields that only replies have."""
    body: dict[str, Any] = {"role": native.get("role") or "assistant", "content": native.get("content")}
    for key, value in native.items():
        empty = value is None or (not value and key in _EMPTY_IN_REPLIES)
        if key not in body and not empty and key != "parsed":  # parsed: the SDK's own parse of the content
            body[key] = value
    audio = body.get("audio")
    if isinstance(audio, Mapping) and "id" in audio:
        # a request names audio by its id alone; the transcript stays as content
        fields = cast("Mapping[str, Any]", audio)
        body["audio"] = {"id": fields["id"]}
        body["content"] = body["content"] or fields.get("transcript")
    return body


def _usage(usage: Any) -> Usage | None:
    """Read a usage; OpenAI's prompt_tokens include cached tokens, completion_tokens include reasoning."""
    if not isinstance(usage, dict):
        return None
    fields = cast("dict[str, Any]", usage)
    details = fields.get("prompt_tokens_details")
    inner = cast("dict[str, Any]", details) if isinstance(details, dict) else {}
    read_back = count(inner.get("cached_tokens")) or count(fields.get("prompt_cache_hit_tokens"))
    written = count(inner.get("cache_write_tokens"))
    prompt = count(fields.get("prompt_tokens"))
    return Usage(
        input=max(0, prompt - read_back - written),
        cache_read=read_back,
        cache_write=written,
        output=count(fields.get("completion_tokens")),
    )
