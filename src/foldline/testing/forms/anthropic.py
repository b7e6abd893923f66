"""A finished reply in the form of Anthropic's Messages API: the whole message, and its stream of events."""

from __future__ import annotations

from typing import Any, Final

from foldline.core.log.codec import encode
from foldline.core.log.messages import Usage
from foldline.testing.answers import FinishedReply, fragments
from foldline.testing.wire import sse

_STOPS: Final = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refused": "refusal",
    "paused": "pause_turn",
}


def body(made: FinishedReply) -> dict[str, Any]:
    """Return the Message of a reply."""
    return {
        "id": f"msg_{made.key}",
        "type": "message",
        "role": "assistant",
        "model": made.model,
        "content": _blocks(made),
        "stop_reason": _STOPS[made.stop],
        "stop_sequence": None,
        "usage": _usage(made.usage),
    }


def stream(made: FinishedReply) -> list[bytes]:
    """Return the events of a reply: message_start to message_stop."""
    start: dict[str, Any] = body(made) | {
        "content": [],
        "stop_reason": None,
        "usage": _usage(made.usage) | {"output_tokens": 1},
    }
    found = [_event("message_start", message=start)]
    for index, block in enumerate(_blocks(made)):
        found.extend(_block(index, block))
        if index == 0:
            found.insert(2, _event("ping"))
    delta = {"stop_reason": _STOPS[made.stop], "stop_sequence": None}
    usage = _usage(made.usage)
    del usage["service_tier"]
    found.append(_event("message_delta", delta=delta, usage=usage))
    found.append(_event("message_stop"))
    return found


def error(inner: dict[str, Any]) -> bytes:
    """Return the event by which a stream that has begun reports an error."""
    return _event("error", error=inner)


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _blocks(made: FinishedReply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if made.thinking is not None:
        blocks.append({"type": "thinking", "thinking": made.thinking, "signature": made.signature})
    if made.text:
        blocks.append({"type": "text", "text": made.text})
    blocks.extend(
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in made.calls
    )
    return blocks


def _block(index: int, block: dict[str, Any]) -> list[bytes]:
    kind = block["type"]
    if kind == "text":
        empty: dict[str, Any] = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in fragments(block["text"])]
    elif kind == "thinking":
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in fragments(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        empty = block | {"input": {}}
        written = encode(block["input"]).decode()
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *fragments(written)]]
    return [
        _event("content_block_start", index=index, content_block=empty),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
        "service_tier": "standard",
    }
