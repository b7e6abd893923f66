"""Moldable's conversations: the display history as UI messages, the newest boundary as compaction state.

Sources: Moldable's published conversation type, and the state that its compaction proposal adds to it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from foldline.core.log.codec import pretty
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message
from foldline.dialects import UI_MESSAGE, get
from foldline.dialects.payload import fields_of
from foldline.exports.base import ExportWriter, FoldStep, Origin, Out, SaidStep, iso
from foldline.transcripts.lines import count_or_none, moment, text_or
from foldline.transcripts.moldable import RANGE, wrap_summary


class MoldableWriter(ExportWriter):
    """Write a conversation as one JSON document; its messages stay in memory until the end.

    Moldable keeps only the newest compaction: `version` counts them, `apiStartIndex` is the first message
    sent after the summary.
    """

    kept_at: ClassVar[str] = "~/.moldable/workspaces/WORKSPACE/conversations/{session}.json"
    resumed_by: ClassVar[str] = "open it in Moldable's list of conversations"

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        super().__init__(origin, session, out)
        self._items: list[tuple[Message, tuple[Edit, ...]]] = []
        self._starts: dict[str, int] = {}  # entry -> number of items before it
        self._folds: list[tuple[FoldStep, int]] = []  # with the number of items before each

    def say(self, step: SaidStep) -> None:
        """Take a message; the first system prompt is left to the agent."""
        if step.message.role in ("system", "developer") and not self._items:
            self.losses.add("system prompt left out (the agent adds its own)")
        else:
            self._starts[step.key] = len(self._items)
            self._items.append((step.message, step.edits))

    def fold(self, step: FoldStep) -> None:
        """Take a boundary."""
        if self._folds:
            self.losses.add("older boundaries left out (Moldable keeps the newest)")
        self._folds.append((step, len(self._items)))

    def end(self) -> None:
        """Yield the conversation."""
        rendered = get(UI_MESSAGE).render(self._items)
        self.count = len(rendered.messages)
        self.lost(rendered.warnings)
        step, before = self._folds[-1] if self._folds else (None, 0)
        imported = fields_of(step.origin.get("conversation")) if step is not None else {}
        self.session = text_or(imported.get("id")) or self.session
        conversation = {
            "id": self.session,
            "title": self.origin.title or "New conversation",
            "createdAt": text_or(imported.get("createdAt")) or iso(self.origin.started),
            "updatedAt": iso(self.origin.ended),
            "messageCount": self.count,
            "messages": rendered.messages,
            "compaction": self._state(step, before) if step is not None else None,
        }
        self.out(pretty(conversation) + b"\n")

    def _state(self, step: FoldStep, before: int) -> dict[str, Any]:
        """Return the state of a boundary that follows `before` items."""
        item = self._starts.get(step.first_kept, before) if step.first_kept is not None else before
        start = len(get(UI_MESSAGE).render(self._items[:item]).messages)
        version = max(step.number, count_or_none(step.origin.get("version")) or 0)
        recorded = step.origin.get("compacted_at")
        at = moment(recorded) if step.at is None else step.at
        same = recorded is not None and moment(recorded) == at
        return {
            "version": version,
            "compactedAt": recorded if same else iso(self.time(at)),
            "summaryMessage": _summary(step, version),
            "apiStartIndex": start,
            "summarizedRange": _range(step, start),
        }


def _range(step: FoldStep, start: int) -> dict[str, Any]:
    """Return the summarised range: the file's own if the start is unchanged, else all before the start."""
    span = fields_of(step.origin.get("summarized_range"))
    if span and step.origin.get("api_start_index") == start:
        return {theirs: span.get(ours) for ours, theirs in RANGE.items()}
    return {"fromIndex": 0, "toIndex": start - 1, "messageCount": start}


def _summary(step: FoldStep, version: int) -> dict[str, Any]:
    """Return the summary message: Moldable's own unchanged, or ours with the whole checkpoint."""
    if own := fields_of(step.origin.get("summary_message")):
        return own
    text = wrap_summary(step.summary) if step.imported else step.text
    return {"id": f"compaction-summary-v{version}", "role": "user", "parts": [{"type": "text", "text": text}]}
