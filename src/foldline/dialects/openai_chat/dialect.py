"""OpenAI Chat Completions messages, used by most servers and libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from foldline.core.log.dialects import Traits
from foldline.core.log.messages import Message, Part, Role
from foldline.dialects.dialect import Dialect, Replace, Slot, replied
from foldline.dialects.openai_chat.form import check_message
from foldline.dialects.openai_chat.read import role_of, slots
from foldline.dialects.openai_chat.write import ChatWriter, edit_native
from foldline.dialects.payload import Fields, block_types, fields_of, filled, items_of, peek, read, read_usage
from foldline.dialects.values import OPENAI_CHAT, Problem
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


class OpenAIChatDialect(Dialect):
    """The dialect `openai-chat`; a system prompt is a message in it."""

    name = OPENAI_CHAT
    message_check = staticmethod(check_message)
    edit_native = staticmethod(edit_native)
    traits = Traits(unique_ids=False)

    def decode_reply(self, reply: Any) -> Message:
        """Read a complete ChatCompletion: its message in a form to send back, usage, model and stop reason.

        A bare message is read like in `decode`. Raises DialectError for a reply without a choice.
        """
        body, _ = read(reply)
        if "choices" not in body:
            return self.decode(reply)
        choice = fields_of(next(iter(items_of(body["choices"])), None))
        native = choice.get("message")
        if not isinstance(native, dict):
            raise DialectError(
                "the reply has no choices[0].message (is it a streamed chunk? join its deltas first)"
            )
        usage = read_usage(
            body.get("usage"),
            prompt="prompt_tokens",
            output="completion_tokens",
            reads="prompt_tokens_details.cached_tokens|prompt_cache_hit_tokens",
            writes="prompt_tokens_details.cache_write_tokens",
        )
        message = self.decode(_sendable(cast("Fields", native)))
        return replied(message, usage, body.get("model"), _STOPS.get(str(choice.get("finish_reason"))))

    def decode_system(self, system: Any) -> Message:
        """Read a separate system prompt (text, or a list of text parts) as a system message."""
        return self.decode({"role": "system", "content": system})

    def recognises(self, payload: Any) -> bool:
        """Return whether a message is valid in this dialect only."""
        if peek(payload, "role") in ("tool", "function") or any(peek(payload, key) for key in _OWN_KEYS):
            return True
        return bool(block_types(payload) & _OWN_PARTS)

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a ChatCompletion."""
        return peek(payload, "choices") is not None

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return the call ids of a message: those of its calls and that of its result."""
        role = body.get("role")
        calls = cast("list[Fields]", body.get("tool_calls") or []) if role == "assistant" else []
        return [(call, "id") for call in calls], [(body, "tool_call_id")] if role == "tool" else []

    def reply_messages(self, body: Fields) -> tuple[list[Any], Replace]:
        """Return the first message of a ChatCompletion, and a function that replaces it."""
        if not items_of(body.get("choices")):
            return super().reply_messages(body)
        choice = fields_of(body["choices"][0])
        return [choice.get("message")], lambda new: {**body, "choices": [{**choice, "message": new[0]}]}

    def _parts(self, body: Any, index: int | None) -> tuple[Role, Sequence[Part]]:
        return role_of(body, index), [part for part, _ in slots(body, index)]

    def _message(self, body: Any, raw: bytes, index: int | None) -> Message:
        message = super()._message(body, raw, index)
        name = message.role == "user" and body.get("name")
        return msgspec.structs.replace(message, name=name) if isinstance(name, str) else message

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> ChatWriter:
        del received
        return ChatWriter()

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        del last
        waiting: dict[str, int] = {}  # calls without a result -> index of their message
        answered: set[str] = set()
        for index, body in bodies:
            if body.get("role") == "tool":
                _check_result(problems, index, body, waiting, answered)
                continue
            _report_missing(problems, waiting)
            answered.clear()
            calls = items_of(body.get("tool_calls")) if body.get("role") == "assistant" else []
            for call_id in [call["id"] for call in map(fields_of, calls) if filled(call, "id")]:
                if call_id in waiting:
                    text = f"two calls of one message have the id {call_id!r}"
                    problems.append(Problem(index, "call-duplicate", text))
                waiting[call_id] = index
        _report_missing(problems, waiting)


def _sendable(native: Fields) -> Fields:
    """Return the message of a reply for a request: without nulls and fields that only replies have."""
    body: Fields = {"role": native.get("role") or "assistant", "content": native.get("content")}
    for key, value in native.items():
        empty = value is None or (not value and key in _EMPTY_IN_REPLIES)
        if key not in body and not empty and key != "parsed":  # parsed: added by the SDK
            body[key] = value
    audio = fields_of(body.get("audio"))
    if "id" in audio:
        # requests refer to audio by its id; the transcript becomes the content
        body["audio"] = {"id": audio["id"]}
        body["content"] = body["content"] or audio.get("transcript")
    return body


# ---- rules of calls and results


def _check_result(
    problems: list[Problem], index: int, body: Fields, waiting: dict[str, int], answered: set[str]
) -> None:
    if not filled(body, "tool_call_id"):
        return
    call_id: str = body["tool_call_id"]
    if call_id in answered:
        problems.append(Problem(index, "result-duplicate", f"call {call_id!r} already has a result"))
    elif call_id not in waiting:
        problems.append(Problem(index, "result-orphan", f"no open call {call_id!r} before this result"))
    else:
        del waiting[call_id]
        answered.add(call_id)


def _report_missing(problems: list[Problem], waiting: dict[str, int]) -> None:
    """Report calls without a result right after them."""
    for call_id, index in waiting.items():
        problems.append(Problem(index, "result-missing", f"no tool message follows for call {call_id!r}"))
    waiting.clear()
