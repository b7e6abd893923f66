"""Native Anthropic messages as the API takes them: what it refuses in a message as received is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from foldline.core.measure.tokens import NO_OUTPUT
from foldline.dialects.mending import items_of
from foldline.dialects.values import Losses

Block = dict[str, Any]


def request(messages: Sequence[Block], losses: Losses) -> list[Block]:
    """Return messages as a request takes them: see `sendable`; results of one turn stand in one message.

    A message that says nothing is left out. The API wants all results of a turn in the next message.
    """
    found: list[Block] = []
    for message in messages:
        body = sendable(message, losses)
        before = found[-1] if found else {}
        if not blocks_of(body):
            losses.add("empty messages left out")
        elif before.get("role") == "user" and body.get("role") == "user" and has_results(body):
            found[-1] = {**before, "content": _results_first([*blocks_of(before), *blocks_of(body)])}
        else:
            found.append(body)
    return found


def blocks_of(body: Block) -> list[Any]:
    """Return the blocks of a message; a string is one text block."""
    content = body.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return list(cast("list[Any]", content)) if isinstance(content, list) else []


def has_results(body: Block) -> bool:
    """Return whether a message holds results of calls."""
    return any(_is_result(block) for block in blocks_of(body))


def _results_first(blocks: list[Any]) -> list[Any]:
    """Return blocks with the results before all others, each in its order."""
    return sorted(blocks, key=lambda block: not _is_result(block))


def sendable(body: Block, losses: Losses) -> Block:
    """Return a message without thinking that has no signature, its results first and none of them empty."""
    content = items_of(body.get("content"))
    blocks = [_said(block) for block in content if not _is_refused(block)]
    if len(blocks) < len(content):
        losses.add("empty texts and thinking without a signature left out", len(content) - len(blocks))
    if body.get("role") == "user":
        blocks = _results_first(blocks)
    return body if blocks == content else {**body, "content": blocks}


def _said(block: Any) -> Any:
    """Return a block whose result, if it is one, says something in each of its texts."""
    if not _is_result(block):
        return block
    content = block.get("content")
    if isinstance(content, list):
        content = [inner for inner in cast("list[Any]", content) if not _is_refused(inner)]
    return block if content and content == block["content"] else {**block, "content": content or NO_OUTPUT}


def _is_result(block: Any) -> bool:
    return isinstance(block, dict) and cast("Block", block).get("type") == "tool_result"


def _is_refused(block: Any) -> bool:
    """Return whether the API refuses a block: a text of nothing but space, thinking without a signature."""
    fields = cast("Block", block) if isinstance(block, dict) else {}
    if fields.get("type") == "text":
        return not str(fields.get("text") or "").strip()
    return fields.get("type") == "thinking" and not fields.get("signature")
