"""Anthropic's Messages API: what it refuses, in its words, and the form of its replies.

The texts are those of error reports in public issue trackers (2025 and 2026); where none was found the field
is named in the form of the API's other messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from foldline.core.log.codec import encode
from foldline.core.log.messages import Usage
from foldline.dialects import get
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.values import ANTHROPIC, Problem
from foldline.testing.answers import FinishedReply, Refusal, fragments
from foldline.testing.apis.base import ModelApi
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer
from foldline.testing.wire import sse

THINKING_LEAST: Final = 1_024  # the smallest budget for thinking
_STATUSES: Final[dict[int, tuple[str, str | None, str]]] = {
    400: ("invalid_request_error", None, "Invalid request"),
    401: ("authentication_error", None, "invalid x-api-key"),
    403: ("permission_error", None, "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", None, "Not Found"),
    413: ("request_too_large", None, "Request exceeds the maximum size"),
    429: (
        "rate_limit_error",
        None,
        (
            "This request would exceed your organization's rate limit of 50,000 input tokens per minute. For "
            "details, refer to: https://docs.claude.com/en/api/rate-limits."
        ),
    ),
    500: ("api_error", None, "Internal server error"),
    503: ("overloaded_error", None, "Overloaded"),
    504: ("timeout_error", None, "Request timed out"),
    529: ("overloaded_error", None, "Overloaded"),
}
_STOPS: Final = {
    "end": "end_turn",
    "tools": "tool_use",
    "length": "max_tokens",
    "refused": "refusal",
    "paused": "pause_turn",
}
_QUOTED: Final = re.compile(r"'([^']*)'")
_ID: Final = "String should match pattern '^[a-zA-Z0-9_-]+$'"
_NAME: Final = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"

# Rules that name a block of one type and a field of it: (type, field, words).
_FIELDS: Final = {
    "thinking-signature": ("thinking", ".thinking.signature", "Field required"),
    "call-id": ("tool_use", ".tool_use.id", _ID),
    "call-name": ("tool_use", ".tool_use.name", _NAME),
    "call-input": ("tool_use", ".tool_use.input", "Input should be a valid dictionary"),
    "result-id": ("tool_result", ".tool_result.tool_use_id", _ID),
    "error-result-empty": ("tool_result", ".tool_result", "content cannot be empty if `is_error` is true"),
    "error-result-text": (
        "tool_result",
        ".tool_result",
        'all content must be type "text" if `is_error` is true',
    ),
    "image-source": (
        "image",
        ".image.source",
        "Input should be a valid dictionary or object to extract fields from",
    ),
    "document-source": ("document", ".document.source", "Input should be a valid dictionary"),
}
# Rules about a message, said without looking at its blocks.
_PLAIN: Final = {
    "text-surrogate": "The request body is not valid JSON: no low surrogate in string",
    "first-user": 'messages: first message must use the "user" role',
    "trailing-space": "messages: final assistant content cannot end with trailing whitespace",
    "thinking-role": "messages.{n}: `thinking` blocks can only be in `assistant` messages",
    "call-role": "messages.{n}: `tool_use` blocks can only be in `assistant` messages",
    "result-role": "messages.{n}: `tool_result` blocks can only be in `user` messages",
    "content-type": "messages.{n}.content: Input should be a valid list",
    "message": "messages.{n}: Input should be a valid dictionary",
    "thinking-last": "messages.{n}: The final block in an assistant message cannot be `thinking`.",
    "content-empty": "messages.{n}: all messages must have non-empty content except for the optional final "
    "assistant message",
}


class AnthropicApi(ModelApi):
    """The Messages API."""

    dialect = ANTHROPIC
    statuses = _STATUSES
    request_id = "request-id"
    call_prefix = "toolu"
    no_key = "x-api-key header is required"
    no_model = "model: Field required"
    bad_json = "The request body is not valid JSON: {text}"

    def bad(self, text: str) -> Refusal:
        """Return the refusal of a bad request."""
        return _bad(text)

    def unknown_model(self, model: str) -> Refusal:
        """Return the refusal of a model that the server does not have."""
        return Refusal(404, f"model: {model}", kind="not_found_error")

    def check(self, asked: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check parameters, messages, thinking and signatures."""
        body = asked.body
        for key in ("messages", "max_tokens"):
            if body.get(key) is None:
                raise _bad(f"{key}: Field required")
        cap = body["max_tokens"]
        if not isinstance(cap, int) or isinstance(cap, bool):
            raise _bad("max_tokens: Input should be a valid integer")
        if cap < 1:
            raise _bad("max_tokens: must be greater than or equal to 1")
        if not isinstance(body["messages"], list):
            raise _bad("messages: Input should be a valid list")
        problems = get(ANTHROPIC).validate(asked.messages, asked.system)
        words = _say(problems, asked.messages) if problems else None
        if words is not None:
            raise _bad(words)
        _thinking(asked, cap)
        _signatures(asked, signer)
        if asked.messages[-1].get("role") == "assistant" and (asked.thinking or not prefill):
            raise _bad(
                "This model does not support assistant message prefill. The conversation must end with a "
                "user message."
            )

    def too_large(self, asked: Asked, cap: int, most: int) -> Refusal:
        """Return the refusal of a cap of the reply above the model's limit."""
        limit = f"max_tokens: {cap} > {most}, which is the maximum allowed number of output tokens for"
        return _bad(f"{limit} {asked.model}")

    def overflow(self, used: int, most: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input, or of input and cap, that do not fit; None where they do."""
        if used > most:
            return _bad(f"prompt is too long: {used} tokens > {most} maximum")
        if used + cap > context:
            return _bad(
                f"input length and `max_tokens` exceed context limit: {used} + {cap} > {context}, "
                "decrease input length or `max_tokens` and try again"
            )
        return None

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """Return the inner object of an error's body."""
        error = super().error(refusal)
        return {"type": error["type"], "message": error["message"]}

    def error_body(self, refusal: Refusal, request_id: str) -> dict[str, Any]:
        """Return the JSON body of an error."""
        return {"type": "error", "error": self.error(refusal), "request_id": request_id}

    def error_event(self, inner: dict[str, Any], number: int) -> bytes:
        """Return the event by which a stream that has begun reports an error."""
        del number
        return _event("error", error=inner)

    def body(self, made: FinishedReply) -> dict[str, Any]:
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

    def stream(self, made: FinishedReply) -> list[bytes]:
        """Return the events of a reply: message_start to message_stop."""
        start: dict[str, Any] = self.body(made) | {
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


def _bad(text: str) -> Refusal:
    return Refusal(400, text, kind="invalid_request_error")


def _signatures(asked: Asked, signer: Signer) -> None:
    places = signer.bad(asked.system, asked.messages)
    if not places:
        return
    n, place = places[0]
    last = max(i for i, message in enumerate(asked.messages) if message.get("role") == "assistant")
    if n == last and signer.ours(asked.messages[n]["content"][place]):
        raise _bad(
            f"messages.{n}.content.{place}: `thinking` or `redacted_thinking` blocks in the latest "
            "assistant "
            "message cannot be modified. These blocks must remain as they were in the original response."
        )
    raise _bad(f"messages.{n}.content.{place}: Invalid `signature` in `thinking` block")


def _thinking(asked: Asked, cap: int) -> None:
    """Check a request with thinking: it needs a budget, and an open tool loop must begin with thinking."""
    thinking = fields_of(asked.body.get("thinking"))
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int):
        raise _bad("thinking.enabled.budget_tokens: Field required")
    if budget < THINKING_LEAST:
        raise _bad(
            f"thinking.enabled.budget_tokens: Input should be greater than or equal to {THINKING_LEAST}"
        )
    if budget >= cap:
        raise _bad("`max_tokens` must be greater than `thinking.budget_tokens`.")
    n = _open_loop(asked.messages)
    if n is None:
        return
    content = asked.messages[n].get("content")
    first: Any = items_of(content)[0].get("type") if isinstance(content, list) else "text"
    if first not in ("thinking", "redacted_thinking"):
        raise _bad(
            f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. "
            "When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding "
            "the "
            "lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable "
            "`thinking`."
        )


def _open_loop(messages: Sequence[Any]) -> int | None:
    """The assistant message whose results end the list, or None where the list ends otherwise."""
    blocks = items_of(messages[-1].get("content"))
    if len(messages) < 2 or not any(block.get("type") == "tool_result" for block in blocks):
        return None
    return len(messages) - 2 if messages[-2].get("role") == "assistant" else None


# ---- the words for what a rule of the dialect finds


def _say(problems: Sequence[Problem], messages: Sequence[Any]) -> str | None:
    """Return what the API says of the first problem; None where the API would take the list all the same."""
    for problem in problems:
        if problem.rule == "content-empty" and _final_assistant(problem, messages):
            continue
        return _one(problem, problems, messages)
    return None


def _one(problem: Problem, problems: Sequence[Problem], messages: Sequence[Any]) -> str:
    n, rule = problem.index, problem.rule
    if rule == "list":
        return "messages: at least one message is required"
    if rule == "cache-marks":
        found = problem.text.partition(" ")[0]
        return f"A maximum of 4 blocks with cache_control may be provided. Found {found}."
    if n < 0:
        return _system(problem)
    if rule in _PLAIN:
        return _PLAIN[rule].format(n=n)
    if rule in _FIELDS:
        kind, field, words = _FIELDS[rule]
        return f"messages.{n}.content.{_place(messages[n], kind)}{field}: {words}"
    if rule == "role":
        return _role(messages[n])
    if rule == "text-empty":
        return _empty(messages[n])
    if rule in ("result-missing", "results-first"):
        return _missing(problem, problems, messages)
    return _paired(problem, messages)


def _paired(problem: Problem, messages: Sequence[Any]) -> str:
    n, rule = problem.index, problem.rule
    named = _QUOTED.search(problem.text)
    call_id = named[1] if named else ""
    if rule == "result-orphan":
        place = _place(messages[n], "tool_result", call_id)
        return (
            f"messages.{n}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
            f"{call_id}. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    if rule == "result-duplicate":
        place = _place(messages[n], "tool_result", call_id, last=True)
        return (
            f"messages.{n}.content.{place}: each tool_use must have a single result. "
            f"Found multiple `tool_result` blocks with id: {call_id}"
        )
    if rule == "call-duplicate":
        place = _place(messages[n], "tool_use", call_id, last=True)
        return f"messages.{n}.content.{place}: `tool_use` ids must be unique"
    if rule == "server-result-orphan":
        kind = problem.text.split(" ", 1)[0]
        place = _place(messages[n], kind, call_id)
        return (
            f"messages.{n}.content.{place}: unexpected `tool_use_id` found in `{kind}` blocks: {call_id}. "
            f"Each `{kind}` block must have a corresponding `server_tool_use` block before it."
        )
    return f"messages.{n}.content: {problem.text}"


def _missing(problem: Problem, problems: Sequence[Problem], messages: Sequence[Any]) -> str:
    """Return the calls without results right after them; results behind other blocks count as missing."""
    if problem.rule == "results-first":
        n = problem.index - 1
        blocks = [block for block in _blocks_in(messages[n + 1]) if block.get("type") == "tool_result"]
        ids = [str(block.get("tool_use_id")) for block in blocks]
    else:
        n = problem.index
        same = [p for p in problems if p.rule == "result-missing" and p.index == n]
        ids = [found[1] for p in same if (found := _QUOTED.search(p.text))]
    return (
        f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
        "message."
    )


def _role(message: Any) -> str:
    role = fields_of(message).get("role")
    return (
        f'messages: Unexpected role "{role}". The Messages API accepts a top-level `system` parameter, '
        'not "system" as an input message role.'
        if role == "system"
        else f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".'
    )


def _empty(message: Any) -> str:
    texts = [block.get("text") for block in _blocks_in(message) if block.get("type") == "text"]
    blank = all(texts) and any(isinstance(text, str) and not text.strip() for text in texts)
    what = "contain non-whitespace text" if blank else "be non-empty"
    return f"messages: text content blocks must {what}"


def _system(problem: Problem) -> str:
    if problem.rule == "text-empty":
        return "system: text content blocks must be non-empty"
    return "system: Input should be a valid string or list of text blocks"


def _final_assistant(problem: Problem, messages: Sequence[Any]) -> bool:
    return fields_of(messages[-1]).get("role") == "assistant" and problem.index == len(messages) - 1


def _blocks_in(message: Any) -> list[dict[str, Any]]:
    return [fields_of(block) for block in items_of(fields_of(message).get("content"))]


def _place(message: Any, kind: str, call_id: str = "", *, last: bool = False) -> int:
    """Return the index of the block of a type (with an id) in a message; 0 if there is none."""
    found = [
        place
        for place, block in enumerate(_blocks_in(message))
        if block.get("type") == kind and call_id in ("", block.get("tool_use_id"), block.get("id"))
    ]
    return found[-1 if last else 0] if found else 0


# ---- a reply


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
