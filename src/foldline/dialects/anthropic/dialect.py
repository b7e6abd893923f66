"""Messages of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.core.log.messages import Message, Opaque
from foldline.dialects.anthropic.blocks import BLOCKS
from foldline.dialects.anthropic.form import SERVER_CALLS, given_up, look, unanswered
from foldline.dialects.block_dialect import BlockDialect
from foldline.dialects.dialect import replied
from foldline.dialects.forms import as_text
from foldline.dialects.payload import Fields, block_types, fields_of, items_of, peek, read, read_usage
from foldline.dialects.values import ANTHROPIC, Problem

COMPACT = "compact_20260112"
LEAST_TRIGGER = 50_000  # input tokens; the API refuses a smaller trigger (platform.claude.com, "Compaction")

_STOPS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "pause_turn": "tools",  # the server paused in the middle of its own tools
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
    looked = staticmethod(look)
    form = BLOCKS
    compaction_beta = "compact-2026-01-12"

    def decode_reply(self, reply: Any) -> Message:
        """Read a whole reply: its role and content in the form to send back, usage, model, why it stopped.

        Empty text blocks, which the API sends but does not take back, are left out.
        """
        body, _ = read(reply)
        if body.get("type") != "message" and "stop_reason" not in body and "usage" not in body:
            return self.decode(reply)
        content = body.get("content")
        if isinstance(content, list):
            content = [block for block in items_of(content) if not _is_empty_text(block)]
        usage = read_usage(
            body.get("usage"),
            given="input_tokens",
            output="output_tokens",
            cached="cache_read_input_tokens",
            written="cache_creation_input_tokens",
            hour="cache_creation.ephemeral_1h_input_tokens",
            apart=True,
        )
        message = self.decode({"role": body.get("role", "assistant"), "content": content})
        return replied(message, usage, body.get("model"), _STOPS.get(str(body.get("stop_reason"))))

    def recognises(self, payload: Any) -> bool:
        """Return whether a message can only be in this dialect."""
        return bool(block_types(payload) & _OWN_BLOCKS)

    def is_reply(self, payload: Any) -> bool:
        """Return whether this is a Message of the API."""
        return peek(payload, "type") == "message" and peek(payload, "usage") is not None

    def compaction(self, tokens: int) -> Fields:
        """Return the fields that have the server compact an input of more than so many tokens."""
        if tokens < LEAST_TRIGGER:
            return {}
        trigger = {"type": "input_tokens", "value": tokens}
        return {"context_management": {"edits": [{"type": COMPACT, "trigger": trigger}]}}

    def is_open(self, message: Message) -> bool:
        """Return whether a message has a call of a server tool without its result: words drop the call."""
        return bool(unanswered(part.data for part in message.parts if isinstance(part, Opaque)))

    def _check(self, problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
        """Check also that a server tool's result has a call before it, and a call its result before words."""
        super()._check(problems, bodies, last)
        calls: set[Any] = set()
        for index, body in bodies:
            for block in map(
                fields_of, items_of(body.get("content")) if body.get("role") == "assistant" else ()
            ):
                kind, call_id = str(block.get("type")), block.get("tool_use_id")
                if kind in SERVER_CALLS:
                    calls.add(as_text(block.get("id")))
                elif kind.endswith("_tool_result") and as_text(call_id) not in calls:
                    text = f"{kind} {call_id!r} has no server tool call before it"
                    problems.append(Problem(index, "server-result-orphan", text))
        for place, call_ids in given_up([body for _, body in bodies]).items():
            text = f"the server tool calls {', '.join(call_ids)} have no result before the user's words"
            problems.append(Problem(bodies[place][0], "server-result-missing", text))


def _is_empty_text(block: Any) -> bool:
    text = peek(block, "text")
    return peek(block, "type") == "text" and isinstance(text, str) and not text.strip()
