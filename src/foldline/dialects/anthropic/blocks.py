"""Anthropic's content blocks, told apart by their type: read as parts, and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.core.log.messages import Media, Part, Role, Thinking
from foldline.dialects.anthropic.form import FORMS, THOUGHTS, given_up
from foldline.dialects.blocks import BlockForm
from foldline.dialects.forms import ID_LIMIT
from foldline.dialects.media import from_anthropic, to_anthropic
from foldline.dialects.payload import Fields, fields_of, string
from foldline.dialects.values import ANTHROPIC, Losses
from foldline.dialects.writer import Block
from foldline.errors import DialectError

# system and developer: the API has no such message, it moves to the system prompt when it is sent
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

    def held(self, block: Block) -> Fields:
        """Return the block: its fields are beside its type."""
        return block

    def made(self, kind: str, fields: Fields) -> Block:
        """Return a block of a type with these fields."""
        return {"type": kind, **fields}

    def text(self, text: str) -> Block:
        """Return a text as a block."""
        return {"type": "text", "text": text}

    def media(self, media: Media) -> Block | None:
        """Return the block of a user message or a result; None if the API has no such block."""
        return to_anthropic(media)

    def thought(self, text: str, signature: str) -> Fields:
        """Return the fields of thinking."""
        return {"thinking": text, "signature": signature}

    def is_refused(self, block: Any) -> bool:
        """Return whether the API refuses a block: a blank text, thinking without a signature."""
        fields = fields_of(block)
        unsigned = fields.get("type") == "thinking" and not fields.get("signature")
        return unsigned or super().is_refused(block)

    def request(self, messages: Sequence[Block], losses: Losses) -> list[Block]:
        """Return messages as a request takes them, without calls of server tools that were given up."""
        found = super().request(messages, losses)
        for place, calls in given_up(found).items():
            losses.add("server tool calls without a result left out", len(calls))
            blocks = [
                _uncalled(block, calls) for block in found[place]["content"] if block.get("id") not in calls
            ]
            self.drop_last_thinking(blocks)
            found[place] = {**found[place], "content": blocks}
        return [body for body in found if body["content"]]

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


def _uncalled(block: Block, calls: Sequence[str]) -> Block:
    """Return a block without its caller, if that is one of these calls."""
    if fields_of(block.get("caller")).get("tool_id") not in calls:
        return block
    return {key: value for key, value in block.items() if key != "caller"}


BLOCKS = AnthropicBlocks()
