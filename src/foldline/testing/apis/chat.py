"""Chat Completions: what it refuses, in its words, and the form of its replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from foldline.core.log.messages import ToolCall, Usage
from foldline.dialects import get
from foldline.dialects.payload import fields_of
from foldline.dialects.values import OPENAI_CHAT, Problem
from foldline.testing.answers import FinishedReply, Refusal, fragments
from foldline.testing.apis.base import named
from foldline.testing.apis.openai import (
    CREATED,
    EMPTY,
    MISSING,
    MISSING_CODE,
    OpenAIApi,
    bad,
    require_cap,
    require_list,
    written,
)
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer
from foldline.testing.wire import sse

_STOPS: Final = {
    "end": "stop",
    "tools": "tool_calls",
    "length": "length",
    "refused": "content_filter",
    "paused": "stop",
}


class ChatApi(OpenAIApi):
    """The Chat Completions API."""

    dialect = OPENAI_CHAT

    def check(self, asked: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check the list of messages."""
        del signer, prefill
        require_list(asked)
        require_cap(asked)
        problems = get(OPENAI_CHAT).validate(asked.messages)
        if problems:
            # what is wrong in a message comes before what is wrong between messages
            raise _said(sorted(problems, key=lambda one: one.rule == "result-missing"), asked.messages)

    def overflow(self, used: int, most: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input, or of input and cap, that do not fit; None where they do."""
        both = used + cap > context
        if used <= most and not both:
            return None
        limit = context if both and used <= most else most
        text = f"This model's maximum context length is {limit} tokens. However, "
        text += (
            f"you requested {used + cap} tokens ({used} in the messages, {cap} in the completion). Please "
            "reduce the length of the messages or completion."
            if cap
            else f"your messages resulted in {used} tokens. Please reduce the length of the messages."
        )
        return bad(text, "messages", "context_length_exceeded")

    def error_event(self, inner: dict[str, Any], number: int) -> bytes:
        """Return the event by which a stream that has begun reports an error."""
        del number
        return sse({"error": inner})

    def body(self, made: FinishedReply) -> dict[str, Any]:
        """Return the ChatCompletion of a reply."""
        message: dict[str, Any] = {"role": "assistant", "content": made.text or None, "refusal": None}
        if made.thinking is not None:
            message["reasoning_content"] = made.thinking  # as compatible servers show it
        if made.calls:
            message["tool_calls"] = [_call(call) for call in made.calls]
        elif message["content"] is None:
            message["content"] = ""
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _STOPS[made.stop]}
        return _head(made, "chat.completion") | {"choices": [choice], "usage": _usage(made.usage)}

    def stream(self, made: FinishedReply) -> list[bytes]:
        """Return the chunks of a reply, and `[DONE]`; the usage where the request asks for it."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas.extend({"reasoning_content": piece} for piece in fragments(made.thinking or ""))
        deltas.extend({"content": piece} for piece in fragments(made.text))
        for index, call in enumerate(made.calls):
            whole = _call(call)
            written = whole["function"]["arguments"]
            first = {"index": index, **whole, "function": {"name": call.name, "arguments": ""}}
            deltas.append({"tool_calls": [first]})
            deltas.extend(
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in fragments(written)
            )
        with_usage = fields_of(made.asked.body.get("stream_options")).get("include_usage") is True
        head = _head(made, "chat.completion.chunk") | ({"usage": None} if with_usage else {})
        found = [sse(head | {"choices": [_choice(delta, None)]}) for delta in deltas]
        found.append(sse(head | {"choices": [_choice({}, _STOPS[made.stop])]}))
        if with_usage:
            found.append(sse(head | {"choices": [], "usage": _usage(made.usage)}))
        found.append(sse("[DONE]"))
        return found


def _head(made: FinishedReply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{made.key}",
        "object": kind,
        "created": CREATED,
        "model": made.model,
        "service_tier": "default",
        "system_fingerprint": "fp_foldline",
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": written(call)},
    }


def _choice(delta: dict[str, Any], stop: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}


def _usage(usage: Usage) -> dict[str, Any]:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


# ---- the words for what a rule of the dialect finds

_ROLES: Final = (
    "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', "
    "and 'developer'."
)
_ORPHAN: Final = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
    "'tool_calls'."
)
_UNANSWERED: Final = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}"
)
_NULL: Final = "Invalid value for 'content': expected a string, got null."
_PARTS: Final = (
    "Invalid value: '{ids}'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', "
    "'audio', and 'file'."
)
# (words, param, code) of a broken rule; `n` is the index of the message, `ids` are those that it names
_WORDS: Final[dict[str, tuple[str, str, str | None]]] = {
    "list": (f"Invalid 'messages': {EMPTY}", "messages", "empty_array"),
    "role": (_ROLES, "messages[{n}].role", "invalid_value"),
    "result-orphan": (_ORPHAN, "messages.[{n}].role", None),
    "result-missing": (_UNANSWERED, "messages.[{next}].role", None),
    "result-duplicate": ("Duplicate value for 'tool_call_id' of '{ids}' in message[{n}].", "messages", None),
    "result-id": (MISSING, "messages[{n}].tool_call_id", MISSING_CODE),
    "call-id": (MISSING, "messages[{n}].tool_calls[0].id", MISSING_CODE),
    "content-null": (_NULL, "messages.[{n}].content", None),
    "content-empty": (f"Invalid '{{param}}': {EMPTY}", "messages[{n}].content", "empty_array"),
    "calls-empty": (f"Invalid '{{param}}': {EMPTY}", "messages[{n}].tool_calls", "empty_array"),
    "part-type": (_PARTS, "messages[{n}].content[0].type", "invalid_value"),
}
_OTHER: Final = ("Invalid '{param}': {text}.", "messages[{n}]", "invalid_value")


def _said(problems: Sequence[Problem], messages: Sequence[Any]) -> Refusal:
    """Return what Chat Completions says of the first problem."""
    problem = problems[0]
    words, place, code = _WORDS.get(problem.rule, _OTHER)
    n = problem.index
    param = place.format(n=n, next=n + 1)
    role = fields_of(messages[n]).get("role") if n >= 0 else None
    ids = ", ".join(named(problem, problems))
    return bad(words.format(n=n, param=param, ids=ids, role=role, text=problem.text), param, code)
