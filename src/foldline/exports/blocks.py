"""Messages as Anthropic content blocks, one by one: native ones as received, others from their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from foldline.core.log.entries import Edit
from foldline.core.log.messages import Media, Message, Opaque, Part, Thinking, ToolCall, ToolResult
from foldline.dialects.anthropic.write import ID_LIMIT, block_of, edit_native
from foldline.dialects.dialect import lost_fields
from foldline.dialects.edits import replacements, with_edits
from foldline.dialects.ids import Ids
from foldline.dialects.media import to_anthropic
from foldline.dialects.payload import parse
from foldline.dialects.values import ANTHROPIC, Losses

Block = dict[str, Any]


class Blocks:
    """Make the blocks of messages in order; call ids are valid and unique for Anthropic's API.

    Only call ids are remembered between messages.
    """

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._ids = Ids(limit=ID_LIMIT, everywhere=True, any_text=False)
        self._renamed = 0

    def of(self, message: Message, edits: Sequence[Edit]) -> str | list[Block]:
        """Return a message's content: text as it came, or blocks without blank texts ([]: none left)."""
        content = self._native(message, edits)
        if content is None:
            content = self._encoded(message, edits)
        if isinstance(content, str):
            return content if content.strip() else []
        if message.role == "assistant":
            self._ids.batch()
        blocks = [self._with_id(block) for block in content if not _blank(block)]
        changed = self._ids.renamed - self._renamed
        if changed:
            self._renamed = self._ids.renamed
            self._losses.add("call ids changed", changed)
        return blocks

    def _native(self, message: Message, edits: Sequence[Edit]) -> str | list[Block] | None:
        """Return the content as received, edited; None for a message of another dialect."""
        if message.native is None or message.native.dialect != ANTHROPIC:
            return None
        body = parse(message.native.raw)
        if edits:
            body = edit_native(body, replacements(edits))
        content = body.get("content") if body else None
        return content if isinstance(content, str) else cast("list[Block]", content or [])

    def _encoded(self, message: Message, edits: Sequence[Edit]) -> str | list[Block]:
        lost_fields(message.native, self._losses)
        kept = with_edits(message, edits)
        parts = kept.parts if kept is not None else ()
        blocks: list[Block] = []
        for part in parts:
            self._note(part)
            for inner in part.content if isinstance(part, ToolResult) else ():
                self._note(inner)
            if (block := block_of(part)) is not None:
                blocks.append(block)
        if len(blocks) == 1 and set(blocks[0]) == {"type", "text"}:
            return str(blocks[0]["text"])
        return blocks

    def _note(self, part: Part) -> None:
        """Count a part that the Messages API does not accept."""
        if isinstance(part, Media) and to_anthropic(part) is None:
            self._losses.add(f"{part.kind} left out")
        elif isinstance(part, ToolCall) and isinstance(part.arguments, str):
            self._losses.add("call arguments that are not a JSON object wrapped in one")
        elif isinstance(part, Thinking) and part.signature is None:
            self._losses.add("unsigned thinking left out")
        elif isinstance(part, Opaque) and block_of(part) is None:
            self._losses.add(f"{part.dialect} {part.kind} left out")

    def _with_id(self, block: Block) -> Block:
        kind = block.get("type")
        if kind == "tool_use":
            return _changed(block, "id", self._ids.call(str(block.get("id"))))
        if kind == "tool_result":
            return _changed(block, "tool_use_id", self._ids.result(str(block.get("tool_use_id"))))
        return block


def result_text(block: Block, losses: Losses) -> str:
    """Return the text of a result block, for formats whose results are text."""
    content = block.get("content")
    if not isinstance(content, list):
        return str(content or "")
    inner = cast("list[Block]", content)
    for one in inner:
        if one.get("type") != "text":
            losses.add(f"{one.get('type')} in a result left out")
    return "\n".join(str(one.get("text", "")) for one in inner if one.get("type") == "text")


def _changed(block: Block, key: str, value: str) -> Block:
    return block if block.get(key) == value else {**block, key: value}


def _blank(block: Block) -> bool:
    text = block.get("text")
    return block.get("type") == "text" and isinstance(text, str) and not text.strip()
