"""Messages of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.core.log.messages import Message, Opaque
from foldline.dialects.anthropic.blocks import BLOCKS
from foldline.dialects.anthropic.form import SERVER_CALLS, abandoned_calls, check_message, unanswered
from foldline.dialects.block_dialect import BlockDialect
from foldline.dialects.dialect import replied
from foldline.dialects.forms import as_text
from foldline.dialects.payload import (
    Fields,
    block_types,
    fields_of,
    is_blank_text,
    items_of,
    peek,
    read,
    read_usage,
)
from foldline.dialects.values import ANTHROPIC, Problem

COMPACT = "compact_20260112"
LEAST_TRIGGER = 50_000  # input tokens; the API refuses a smaller trigger (platform.claude.com, "Compaction")

_STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "pause_turn": "tools",  # the server paused while it ran its own tools
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "error",
}
_OWN_BLOCKS = frozenset(
    {
        "tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use",
        "search_result", "mcp_tool_use", "mcp_tool_result", "container_upload", "compaction",
    }
)  # fmt: skip


class AnthropicDialect(BlockDialect):
    """The dialect `anthropic`."""

    name = ANTHROPIC
    message_check = staticmethod(check_message)
    form = BLOCKS
    compaction_beta = "compact-2026-01-12"

    def decode_reply(self, reply: Any) -> Message:
        """Read a complete reply: role and content in a form to send back, usage, model and stop reason.

        Empty text blocks, which the API sends but rejects, are left out.
        """
        body, _ = read(reply)
        if body.get("type") != "message" and "stop_reason" not in body and "usage" not in body:
            return self.decode(reply)
        content = body.get("content")
        if isinstance(content, list):
            content = [block for block in items_of(content) if not is_blank_text(block)]
        usage = read_usage(
            body.get("usage"),
            prompt="input_tokens",
            output="output_tokens",
            reads="cache_read_input_tokens",
            writes="cache_creation_input_tokens",
            hourly="cache_creation.ephemeral_1h_input_tokens",
            disjoint=True,
        )
        message = self.decode({"role": body.get("role", "assistant"), "content": content})
        return replied(message, usage, body.get("model"), _STOPS.get(str(body.get("stop_reason"))))

    def recognises(self, payload: Any) -> bool:
        """Return whether a message is valid in this dialect only."""
        return bool(block_types(payload) & _OWN_BLOCKS)

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a Message of the API."""
        return peek(payload, "type") == "message" and peek(payload, "usage") is not None

    def compaction(self, tokens: int) -> Fields:
        """Return request fields that make the server compact an input of more than `tokens`."""
        if tokens < LEAST_TRIGGER:
            return {}
        trigger = {"type": "input_tokens", "value": tokens}
        return {"context_management": {"edits": [{"type": COMPACT, "trigger": trigger}]}}

    def is_open(self, message: Message) -> bool:
        """Return whether a message has an open call of a server tool: a later user message drops the call."""
        return bool(unanswered(part.data for part in message.parts if isinstance(part, Opaque)))

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Also check that results of server tools follow their calls, and come before the next user text."""
        super()._check(problems, bodies, last)
        calls: set[Any] = set()
        for index, body in bodies:
            blocks = items_of(body.get("content")) if body.get("role") == "assistant" else []
            for block in map(fields_of, blocks):
                kind, call_id = str(block.get("type")), block.get("tool_use_id")
                if kind in SERVER_CALLS:
                    calls.add(as_text(block.get("id")))
                elif kind.endswith("_tool_result") and as_text(call_id) not in calls:
                    text = f"no server tool call before the {kind} {call_id!r}"
                    problems.append(Problem(index, "server-result-orphan", text))
        for place, call_ids in abandoned_calls([body for _, body in bodies]).items():
            text = f"no results for the server tool calls {', '.join(call_ids)} before the next user message"
            problems.append(Problem(bodies[place][0], "server-result-missing", text))
