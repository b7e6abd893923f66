"""Anthropic's Messages API: its refusals, in its own words, and the format of its replies.

The texts are from error reports in public issue trackers (2025 and 2026). Where none was found, the text has
the form of the API's other messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from foldline.core.log.codec import encode
from foldline.core.log.messages import Usage
from foldline.dialects import get
from foldline.dialects.anthropic.dialect import COMPACT, LEAST_TRIGGER
from foldline.dialects.cache_marks import MARKS, marks
from foldline.dialects.payload import fields_of, items_of
from foldline.dialects.values import ANTHROPIC, Problem
from foldline.testing.answers import FinishedReply, Refusal, fragments
from foldline.testing.apis.base import ModelApi, named
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer
from foldline.testing.wire import sse

MIN_THINKING: Final = 1_024  # the smallest budget for thinking
CLEARING: Final = "context-management-2025-06-27"  # the beta header of the edits `CLEARS`
CLEARS: Final = ("clear_thinking_20251015", "clear_tool_uses_20250919")
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
_ID: Final = "String should match pattern '^[a-zA-Z0-9_-]+$'"
_NAME: Final = "String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
_AT: Final = "messages.{n}.content.{place}"
# The API's texts for broken rules of the dialect; `place` is the index of the block, `ids` those it names.
_TEXTS: Final = {
    "list": "messages: at least one message is required",
    "system": "system: Input should be a valid string or list of text blocks",
    "system-empty": "system: text content blocks must be non-empty",
    "text-surrogate": "The request body is not valid JSON: no low surrogate in string",
    "message": "messages.{n}: Input should be a valid dictionary",
    "role": 'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".',
    "role-system": 'messages: Unexpected role "system". The Messages API accepts a top-level `system` '
    'parameter, not "system" as an input message role.',
    "first-user": 'messages: first message must use the "user" role',
    "content-type": "messages.{n}.content: Input should be a valid list",
    "content-empty": "messages.{n}: all messages must have non-empty content except for the optional final "
    "assistant message",
    "text-empty": "messages: text content blocks must be non-empty",
    "text-blank": "messages: text content blocks must contain non-whitespace text",
    "trailing-space": "messages: final assistant content cannot end with trailing whitespace",
    "thinking-role": "messages.{n}: `thinking` blocks can only be in `assistant` messages",
    "thinking-last": "messages.{n}: The final block in an assistant message cannot be `thinking`.",
    "thinking-signature": f"{_AT}.thinking.signature: Field required",
    "call-role": "messages.{n}: `tool_use` blocks can only be in `assistant` messages",
    "call-id": f"{_AT}.tool_use.id: {_ID}",
    "call-name": f"{_AT}.tool_use.name: {_NAME}",
    "call-input": f"{_AT}.tool_use.input: Input should be a valid dictionary",
    "call-duplicate": f"{_AT}: `tool_use` ids must be unique",
    "result-role": "messages.{n}: `tool_result` blocks can only be in `user` messages",
    "result-id": f"{_AT}.tool_result.tool_use_id: {_ID}",
    "result-missing": "messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately "
    "after: {ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    "result-orphan": f"{_AT}: unexpected `tool_use_id` found in `tool_result` blocks: {{ids}}. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
    "result-duplicate": f"{_AT}: each tool_use must have a single result. "
    "Found multiple `tool_result` blocks with id: {ids}",
    "error-result-empty": f"{_AT}.tool_result: content cannot be empty if `is_error` is true",
    "error-result-text": f'{_AT}.tool_result: all content must be type "text" if `is_error` is true',
    "image-source": f"{_AT}.image.source: Input should be a valid dictionary",
    "document-source": f"{_AT}.document.source: Input should be a valid dictionary",
}
# types of blocks, by a rule's first word
_KINDS: Final = {"call": "tool_use", "result": "tool_result", "error": "tool_result"}


class AnthropicApi(ModelApi):
    """The Messages API."""

    dialect = ANTHROPIC
    tool_name = r"[a-zA-Z0-9_-]{1,128}"
    statuses = _STATUSES
    request_id = "request-id"
    call_prefix = "toolu"
    no_key = "x-api-key header is required"
    no_model = "model: Field required"
    bad_json = "The request body is not valid JSON: {text}"

    def unknown_model(self, model: str) -> Refusal:
        """Return the refusal of a model that the server does not have."""
        return Refusal(404, f"model: {model}")

    def check(self, request: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check parameters, messages, thinking and signatures."""
        body = request.body
        for key in ("messages", "max_tokens"):
            if body.get(key) is None:
                raise Refusal(400, f"{key}: Field required")
        cap = body["max_tokens"]
        if not isinstance(cap, int) or isinstance(cap, bool):
            raise Refusal(400, "max_tokens: Input should be a valid integer")
        if cap < 1:
            raise Refusal(400, "max_tokens: must be greater than or equal to 1")
        if not isinstance(body["messages"], list):
            raise Refusal(400, "messages: Input should be a valid list")
        problems = get(ANTHROPIC).validate(request.messages, request.system)
        for problem in problems:
            if problem.rule != "cache-marks" and not _may_be_empty(problem, request.messages):
                raise Refusal(400, _problem_text(problem, problems, request.messages))
        count = marks(request.messages, request.system, request.tools) + bool(body.get("cache_control"))
        if count > MARKS:
            text = f"A maximum of {MARKS} blocks with cache_control may be provided. Found {count}."
            raise Refusal(400, text)
        _check_thinking(request, cap)
        _check_signatures(request, signer)
        if request.messages[-1].get("role") == "assistant" and (request.thinking or not prefill):
            raise Refusal(
                400,
                "This model does not support assistant message prefill. The conversation must end with a "
                "user message.",
            )

    def compacts_past(self, request: Asked) -> int | None:
        """Return the trigger of a `compact_20260112` edit; each edit is valid only with its beta header."""
        management = request.body.get("context_management")
        if management is None:
            return None
        betas = request.headers.get("anthropic-beta", "").split(",")
        allowed = [COMPACT] if get(ANTHROPIC).compaction_beta in betas else []
        allowed += CLEARS if CLEARING in betas else []
        if not allowed:
            raise Refusal(400, "context_management: Extra inputs are not permitted")
        for edit in map(fields_of, items_of(fields_of(management).get("edits"))):
            if edit.get("type") not in allowed:
                raise Refusal(400, f"context_management.edits: unexpected type '{edit.get('type')}'")
            if edit["type"] in CLEARS:  # Claude Code sends these; this server clears nothing
                continue
            value = fields_of(edit.get("trigger")).get("value", 150_000)
            if value < LEAST_TRIGGER:
                field = "context_management.edits.0.trigger.value"
                raise Refusal(400, f"{field}: must be at least {LEAST_TRIGGER} input tokens")
            return value
        return None

    def too_large(self, request: Asked, cap: int, limit: int) -> Refusal:
        """Return the refusal of a `max_tokens` above the model's limit."""
        return Refusal(
            400,
            f"max_tokens: {cap} > {limit}, which is the maximum allowed number of output tokens for "
            f"{request.model}",
        )

    def overflow(self, used: int, limit: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input, or of input and `max_tokens`, that does not fit, or None."""
        if used > limit:
            return Refusal(400, f"prompt is too long: {used} tokens > {limit} maximum")
        if used + cap > context:
            return Refusal(
                400,
                f"input length and `max_tokens` exceed context limit: {used} + {cap} > {context}, "
                "decrease input length or `max_tokens` and try again",
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
        """Return the event that reports an error in a stream that has begun."""
        del number
        return _event("error", error=inner)

    def body(self, reply: FinishedReply) -> dict[str, Any]:
        """Return the Message of a reply."""
        return {
            "id": f"msg_{reply.key}",
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": _blocks(reply),
            "stop_reason": _STOPS[reply.stop],
            "stop_sequence": None,
            "usage": _usage(reply.usage),
        }

    def stream(self, reply: FinishedReply) -> list[bytes]:
        """Return the events of a reply: message_start to message_stop."""
        start: dict[str, Any] = self.body(reply) | {
            "content": [],
            "stop_reason": None,
            "usage": _usage(reply.usage) | {"output_tokens": 1},
        }
        events = [_event("message_start", message=start)]
        for index, block in enumerate(_blocks(reply)):
            events.extend(_block(index, block))
            if index == 0:
                events.insert(2, _event("ping"))
        delta = {"stop_reason": _STOPS[reply.stop], "stop_sequence": None}
        usage = _usage(reply.usage)
        del usage["service_tier"]
        events.append(_event("message_delta", delta=delta, usage=usage))
        events.append(_event("message_stop"))
        return events


def _check_signatures(request: Asked, signer: Signer) -> None:
    places = signer.bad(request.system, request.messages)
    if not places:
        return
    n, place = places[0]
    last = max(i for i, message in enumerate(request.messages) if message.get("role") == "assistant")
    if n == last and signer.ours(request.messages[n]["content"][place]):
        raise Refusal(
            400,
            f"messages.{n}.content.{place}: `thinking` or `redacted_thinking` blocks in the latest assistant "
            "message cannot be modified. These blocks must remain as they were in the original response.",
        )
    raise Refusal(400, f"messages.{n}.content.{place}: Invalid `signature` in `thinking` block")


def _check_thinking(request: Asked, cap: int) -> None:
    """Refuse thinking without a valid budget, and an open tool loop that does not begin with thinking."""
    thinking = fields_of(request.body.get("thinking"))
    if thinking.get("type") != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int):
        raise Refusal(400, "thinking.enabled.budget_tokens: Field required")
    if budget < MIN_THINKING:
        raise Refusal(
            400, f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_THINKING}"
        )
    if budget >= cap:
        raise Refusal(400, "`max_tokens` must be greater than `thinking.budget_tokens`.")
    n = _open_loop(request.messages)
    if n is None:
        return
    content = request.messages[n].get("content")
    first: Any = items_of(content)[0].get("type") if isinstance(content, list) else "text"
    if first not in ("thinking", "redacted_thinking"):
        raise Refusal(
            400,
            f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
            "(preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this "
            "requirement, disable `thinking`.",
        )


def _open_loop(messages: Sequence[Any]) -> int | None:
    """Return the index of the assistant message whose results end the list; None if it ends otherwise."""
    blocks = items_of(messages[-1].get("content"))
    if len(messages) < 2 or not any(block.get("type") == "tool_result" for block in blocks):
        return None
    return len(messages) - 2 if messages[-2].get("role") == "assistant" else None


def _problem_text(problem: Problem, problems: Sequence[Problem], messages: Sequence[Any]) -> str:
    """Return the API's text for a problem."""
    rule, n = problem.rule, problem.index
    message = fields_of(messages[n]) if n >= 0 else {}
    blocks = [fields_of(block) for block in items_of(message.get("content"))]
    ids = named(problem, problems)
    if rule == "results-first":  # to the API these results are missing
        rule, n = "result-missing", n - 1
        ids = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
    elif rule == "role" and message.get("role") == "system":
        rule = "role-system"
    elif rule == "text-empty" and n < 0:
        rule = "system-empty"
    elif rule == "text-empty" and all(block.get("text") for block in blocks if block.get("type") == "text"):
        rule = "text-blank"
    kind = _KINDS.get(first := rule.partition("-")[0], first)
    places = [
        place
        for place, block in enumerate(blocks)
        if block.get("type") == kind and (not ids or ids[0] in (block.get("tool_use_id"), block.get("id")))
    ]
    place = places[-1 if rule.endswith("-duplicate") else 0] if places else 0
    text = _TEXTS.get(rule, "messages.{n}.content: {text}")
    return text.format(n=n, place=place, ids=", ".join(ids), role=message.get("role"), text=problem.text)


def _may_be_empty(problem: Problem, messages: Sequence[Any]) -> bool:
    """Return whether the problem is an empty last assistant message, which the API accepts."""
    is_last = problem.rule == "content-empty" and problem.index == len(messages) - 1
    return is_last and fields_of(messages[-1]).get("role") == "assistant"


# ---- a reply


def _event(kind: str, **fields: Any) -> bytes:
    return sse({"type": kind, **fields}, kind)


def _blocks(reply: FinishedReply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.compacted is not None:
        blocks.append({"type": "compaction", "content": reply.compacted})
    if reply.thinking is not None:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": reply.signature})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks.extend(
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        for call in reply.calls
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
    elif kind == "compaction":
        empty = {"type": "compaction", "content": None}
        deltas = [{"type": "compaction_delta", "content": block["content"]}]
    else:
        empty = block | {"input": {}}
        arguments = encode(block["input"]).decode()
        deltas = [
            {"type": "input_json_delta", "partial_json": piece} for piece in ["", *fragments(arguments)]
        ]
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
