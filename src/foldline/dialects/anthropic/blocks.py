"""Reading and writing of Anthropic's content blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.core.log.messages import Media, Part, Role, Thinking
from foldline.dialects.anthropic.form import FORMS, THOUGHTS, abandoned_calls
from foldline.dialects.blocks import BlockForm
from foldline.dialects.forms import ID_LIMIT, text_part
from foldline.dialects.media import from_anthropic, to_anthropic
from foldline.dialects.payload import Fields, fields_of, string, without
from foldline.dialects.values import ANTHROPIC, Losses
from foldline.dialects.writer import Block
from foldline.errors import DialectError

# system and developer are not in the API: moved to the system prompt when rendered
ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}


class AnthropicBlocks(BlockForm):
    """The blocks of Anthropic's Messages API."""

    dialect = ANTHROPIC
    roles = ROLES
    forms = FORMS
    call = ("tool_use", "id")
    result = ("tool_result", "tool_use_id")
    thoughts = THOUGHTS
    failed = ("is_error", True, False)
    shape = "an object with a type"
    id_limit = ID_LIMIT
    name_limit = 128
    single_texts = True

    def kind(self, block: Block) -> str:
        """Return the type of a block."""
        return str(block.get("type"))

    def fields_in(self, block: Block) -> Fields:
        """Return the block itself: its fields are next to its type."""
        return block

    def build(self, kind: str, fields: Fields) -> Block:
        """Return a block of a type with these fields."""
        return {"type": kind, **fields}

    def text(self, text: str) -> Block:
        """Return a text as a block."""
        return text_part(text)

    def media(self, media: Media) -> Block | None:
        """Return the block of media in a user message or result; None if the API does not support it."""
        return to_anthropic(media)

    def thought(self, text: str, signature: str) -> Fields:
        """Return the fields of a thinking block."""
        return {"thinking": text, "signature": signature}

    def is_rejected(self, block: Any) -> bool:
        """Return whether the API rejects a block: a blank text, thinking without a signature."""
        fields = fields_of(block)
        unsigned = fields.get("type") == "thinking" and not fields.get("signature")
        return unsigned or super().is_rejected(block)

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages in the form that a request requires, without abandoned calls of server tools."""
        bodies = super().request(messages, losses)
        for place, calls in abandoned_calls(bodies).items():
            losses.add("server tool calls without a result left out", len(calls))
            blocks = [
                _without_caller(block, calls)
                for block in bodies[place]["content"]
                if block.get("id") not in calls
            ]
            self.drop_last_thinking(blocks)
            bodies[place] = {**bodies[place], "content": blocks}
        return [body for body in bodies if body["content"]]

    def other(self, kind: str, block: Block, index: int | None) -> Part | None:
        """Read thinking, an image or a document."""
        if not isinstance(block.get("type"), str):
            raise DialectError("the type of a content block must be a string", index=index)
        if kind in ("image", "document"):
            return from_anthropic(block)
        if kind != "thinking":
            return None
        signature = block.get("signature")
        if not isinstance(signature, str | None):
            raise DialectError("thinking block: signature must be a string", index=index)
        return Thinking(string(block, "thinking", "thinking block", index), signature or None)


def _without_caller(block: Block, calls: Sequence[str]) -> Block:
    """Remove the caller of a block if it is one of these calls."""
    return without(block, "caller") if fields_of(block.get("caller")).get("tool_id") in calls else block


BLOCKS = AnthropicBlocks()
