"""Parts -> Anthropic's blocks, and edits of blocks kept as received."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import NO_OUTPUT
from foldline.dialects.anthropic.form import ID_LIMIT, THOUGHTS
from foldline.dialects.anthropic.read import parts_of
from foldline.dialects.blocks import BlockForm
from foldline.dialects.media import placeholder, to_anthropic
from foldline.dialects.payload import fields_of
from foldline.dialects.turns import Block, input_of
from foldline.dialects.values import ANTHROPIC

NAME_LIMIT = 128


class AnthropicBlocks(BlockForm):
    """The blocks of Anthropic's Messages API, told apart by their type."""

    dialect = ANTHROPIC
    call = ("tool_use", "id")
    result = ("tool_result", "tool_use_id")
    thoughts = THOUGHTS
    id_limit = ID_LIMIT
    name_limit = NAME_LIMIT

    def kind(self, block: Block) -> str:
        """Return the type of a block."""
        return str(block.get("type"))

    def is_refused(self, block: Any) -> bool:
        """Return whether the API refuses a block: a blank text, thinking without a signature."""
        fields = fields_of(block)
        unsigned = fields.get("type") == "thinking" and not fields.get("signature")
        return unsigned or super().is_refused(block)

    def parts(self, content: Any, index: int | None = None) -> list[Part]:
        """Read a message's content, a part for each block."""
        return parts_of(content, index)

    def text(self, text: str) -> Block:
        """Return a text as a block."""
        return {"type": "text", "text": text}

    def content(self, blocks: list[Any]) -> Any:
        """Return blocks as a content: a string for a single text."""
        if len(blocks) == 1 and set(blocks[0]) == {"type", "text"}:
            return blocks[0]["text"]
        return blocks

    def system(self, text: str) -> Any:
        """Return a text as a system prompt."""
        return text

    def media(self, media: Media) -> Block | None:
        """Return the block of a user message or a result; None if the API has no such block."""
        return to_anthropic(media)

    def block_of(self, part: Part) -> Block | None:
        """Return the block for a part, ids unchanged; None for what the Messages API does not accept."""
        if isinstance(part, Text):
            return self.text(part.text) if part.text.strip() else None
        if isinstance(part, Thinking):
            if part.signature is None:
                return None
            return {"type": "thinking", "thinking": part.text, "signature": part.signature}
        if isinstance(part, ToolCall):
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": input_of(part)}
        if isinstance(part, Media):
            return self.media(part) or self.text(placeholder(part))
        if isinstance(part, Opaque):
            is_ours = part.dialect == ANTHROPIC and isinstance(part.data, dict)
            return cast("Block", part.data) if is_ours else None
        return self.result_of(part, part.call_id)

    def result_of(self, result: ToolResult, call_id: str) -> Block:
        """Return the block of a result; one marked as an error may hold only text."""
        block: Block = {"type": "tool_result", "tool_use_id": call_id}
        told = [part for part in result.content if isinstance(part, Text)]
        content = self._told(told if result.is_error else result.content)
        if content:
            block["content"] = content
        if result.is_error:
            block.setdefault("content", NO_OUTPUT)
            block["is_error"] = True
        return block

    def answering(self, block: Block, content: Any) -> Block:
        """Return the block of a result with another content."""
        return {**block, "content": content}

    def patched(self, native: Block, old: Part, new: Part | None) -> Block | None:
        """Return a block with its part replaced, other fields as received; None removes it."""
        if new == old:
            return native
        if isinstance(new, Text) and isinstance(old, Text):
            return {**native, "text": new.text} if new.text.strip() else None
        if isinstance(new, ToolCall) and isinstance(old, ToolCall):
            return {**native, "id": new.id, "name": new.name, "input": input_of(new)}
        if isinstance(new, ToolResult) and isinstance(old, ToolResult):
            return self._patched_result(native, old, new)
        return None if new is None else self.block_of(new)

    def _patched_result(self, native: Block, old: ToolResult, new: ToolResult) -> Block:
        block = {**native, "tool_use_id": new.call_id}
        content = native.get("content")
        if isinstance(content, list):
            block["content"] = self.kept(cast("list[Block]", content), old, new)
        else:
            block["content"] = self._told(new.content)
        if new.is_error or "is_error" in native:
            block["is_error"] = new.is_error
        if not block["content"]:
            del block["content"]
            if new.is_error:
                block["content"] = NO_OUTPUT
        return block

    def _told(self, parts: Iterable[Text | Media | Opaque]) -> Any:
        return self.content([block for part in parts if (block := self.block_of(part)) is not None])


BLOCKS = AnthropicBlocks()
