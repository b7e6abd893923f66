"""The Responses API: its refusals, in its own words, and the format of its replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from foldline.core.log.messages import Usage
from foldline.dialects import get
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.responses.dialect import LEAST_THRESHOLD
from foldline.dialects.values import OPENAI_RESPONSES, Problem
from foldline.testing.answers import FinishedReply, Refusal, fragments
from foldline.testing.apis.base import named
from foldline.testing.apis.openai import (
    CREATED,
    EMPTY,
    OpenAIApi,
    arguments_json,
    bad,
    require_cap,
    require_list,
)
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer
from foldline.testing.wire import EVENTS, Wire, sse

_ENCRYPTED: Final = "encrypted_content"
_OVERFLOW: Final = "context_length_exceeded"
_TEXTS: Final = {  # the API's texts for broken rules of the dialect
    "result-orphan": "No tool call found for function call output with call_id {name}.",
    "result-missing": "No tool output found for function call {name}.",
    "reasoning-last": "Item '{item_id}' of type 'reasoning' was provided without its required following "
    "item.",
    "item-duplicate": "Duplicate item found with id {name}. Remove duplicate items from your input and try "
    "again.",
}
MIN_OUTPUT: Final = 16  # max_output_tokens


class ResponsesApi(OpenAIApi):
    """The Responses API."""

    dialect = OPENAI_RESPONSES

    def check(self, request: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check the list of items, and references to earlier responses."""
        del prefill
        if not isinstance(request.body.get("input"), str):
            require_list(request)
        require_cap(request, MIN_OUTPUT)
        previous = request.body.get("previous_response_id")
        if previous is not None:
            text = f"Previous response with id '{previous}' not found."
            raise bad(text, "previous_response_id", "previous_response_not_found")
        problems = get(OPENAI_RESPONSES).validate(request.messages, request.system)
        if problems:
            raise _first_refusal(problems, request.messages)
        _check_reasoning(request.messages, signer)

    def compacts_past(self, request: Asked) -> int | None:
        """Return the threshold of the `compaction` entry of `context_management`."""
        for entry in map(fields_of, items_of(request.body.get("context_management"))):
            if entry.get("type") != "compaction":
                text = f"Invalid value: '{entry.get('type')}'. Supported values are: 'compaction'."
                raise bad(text, "context_management[0].type", "invalid_value")
            value = entry.get("compact_threshold")
            if value is not None and value < LEAST_THRESHOLD:
                text = f"Invalid 'compact_threshold': expected a value >= {LEAST_THRESHOLD}, got {value}."
                raise bad(text, "context_management[0].compact_threshold", "integer_below_min_value")
            return value
        return None

    def overflow(self, used: int, limit: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input that does not fit, or None; a reply without room is cut short."""
        del cap, context
        if used <= limit:
            return None
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return bad(text, "input", _OVERFLOW)

    def refuse(self, refusal: Refusal, key: str = "0", request: Asked | None = None) -> Wire:
        """Return the HTTP response with a refusal.

        A stream begins before the prompt is measured, so events with status 200 report a prompt that is too
        long.
        """
        if refusal.code != _OVERFLOW or request is None or not request.stream:
            return super().refuse(refusal, key, request)
        pieces = _failed(key, request, self.error(refusal))
        return Wire(
            200, tuple(pieces), content_type=EVENTS, headers=(*self._headers(key), *refusal.headers())
        )

    def error_event(self, inner: dict[str, Any], number: int) -> bytes:
        """Return the event that reports an error in a stream that has begun; `number` is its position."""
        return sse({"type": "error", "sequence_number": number, "error": inner}, "error")

    def body(self, reply: FinishedReply) -> dict[str, Any]:
        """Return the Response of a reply."""
        reason = {"length": "max_output_tokens", "refused": "content_filter"}.get(reply.stop)
        return _head(reply.key, reply.model, reply.request) | {
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": _items(reply),
            "usage": _usage(reply.usage),
        }

    def stream(self, reply: FinishedReply) -> list[bytes]:
        """Return the events of a reply: response.created to response.completed or response.incomplete."""
        events = _Events()
        started: dict[str, Any] = _head(reply.key, reply.model, reply.request) | {
            "status": "in_progress",
            "output": [],
            "usage": None,
        }
        events.add("response.created", response=started)
        events.add("response.in_progress", response=started)
        for index, item in enumerate(_items(reply)):
            _item(events, index, item)
        done = self.body(reply)
        events.add(f"response.{done['status']}", response=done)
        return events.written


def _check_reasoning(items: Sequence[Any], signer: Signer) -> None:
    """Refuse foreign encrypted reasoning, and items without the reasoning that they were made with."""
    earlier: set[str] = set()
    for index, item in enumerate(items):
        item_id, kind = item.get("id"), item.get("type")
        if kind == "item_reference":
            raise Refusal(
                404,
                f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false.",
                param="input",
            )
        sealed = item.get(_ENCRYPTED) if kind == "reasoning" else None
        if isinstance(sealed, str) and not signer.sealed(sealed):
            raise bad(
                f"The encrypted content for item {item_id} could not be verified. "
                "Reason: Encrypted content could not be decrypted or parsed.",
                f"input[{index}].{_ENCRYPTED}",
                "invalid_encrypted_content",
            )
        if not isinstance(item_id, str):
            continue
        earlier.add(item_id)
        needed = _reasoning_of(item_id)
        if needed is not None and needed not in earlier:
            text = (
                f"Item '{item_id}' of type '{kind}' was provided without its required "
                f"'reasoning' item: '{needed}'."
            )
            raise bad(text, "input")


def _reasoning_of(item_id: str) -> str | None:
    """Return the id of the reasoning that an item was made with, which `_items` puts into its id, or None."""
    kind, _, key = item_id.partition("_r")
    return f"rs_r{key[:24]}" if kind in ("fc", "msg") and len(key) >= 24 else None


def _first_refusal(problems: Sequence[Problem], items: Sequence[Any]) -> Refusal:
    """Return the refusal for the first problem."""
    problem = problems[0]
    if problem.rule == "list":
        return bad(f"Invalid 'input': {EMPTY}", "input", "empty_array")
    if problem.rule in _TEXTS:
        item_id = fields_of(items[problem.index]).get("id")
        return bad(
            _TEXTS[problem.rule].format(name="".join(named(problem, [problem])), item_id=item_id), "input"
        )
    param = f"input[{problem.index}]" if problem.index >= 0 else "instructions"
    return bad(f"Invalid '{param}': {problem.text}.", param, "invalid_value")


# ---- a reply


class _Events:
    """Number the events of one stream."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def add(self, kind: str, **fields: Any) -> None:
        numbered = {"type": kind, "sequence_number": len(self.written), **fields}
        self.written.append(sse(numbered, kind))


def _failed(key: str, request: Asked, inner: dict[str, Any]) -> list[bytes]:
    """Return a stream that begins and then fails: the API's report of a prompt that is too long."""
    events = _Events()
    head: dict[str, Any] = _head(key, request.model, request) | {"output": [], "usage": None}
    events.add("response.created", response=head | {"status": "in_progress"})
    events.add("response.in_progress", response=head | {"status": "in_progress"})
    events.add("error", error=inner)
    reason = {"code": inner["code"], "message": inner["message"]}
    events.add("response.failed", response=head | {"status": "failed", "error": reason})
    return events.written


def _head(key: str, model: str, request: Asked) -> dict[str, Any]:
    body = request.body
    return {
        "id": f"resp_{key}",
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
    }


def _items(reply: FinishedReply) -> list[dict[str, Any]]:
    """Return the output items; ids of items made with reasoning contain `_r` and the reply's key."""
    mark = f"r{reply.key}" if reply.thinking is not None else reply.key
    items: list[dict[str, Any]] = []
    if reply.compacted is not None:
        items.append({"id": f"cmp_{reply.key}", "type": "compaction", _ENCRYPTED: reply.compacted})
    if reply.thinking is not None:
        summary = [{"type": "summary_text", "text": reply.thinking}] if reply.thinking else []
        item: dict[str, Any] = {"id": f"rs_{mark}", "type": "reasoning", "summary": summary}
        if "reasoning.encrypted_content" in items_of(reply.request.body.get("include")):
            item[_ENCRYPTED] = reply.signature
        items.append(item)
    status = "incomplete" if reply.stop == "length" else "completed"
    if reply.text or not reply.calls:
        part: dict[str, Any] = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
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
            "arguments": arguments_json(call),
            "call_id": call.id,
            **_tool_name(call.name, reply.request.body.get("tools")),
        }
        for number, call in enumerate(reply.calls)
    )
    return items


def _tool_name(name: str, tools: Any) -> dict[str, str]:
    """Return the fields with the name of a call's tool; a script writes `SPACE__TOOL` for a namespace's."""
    for space in map(fields_of, items_of(tools)):
        if space.get("type") == "namespace":
            for inner in map(fields_of, items_of(space.get("tools"))):
                if name == f"{space.get('name')}__{inner.get('name')}":
                    return {"name": str(inner["name"]), "namespace": str(space["name"])}
    return {"name": name}


def _item(events: _Events, index: int, item: dict[str, Any]) -> None:
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        events.add("response.output_item.added", output_index=index, item=item | {"summary": []})
        _summary(events, place, item)
    elif item["type"] == "message":
        started: dict[str, Any] = item | {"status": "in_progress", "content": []}
        events.add("response.output_item.added", output_index=index, item=started)
        _text(events, place | {"content_index": 0}, item["content"][0])
    elif item["type"] == "compaction":
        events.add("response.output_item.added", output_index=index, item=item)
    else:
        started = item | {"status": "in_progress", "arguments": ""}
        events.add("response.output_item.added", output_index=index, item=started)
        for piece in fragments(item["arguments"]):
            events.add("response.function_call_arguments.delta", **place, delta=piece)
        complete = {"arguments": item["arguments"], "name": item["name"]}
        events.add("response.function_call_arguments.done", **place, **complete)
    events.add("response.output_item.done", output_index=index, item=item)


def _summary(events: _Events, item_place: dict[str, Any], item: dict[str, Any]) -> None:
    for number, part in enumerate(item["summary"]):
        place = item_place | {"summary_index": number}
        empty = {"type": "summary_text", "text": ""}
        events.add("response.reasoning_summary_part.added", **place, part=empty)
        for piece in fragments(part["text"]):
            events.add("response.reasoning_summary_text.delta", **place, delta=piece)
        events.add("response.reasoning_summary_text.done", **place, text=part["text"])
        events.add("response.reasoning_summary_part.done", **place, part=part)


def _text(events: _Events, place: dict[str, Any], part: dict[str, Any]) -> None:
    events.add("response.content_part.added", **place, part=part | {"text": ""})
    for piece in fragments(part["text"]):
        events.add("response.output_text.delta", **place, delta=piece, logprobs=[])
    events.add("response.output_text.done", **place, text=part["text"], logprobs=[])
    events.add("response.content_part.done", **place, part=part)


def _usage(usage: Usage) -> dict[str, Any]:
    prompt = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + usage.output,
    }
