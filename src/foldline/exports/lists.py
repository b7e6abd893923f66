"""A session as a list of native messages of one dialect, one per line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from foldline.core.cut.notes import UNANSWERED
from foldline.core.cut.pairing import Pairing
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Text, ToolResult
from foldline.dialects import UI_MESSAGE, get
from foldline.exports.base import ExportWriter, FoldStep, Origin, SaidStep, line
from foldline.exports.ui_list import for_ai_sdk

_REASONING = {"reasoning_content", "reasoning", "reasoning_details"}  # fields that Chat Completions has not


class ListWriter(ExportWriter):
    """Write messages as JSON lines; a system prompt that the dialect takes separately is the first line.

    A list is rendered as a whole, so its messages stay in memory until the end.
    """

    own_boundaries: ClassVar[bool] = False
    dialect: ClassVar[str]

    def __init__(self, origin: Origin, session: str) -> None:
        super().__init__(origin, session)
        self._items: list[tuple[Message, tuple[Edit, ...]]] = []
        self._pairing = Pairing()

    def say(self, step: SaidStep) -> Iterator[bytes]:
        """Take a message; calls that it leaves unanswered are answered by a note, as in a view."""
        self._answer(self._pairing.say(len(self._items), step.message))
        self._items.append((step.message, step.edits))
        yield from ()

    def fold(self, step: FoldStep) -> Iterator[bytes]:
        """Take a checkpoint, which is a message in a view and left out of a history."""
        if self.origin.view:
            self._items.append((step.message, ()))
        else:
            self.losses.add("boundaries left out (a list has no form for them)")
        yield from ()

    def end(self) -> Iterator[bytes]:
        """Yield the system prompt, then every message."""
        batch = self._pairing.current
        self._answer(tuple(batch.open) if batch is not None else ())
        rendered = get(self.dialect).render(self._items, whole=self.origin.view)
        if self.dialect == UI_MESSAGE:
            rendered = for_ai_sdk(rendered, self.losses)
        self.count = len(rendered.messages)
        for warning in rendered.warnings:
            self.losses.add(warning.rpartition(" (")[0], int(warning.rpartition("(")[2].rstrip(")")))
        if beside := sum(1 for message in rendered.messages if _REASONING & message.keys()):
            self.losses.add("replies with reasoning beside them, which LangChain leaves out", beside)
        if rendered.system:
            yield line({"system": rendered.system})
        yield from map(line, rendered.messages)

    def _answer(self, calls: tuple[str, ...]) -> None:
        """Answer calls by a note: APIs refuse a call without a result (UI messages: `for_ai_sdk`)."""
        if not calls or self.origin.view or self.dialect == UI_MESSAGE:
            return
        self.losses.add("unanswered calls answered by a note", len(calls))
        notes = tuple(ToolResult(call, (Text(UNANSWERED),), is_error=True) for call in calls)
        self._items.append((Message("tool", notes), ()))


def list_writer(name: str) -> type[ListWriter]:
    """Return the writer of a dialect."""

    class _Of(ListWriter):
        dialect: ClassVar[str] = name

    return _Of
