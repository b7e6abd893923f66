"""Messages of blocks (`blocks.py`) written: native ones as they are, others encoded and merged into turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from foldline.core.log.messages import Media, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.blocks import BlockForm
from foldline.dialects.ids import Ids
from foldline.dialects.media import placeholder
from foldline.dialects.turns import Block, TurnsWriter


class BlocksWriter(TurnsWriter):
    """Build a list of a dialect whose messages hold blocks."""

    def __init__(self, form: BlockForm, native_ids: Iterable[str]) -> None:
        super().__init__(Ids(limit=form.id_limit, everywhere=True, any_text=False, taken=native_ids))
        self._form = form

    def _text(self, text: str) -> Block:
        return self._form.text(text)

    def _prompt(self, text: str) -> Any:
        return self._form.system(text)

    def _request(self, messages: list[Block]) -> list[Block]:
        return self._form.request(messages, self.losses)

    def _said(self, role: str, results: list[Block], blocks: list[Block]) -> list[Block]:
        if role == "assistant" and (dropped := self._form.drop_last_thinking(blocks)):
            self.losses.add("thinking at the end of a turn left out", dropped)
        if not results and not blocks:
            return []
        return [{"role": role, "content": self._form.content([*results, *blocks])}]

    def _block(self, part: Part, role: str) -> Block | None:
        if isinstance(part, ToolResult):
            for inner in part.content:
                self._note(inner)
            if part.is_error and any(not isinstance(inner, Text) for inner in part.content):
                self.losses.add("media in error results left out")
            return self._form.result_of(part, self._ids.result(part.call_id))
        self._note(part)
        if isinstance(part, Text) and role == "assistant":
            # the APIs refuse whitespace at the end of a last assistant message, and any may be the last
            return self._form.block_of(Text(part.text.rstrip()))
        if isinstance(part, ToolCall):
            name = self._named(part, self._form.name_limit)
            return self._form.block_of(ToolCall(self._ids.call(part.id), name, self._input(part)))
        if isinstance(part, Media) and role == "assistant":
            return self._form.text(placeholder(part))
        block = self._form.block_of(part)
        thought = block is not None and role != "assistant" and self._form.is_thought(block)
        return None if thought else block

    def _note(self, part: Part) -> None:
        """Count a part that the API does not accept."""
        if isinstance(part, Media):
            refused = self._form.media(part) is None
        else:
            refused = isinstance(part, Thinking | Opaque) and self._form.block_of(part) is None
        if refused:
            self._leave(part)

    def _leave(self, part: Part) -> None:
        if isinstance(part, Thinking):
            self.losses.add("unsigned thinking left out")
        else:
            super()._leave(part)
