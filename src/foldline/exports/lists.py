"""A session as a list of native messages of one dialect, one per line.

The AI SDK refuses two things that its dialect allows: system messages within the list, and calls without a
result. In its list the system prompt contains the system messages, and a note answers each open call.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from foldline.core.cut.notes import UNANSWERED
from foldline.core.cut.pairing import Pairing
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Text, ToolResult
from foldline.dialects import UI_MESSAGE, get
from foldline.dialects.ui_message.tools import is_tool, sdk4_call, with_result
from foldline.dialects.values import Losses, Rendered
from foldline.dialects.writer import system_text
from foldline.exports.base import ExportWriter, FoldStep, Origin, Out, SaidStep
from foldline.exports.pieces import NOT_AN_OBJECT

_REASONING = {"reasoning_content", "reasoning", "reasoning_details"}  # not in OpenAI's own API
_OPEN = ("input-available", "approval-requested", "input-streaming", "call")

Native = dict[str, Any]


class ListWriter(ExportWriter):
    """Write messages as JSON lines; a separate system prompt is the first line.

    The list is rendered at once, so its messages stay in memory until the end.
    """

    own_boundaries: ClassVar[bool] = False

    def __init__(self, origin: Origin, session: str, out: Out, *, dialect: str) -> None:
        super().__init__(origin, session, out)
        self.dialect = dialect
        self._items: list[tuple[Message, tuple[Edit, ...]]] = (
            [(origin.system, ())] if origin.system is not None else []
        )
        self._pairing = Pairing()

    def say(self, step: SaidStep) -> None:
        """Take a message; a note answers the calls that it leaves open, as in a view."""
        self._answer(self._pairing.say(len(self._items), step.message))
        self._items.append((step.message, step.edits))

    def fold(self, step: FoldStep) -> None:
        """Take a checkpoint: a message in a view, left out of a history."""
        if self.origin.view:
            self._items.append((step.message, ()))
        else:
            self.losses.add("boundaries left out (a list has no form for them)")

    def end(self) -> None:
        """Yield the system prompt, then every message."""
        batch = self._pairing.current
        self._answer(tuple(batch.open) if batch is not None else ())
        rendered = get(self.dialect).render(self._items, whole=self.origin.view)
        if self.dialect == UI_MESSAGE:
            rendered = _for_ai_sdk(rendered, self.losses)
        self.count = len(rendered.messages)
        self.lost(rendered.warnings)
        if reasoned := sum(1 for message in rendered.messages if _REASONING & message.keys()):
            self.losses.add("replies with reasoning in separate fields, which LangChain drops", reasoned)
        if rendered.system:
            self.line({"system": rendered.system})
        for message in rendered.messages:
            self.line(message)

    def _answer(self, calls: tuple[str, ...]) -> None:
        """Answer calls by a note, since APIs refuse a call without a result (UI messages: `_for_ai_sdk`)."""
        if not calls or self.origin.view or self.dialect == UI_MESSAGE:
            return
        self.losses.add("unanswered calls answered by a note", len(calls))
        notes = tuple(ToolResult(call, (Text(UNANSWERED),), is_error=True) for call in calls)
        self._items.append((Message("tool", notes), ()))


# ---- the AI SDK's list


def _for_ai_sdk(rendered: Rendered, losses: Losses) -> Rendered:
    """Return a list in the form that the AI SDK accepts."""
    systems = [message for message in rendered.messages if message.get("role") == "system"]
    parts = [message.get("parts") or () for message in systems]
    texts = [[part["text"] for part in own if isinstance(part.get("text"), str)] for own in parts]
    prompts = [system_text(rendered.system), *map("\n\n".join, texts)]
    if systems:
        losses.add("system messages joined into the system prompt", len(systems))
    rest = [_closed(message, losses) for message in rendered.messages if message.get("role") != "system"]
    system = "\n\n".join(text for text in prompts if text) if systems else rendered.system
    return msgspec.structs.replace(rendered, messages=rest, system=system)


def _closed(message: Native, losses: Losses) -> Native:
    """Return a message with its open calls answered by a view's note, as failed."""
    changed = dict(message)
    for key in ("parts", "toolInvocations"):
        parts = message.get(key)
        if message.get("role") == "assistant" and isinstance(parts, list):
            changed[key] = [_answered(part, losses) for part in parts]  # pyright: ignore[reportUnknownVariableType]
    return changed


def _answered(part: Any, losses: Losses) -> Any:
    call = sdk4_call(part)
    if call is None and not is_tool(part):
        return part
    if call is None and isinstance(part.get("input"), str):  # providers accept only objects
        losses.add(NOT_AN_OBJECT)
        part = {**part, "input": {"input": part["input"]}}
    call = call or part
    if call.get("state") not in _OPEN or call.get("providerExecuted"):
        return part
    losses.add("unanswered calls answered by a note")
    return with_result(part, UNANSWERED, is_error=True)
