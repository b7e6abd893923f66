"""The steps that dialects whose messages hold blocks share (`blocks.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from foldline.core.log.dialects import Traits
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Part
from foldline.dialects.block_writer import BlocksWriter
from foldline.dialects.blocks import BlockForm
from foldline.dialects.cache_marks import MARKS, marks
from foldline.dialects.dialect import Dialect, Slot
from foldline.dialects.edits import replacements
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.values import Losses, Say


class BlockDialect(Dialect):
    """A dialect whose messages hold blocks.

    Messages of others are merged into turns with results first. System messages at the head become `system`,
    later ones and made ones become user text. A whole request that begins with the assistant gets a first
    user message, as the APIs require.
    """

    form: ClassVar[BlockForm]
    marks_cache = True
    traits = Traits(own_results=False)  # results belong to the user's turn

    def call_slots(self, body: Fields) -> tuple[list[Slot], list[Slot]]:
        """Return where a message holds the ids of its calls, and those that its results answer."""
        blocks = [fields_of(block) for block in items_of(body.get("content"))]
        calls, results = (
            [(self.form.held(block), key) for block in blocks if self.form.kind(block) == kind]
            for kind, key in (self.form.call, self.form.result)
        )
        return calls, results

    def more(self, messages: list[Any]) -> list[Any]:
        """Return the last message of a request and those that follow it, as the request takes them."""
        return self.form.request(messages, Losses())

    def _moves(self, message: Message) -> bool:
        return message.role in ("system", "developer")

    def _edited_system(self, message: Message, system: Any, edits: Sequence[Edit], index: int) -> Any:
        del message
        body = self.form.edit({"content": system}, replacements(edits), index)
        return body["content"] if body else ""

    def _writer(self, received: Sequence[tuple[Message, Any]]) -> BlocksWriter:
        return BlocksWriter(self.form, (call.id for message, _ in received for call in message.calls))

    def _edited(self, body: Any, edits: Mapping[int, Part | None], index: int) -> Fields | None:
        return self.form.edit(body, edits, index)

    def _check_whole(self, say: Say, bodies: Sequence[Fields], system: Any) -> None:
        if (given := marks(bodies, system)) > MARKS:
            say("cache-marks", f"A maximum of {MARKS} cache marks may be provided. Found {given}.")
