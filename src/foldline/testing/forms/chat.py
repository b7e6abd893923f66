"""A finished reply in the form of Chat Completions: the whole completion, and its stream of chunks."""

from __future__ import annotations

from typing import Any, Final, cast

from foldline.core.log.codec import encode
from foldline.core.log.messages import ToolCall, Usage
from foldline.testing.answers import FinishedReply, fragments
from foldline.testing.wire import sse

CREATED: Final = 1_767_225_600  # 2026-01-01: the same in every run
_STOPS: Final = {
    "end": "stop",
    "tools": "tool_calls",
    "length": "length",
    "refused": "content_filter",
    "paused": "stop",
}


def body(made: FinishedReply) -> dict[str, Any]:
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


def stream(made: FinishedReply) -> list[bytes]:
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
    options = made.asked.body.get("stream_options")
    with_usage = isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage") is True
    head = _head(made, "chat.completion.chunk") | ({"usage": None} if with_usage else {})
    found = [sse(head | {"choices": [_choice(delta, None)]}) for delta in deltas]
    found.append(sse(head | {"choices": [_choice({}, _STOPS[made.stop])]}))
    if with_usage:
        found.append(sse(head | {"choices": [], "usage": _usage(made.usage)}))
    found.append(sse("[DONE]"))
    return found


def error(inner: dict[str, Any]) -> bytes:
    """Return the event by which a stream that has begun reports an error."""
    return sse({"error": inner})


def written(call: ToolCall) -> str:
    """Return a call's arguments as the JSON text that OpenAI sends; broken ones as they are."""
    return call.arguments if isinstance(call.arguments, str) else encode(call.arguments).decode()


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
