"""A finished reply in the form of OpenAI's Responses API: the whole response, and its stream of events."""

from __future__ import annotations

from typing import Any, cast

from foldline.core.log.messages import Usage
from foldline.testing.answers import FinishedReply, fragments
from foldline.testing.forms.chat import CREATED, written
from foldline.testing.request import Asked
from foldline.testing.wire import sse


class _Events:
    """Number the events of one stream."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def add(self, kind: str, **fields: Any) -> None:
        numbered = {"type": kind, "sequence_number": len(self.found), **fields}
        self.found.append(sse(numbered, kind))


def body(made: FinishedReply) -> dict[str, Any]:
    """Return the Response of a reply."""
    status, why = "completed", None
    if made.stop in ("length", "refused"):
        reason = "max_output_tokens" if made.stop == "length" else "content_filter"
        status, why = "incomplete", {"reason": reason}
    return _head(made.key, made.model, made.asked) | {
        "status": status,
        "incomplete_details": why,
        "output": _items(made),
        "usage": _usage(made.usage),
    }


def stream(made: FinishedReply) -> list[bytes]:
    """Return the events of a reply: response.created to response.completed or response.incomplete."""
    events = _Events()
    begun: dict[str, Any] = _head(made.key, made.model, made.asked) | {
        "status": "in_progress",
        "output": [],
        "usage": None,
    }
    events.add("response.created", response=begun)
    events.add("response.in_progress", response=begun)
    for index, item in enumerate(_items(made)):
        _item(events, index, item)
    done = body(made)
    events.add(f"response.{done['status']}", response=done)
    return events.found


def failed(key: str, asked: Asked, inner: dict[str, Any]) -> list[bytes]:
    """Return a stream that begins and then fails, as the API reports a prompt that is too long."""
    events = _Events()
    head: dict[str, Any] = _head(key, asked.model, asked) | {"output": [], "usage": None}
    events.add("response.created", response=head | {"status": "in_progress"})
    events.add("response.in_progress", response=head | {"status": "in_progress"})
    events.add("error", error=inner)
    reason = {"code": inner["code"], "message": inner["message"]}
    events.add("response.failed", response=head | {"status": "failed", "error": reason})
    return events.found


def error(inner: dict[str, Any], number: int) -> bytes:
    """Return the event by which a stream that has begun reports an error; `number` is its place."""
    return sse({"type": "error", "sequence_number": number, "error": inner}, "error")


def _head(key: str, model: str, asked: Asked) -> dict[str, Any]:
    given = asked.body
    return {
        "id": f"resp_{key}",
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": given.get("instructions"),
        "max_output_tokens": given.get("max_output_tokens"),
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": given.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": given.get("tool_choice", "auto"),
        "tools": given.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def _items(made: FinishedReply) -> list[dict[str, Any]]:
    """Return the output items; ids of items made with reasoning contain `_r` and the reply's key."""
    mark = f"r{made.key}" if made.thinking is not None else made.key
    items: list[dict[str, Any]] = []
    if made.thinking is not None:
        summary = [{"type": "summary_text", "text": made.thinking}] if made.thinking else []
        item: dict[str, Any] = {"id": f"rs_{mark}", "type": "reasoning", "summary": summary}
        include = made.asked.body.get("include")
        if isinstance(include, list) and "reasoning.encrypted_content" in cast("list[Any]", include):
            item["encrypted_content"] = made.signature
        items.append(item)
    status = "incomplete" if made.stop == "length" else "completed"
    if made.text or not made.calls:
        part: dict[str, Any] = {"type": "output_text", "text": made.text, "annotations": [], "logprobs": []}
        items.append(
            {
                "id": f"msg_{mark}",
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [part],
            }
        )
    items.extend(
        {
            "id": f"fc_{mark}_{number}",
            "type": "function_call",
            "status": "completed",
            "arguments": written(call),
            "call_id": call.id,
            "name": call.name,
        }
        for number, call in enumerate(made.calls)
    )
    return items


def _item(events: _Events, index: int, item: dict[str, Any]) -> None:
    at = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        events.add("response.output_item.added", output_index=index, item=item | {"summary": []})
        _summary(events, at, item)
    elif item["type"] == "message":
        begun: dict[str, Any] = item | {"status": "in_progress", "content": []}
        events.add("response.output_item.added", output_index=index, item=begun)
        _text(events, at | {"content_index": 0}, item["content"][0])
    else:
        begun = item | {"status": "in_progress", "arguments": ""}
        events.add("response.output_item.added", output_index=index, item=begun)
        for piece in fragments(item["arguments"]):
            events.add("response.function_call_arguments.delta", **at, delta=piece)
        done = {"arguments": item["arguments"], "name": item["name"]}
        events.add("response.function_call_arguments.done", **at, **done)
    events.add("response.output_item.done", output_index=index, item=item)


def _summary(events: _Events, at: dict[str, Any], item: dict[str, Any]) -> None:
    for number, part in enumerate(item["summary"]):
        place = at | {"summary_index": number}
        empty = {"type": "summary_text", "text": ""}
        events.add("response.reasoning_summary_part.added", **place, part=empty)
        for piece in fragments(part["text"]):
            events.add("response.reasoning_summary_text.delta", **place, delta=piece)
        events.add("response.reasoning_summary_text.done", **place, text=part["text"])
        events.add("response.reasoning_summary_part.done", **place, part=part)


def _text(events: _Events, at: dict[str, Any], part: dict[str, Any]) -> None:
    events.add("response.content_part.added", **at, part=part | {"text": ""})
    for piece in fragments(part["text"]):
        events.add("response.output_text.delta", **at, delta=piece, logprobs=[])
    events.add("response.output_text.done", **at, text=part["text"], logprobs=[])
    events.add("response.content_part.done", **at, part=part)


def _usage(usage: Usage) -> dict[str, Any]:
    asked = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + usage.output,
    }
