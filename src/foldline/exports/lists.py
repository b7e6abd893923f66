"""A session as a list of native messages of one dialect, one per line.

The AI SDK refuses two things that its dialect allows: a system message among the others, and a call without a
result. Its list has its system messages in the system prompt, and its open calls answered by a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from foldline.core.cut.notes import UNANSWERED
from foldline.core.cut.pairing import Pairing
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Message, Text, ToolResult
from foldline.dialects import UI_MESSAGE, get
from foldline.dialects.ui_message.tools import is_tool, sdk4_call, with_result
from foldline.dialects.values import Losses, Rendered
from foldline.exports.base import ExportWriter, FoldStep, Origin, SaidStep, line

_REASONING = {"reasoning_content", "reasoning", "reasoning_details"}  # fields that Chat Completions has not
_OPEN = ("input-available", "approval-requested", "input-streaming", "call")

Native = dict[str, Any]


class ListWriter(ExportWriter):
    """Write messages as JSON lines; a system prompt that the dialect takes separately is the first line.

    A list is rendered as a whole, so its messages stay in memory until the end.
    """

    own_boundaries: ClassVar[bool] = False

    def __init__(self, origin: Origin, session: str, dialect: str) -> None:
        super().__init__(origin, session)
        self.dialect = dialect
        self._items: list[tuple[Message, tuple[Edit, ...]]] = (
            [(origin.system, ())] if origin.system is not None else []
        )
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
            rendered = _for_ai_sdk(rendered, self.losses)
        self.count = len(rendered.messages)
        self.lost(rendered.warnings)
        if beside := sum(1 for message in rendered.messages if _REASONING & message.keys()):
            self.losses.add("replies with reasoning beside them, which LangChain leaves out", beside)
        if rendered.system:
            yield line({"system": rendered.system})
        yield from map(line, rendered.messages)

    def _answer(self, calls: tuple[str, ...]) -> None:
        """Answer calls by a note: APIs refuse a call without a result (UI messages: `_for_ai_sdk`)."""
        if not calls or self.origin.view or self.dialect == UI_MESSAGE:
            return
        self.losses.add("unanswered calls answered by a note", len(calls))
        notes = tuple(ToolResult(call, (Text(UNANSWERED),), is_error=True) for call in calls)
        self._items.append((Message("tool", notes), ()))


# ---- the AI SDK's list


def _for_ai_sdk(rendered: Rendered, losses: Losses) -> Rendered:
    """Return a list as the AI SDK takes it."""
    systems = [message for message in rendered.messages if message.get("role") == "system"]
    told = [_text(rendered.system), *("\n\n".join(_texts(message)) for message in systems)]
    if systems:
        losses.add("system messages joined into the system prompt", len(systems))
    rest = [_closed(message, losses) for message in rendered.messages if message.get("role") != "system"]
    system = "\n\n".join(text for text in told if text) if systems else rendered.system
    return msgspec.structs.replace(rendered, messages=rest, system=system)


def _closed(message: Native, losses: Losses) -> Native:
    """Return a message whose open calls have failed, in the words of a view."""
    changed = dict(message)
    for key in ("parts", "toolInvocations"):
        parts = message.get(key)
        if message.get("role") == "assistant" and isinstance(parts, list):
            changed[key] = [_answered(part, losses) for part in parts]  # pyright: ignore[reportUnknownVariableType]
    return changed


def _answered(part: Any, losses: Losses) -> Any:
    call = sdk4_call(part)
    own = call if call is not None else part
    part = _with_object(part, own, losses) if call is None and is_tool(part) else part
    if (call is None and not is_tool(part)) or own.get("state") not in _OPEN or own.get("providerExecuted"):
        return part
    losses.add("unanswered calls answered by a note")
    return with_result(part, UNANSWERED, is_error=True)


def _with_object(part: Native, own: Native, losses: Losses) -> Native:
    """Return a tool part whose input is an object: providers take no other."""
    if not isinstance(own.get("input"), str):
        return part
    losses.add("call arguments that are not a JSON object wrapped in one")
    return {**part, "input": {"input": own["input"]}}


def _texts(message: Native) -> list[str]:
    return [part["text"] for part in message.get("parts") or () if isinstance(part.get("text"), str)]


def _text(system: Any) -> str:
    if isinstance(system, list):
        return "\n\n".join(str(block.get("text", "")) for block in system)  # pyright: ignore
    return system or ""
