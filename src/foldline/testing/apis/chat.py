"""Chat Completions: its refusals, in its own words, and the format of its replies."""

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
    arguments_json,
    bad,
    require_cap,
    require_list,
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

    def check(self, request: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check the list of messages."""
        del signer, prefill
        require_list(request)
        require_cap(request)
        problems = get(OPENAI_CHAT).validate(request.messages)
        if problems:
            # problems within a message come before those between messages
            raise _first_refusal(
                sorted(problems, key=lambda problem: problem.rule == "result-missing"), request.messages
            )

    def overflow(self, used: int, limit: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input, or of input and `max_tokens`, that does not fit, or None."""
        if used <= limit and used + cap <= context:
            return None
        text = (
            f"This model's maximum context length is {limit if used > limit else context} tokens. However, "
        )
        text += (
            f"you requested {used + cap} tokens ({used} in the messages, {cap} in the completion). Please "
            "reduce the length of the messages or completion."
            if cap
            else f"your messages resulted in {used} tokens. Please reduce the length of the messages."
        )
        return bad(text, "messages", "context_length_exceeded")

    def body(self, reply: FinishedReply) -> dict[str, Any]:
        """Return the ChatCompletion of a reply."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.thinking is not None:
            message["reasoning_content"] = reply.thinking  # as compatible servers send it
        if reply.calls:
            message["tool_calls"] = [_call(call) for call in reply.calls]
        elif message["content"] is None:
            message["content"] = ""
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _STOPS[reply.stop]}
        return _head(reply, "chat.completion") | {"choices": [choice], "usage": _usage(reply.usage)}

    def stream(self, reply: FinishedReply) -> list[bytes]:
        """Return the chunks of a reply, the usage if the request wants it, and `[DONE]`."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
        deltas.extend({"reasoning_content": piece} for piece in fragments(reply.thinking or ""))
        deltas.extend({"content": piece} for piece in fragments(reply.text))
        for index, call in enumerate(reply.calls):
            first = {"index": index, **_call(call), "function": {"name": call.name, "arguments": ""}}
            deltas.append({"tool_calls": [first]})
            deltas.extend(
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in fragments(arguments_json(call))
            )
        with_usage = fields_of(reply.request.body.get("stream_options")).get("include_usage") is True
        head = _head(reply, "chat.completion.chunk") | ({"usage": None} if with_usage else {})
        events = [sse(head | {"choices": [_choice(delta, None)]}) for delta in deltas]
        events.append(sse(head | {"choices": [_choice({}, _STOPS[reply.stop])]}))
        if with_usage:
            events.append(sse(head | {"choices": [], "usage": _usage(reply.usage)}))
        events.append(sse("[DONE]"))
        return events


def _head(reply: FinishedReply, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.key}",
        "object": kind,
        "created": CREATED,
        "model": reply.model,
        "service_tier": "default",
        "system_fingerprint": "fp_foldline",
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_json(call)},
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


# ---- the API's texts for broken rules of the dialect

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
# (text, param, code) of a broken rule; `n` is the index of the message, `ids` are those that it names
_TEXTS: Final[dict[str, tuple[str, str, str | None]]] = {
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


def _first_refusal(problems: Sequence[Problem], messages: Sequence[Any]) -> Refusal:
    """Return the refusal for the first problem."""
    problem = problems[0]
    text, place, code = _TEXTS.get(problem.rule, _OTHER)
    n = problem.index
    param = place.format(n=n, next=n + 1)
    role = fields_of(messages[n]).get("role") if n >= 0 else None
    ids = ", ".join(named(problem, problems))
    return bad(text.format(n=n, param=param, ids=ids, role=role, text=problem.text), param, code)
