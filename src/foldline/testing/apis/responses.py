"""The Responses API: what it refuses, in its words, and the form of its replies."""

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
from foldline.testing.apis.openai import CREATED, EMPTY, OpenAIApi, bad, require_cap, require_list, written
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer
from foldline.testing.wire import EVENTS, Wire, sse

_ENCRYPTED: Final = "encrypted_content"
_OVERFLOW: Final = "context_length_exceeded"
_WORDS: Final = {  # what is said of a broken rule of the dialect
    "result-orphan": "No tool call found for function call output with call_id {name}.",
    "result-missing": "No tool output found for function call {name}.",
    "reasoning-last": "Item '{item_id}' of type 'reasoning' was provided without its required following "
    "item.",
    "item-duplicate": "Duplicate item found with id {name}. Remove duplicate items from your input and try "
    "again.",
}


LEAST_CAP: Final = 16  # tokens of a reply


class ResponsesApi(OpenAIApi):
    """The Responses API."""

    dialect = OPENAI_RESPONSES

    def check(self, asked: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check the list of items, and what the server knows of them."""
        del prefill
        if not isinstance(asked.body.get("input"), str):
            require_list(asked)
        require_cap(asked, LEAST_CAP)
        previous = asked.body.get("previous_response_id")
        if previous is not None:
            text = f"Previous response with id '{previous}' not found."
            raise bad(text, "previous_response_id", "previous_response_not_found")
        problems = get(OPENAI_RESPONSES).validate(asked.messages, asked.system)
        if problems:
            raise _said(problems, asked.messages)
        _reasoning(asked.messages, signer)

    def compacts_past(self, asked: Asked) -> int | None:
        """Return the threshold of the `compaction` entry of `context_management`."""
        given = asked.body.get("context_management")
        for entry in map(fields_of, items_of(given)):
            if entry.get("type") != "compaction":
                text = f"Invalid value: '{entry.get('type')}'. Supported values are: 'compaction'."
                raise bad(text, "context_management[0].type", "invalid_value")
            value = entry.get("compact_threshold")
            if value is not None and value < LEAST_THRESHOLD:
                text = f"Invalid 'compact_threshold': expected a value >= {LEAST_THRESHOLD}, got {value}."
                raise bad(text, "context_management[0].compact_threshold", "integer_below_min_value")
            return value
        return None

    def overflow(self, used: int, most: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input that does not fit; a reply without room is cut short instead."""
        del cap, context
        if used <= most:
            return None
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return bad(text, "input", _OVERFLOW)

    def refuse(self, refusal: Refusal, key: str = "0", asked: Asked | None = None) -> Wire:
        """Return what goes over the wire for a refusal.

        A stream begins before the prompt is measured: one that is too long is reported by events, under
        status 200.
        """
        if refusal.code != _OVERFLOW or asked is None or not asked.stream:
            return super().refuse(refusal, key, asked)
        pieces = _failed(key, asked, self.error(refusal))
        return Wire(
            200, tuple(pieces), content_type=EVENTS, headers=(*self._headers(key), *refusal.headers())
        )

    def error_event(self, inner: dict[str, Any], number: int) -> bytes:
        """Return the event by which a stream that has begun reports an error; `number` is its place."""
        return sse({"type": "error", "sequence_number": number, "error": inner}, "error")

    def body(self, made: FinishedReply) -> dict[str, Any]:
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

    def stream(self, made: FinishedReply) -> list[bytes]:
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
        done = self.body(made)
        events.add(f"response.{done['status']}", response=done)
        return events.found


def _reasoning(items: Sequence[Any], signer: Signer) -> None:
    """Check that encrypted reasoning is ours, and that items made with reasoning have it."""
    before: set[str] = set()
    for index, item in enumerate(items):
        item_id, kind = item.get("id"), item.get("type")
        if kind == "item_reference":
            raise Refusal(
                404,
                f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to false.",
                kind="invalid_request_error",
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
        before.add(item_id)
        needed = _reasoning_of(item_id)
        if needed is not None and needed not in before:
            text = (
                f"Item '{item_id}' of type '{kind}' was provided without its required "
                f"'reasoning' item: '{needed}'."
            )
            raise bad(text, "input")


def _reasoning_of(item_id: str) -> str | None:
    """The id of the reasoning that an item of ours was made with: its own id says so; None for none."""
    kind, _, rest = item_id.partition("_r")
    return f"rs_r{rest[:24]}" if kind in ("fc", "msg") and len(rest) >= 24 else None


def _said(problems: Sequence[Problem], items: Sequence[Any]) -> Refusal:
    """Return what the Responses API says of the first problem."""
    problem = problems[0]
    if problem.rule == "list":
        return bad(f"Invalid 'input': {EMPTY}", "input", "empty_array")
    if problem.rule in _WORDS:
        item_id = fields_of(items[problem.index]).get("id")
        return bad(
            _WORDS[problem.rule].format(name="".join(named(problem, [problem])), item_id=item_id), "input"
        )
    param = f"input[{problem.index}]" if problem.index >= 0 else "instructions"
    return bad(f"Invalid '{param}': {problem.text}.", param, "invalid_value")


# ---- a reply


class _Events:
    """Number the events of one stream."""

    def __init__(self) -> None:
        self.found: list[bytes] = []

    def add(self, kind: str, **fields: Any) -> None:
        numbered = {"type": kind, "sequence_number": len(self.found), **fields}
        self.found.append(sse(numbered, kind))


def _failed(key: str, asked: Asked, inner: dict[str, Any]) -> list[bytes]:
    """Return a stream that begins and then fails, as the API reports a prompt that is too long."""
    events = _Events()
    head: dict[str, Any] = _head(key, asked.model, asked) | {"output": [], "usage": None}
    events.add("response.created", response=head | {"status": "in_progress"})
    events.add("response.in_progress", response=head | {"status": "in_progress"})
    events.add("error", error=inner)
    reason = {"code": inner["code"], "message": inner["message"]}
    events.add("response.failed", response=head | {"status": "failed", "error": reason})
    return events.found


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
    if made.compacted is not None:
        items.append({"id": f"cmp_{made.key}", "type": "compaction", _ENCRYPTED: made.compacted})
    if made.thinking is not None:
        summary = [{"type": "summary_text", "text": made.thinking}] if made.thinking else []
        item: dict[str, Any] = {"id": f"rs_{mark}", "type": "reasoning", "summary": summary}
        if "reasoning.encrypted_content" in items_of(made.asked.body.get("include")):
            item[_ENCRYPTED] = made.signature
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
            **_named(call.name, made.asked.body.get("tools")),
        }
        for number, call in enumerate(made.calls)
    )
    return items


def _named(name: str, tools: Any) -> dict[str, str]:
    """Return how a call names its tool: one of a namespace, `SPACE__TOOL` in a script, by both names."""
    for space in map(fields_of, items_of(tools)):
        if space.get("type") == "namespace":
            for inner in map(fields_of, items_of(space.get("tools"))):
                if name == f"{space.get('name')}__{inner.get('name')}":
                    return {"name": str(inner["name"]), "namespace": str(space["name"])}
    return {"name": name}


def _item(events: _Events, index: int, item: dict[str, Any]) -> None:
    at = {"item_id": item["id"], "output_index": index}
    if item["type"] == "reasoning":
        events.add("response.output_item.added", output_index=index, item=item | {"summary": []})
        _summary(events, at, item)
    elif item["type"] == "message":
        begun: dict[str, Any] = item | {"status": "in_progress", "content": []}
        events.add("response.output_item.added", output_index=index, item=begun)
        _text(events, at | {"content_index": 0}, item["content"][0])
    elif item["type"] == "compaction":
        events.add("response.output_item.added", output_index=index, item=item)
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
