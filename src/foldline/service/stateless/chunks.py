"""A reply as chunks of a UI message, which the readers of the AI SDK (5, 6 and 7) take."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from foldline.core.log.messages import Message
from foldline.dialects import get
from foldline.providers import Delta, Reply

Chunk = dict[str, Any]

_PARTS: Final = {"text": "text", "thinking": "reasoning"}


def data(name: str, value: Any, **more: Any) -> Chunk:
    """Return a data part: `onData` hears of it, and only where it is not transient the message keeps it."""
    return {"type": f"data-{name}", "data": value, **more}


def passing(name: str, value: Any) -> Chunk:
    """Return a data part that the message does not keep."""
    return data(name, value, transient=True)


class ReplyChunks:
    """The chunks of one reply; a step begins with its first piece."""

    def __init__(self, dialect: str) -> None:
        self.begun = False
        self._spoken = False  # any of its text
        self._dialect = dialect
        self._open: tuple[str, str] | None = None  # the part that is open: its type and id
        self._count = 0

    def take(self, piece: Delta) -> list[Chunk]:
        """Return the chunks of a piece; calls are told whole, at the end."""
        kind = _PARTS.get(piece.kind)
        if kind is None:
            return []
        made = self._begin()
        self._spoken = self._spoken or (kind == "text" and bool(piece.text.strip()))
        if self._open is None or self._open[0] != kind:
            made += self._close()
            self._count += 1
            self._open = kind, f"{kind}-{self._count}"
            made.append({"type": f"{kind}-start", "id": self._open[1]})
        return [*made, {"type": f"{kind}-delta", "id": self._open[1], "delta": piece.text}]

    def end(self, reply: Reply) -> list[Chunk]:
        """Return the chunks that end a reply: its calls, and how it ended."""
        message: Message = get(self._dialect).decode_reply(reply.native)
        made = [*self._begin(), *self._close()]
        made += [
            {
                "type": "tool-input-available",
                "toolCallId": one.id,
                "toolName": one.name,
                "input": one.arguments,
            }
            for one in message.calls
        ]
        if not self._spoken and not message.calls:
            return [*made, {"type": "error", "errorText": f"the model answered with nothing ({reply.stop})"}]
        told = {"usage": msgspec.to_builtins(reply.usage), "finishReason": reply.stop}
        return [*made, {"type": "finish-step"}, {"type": "finish", "messageMetadata": told}]

    def _begin(self) -> list[Chunk]:
        begun, self.begun = self.begun, True
        return [] if begun else [{"type": "start-step"}]

    def _close(self) -> list[Chunk]:
        opened, self._open = self._open, None
        return [] if opened is None else [{"type": f"{opened[0]}-end", "id": opened[1]}]
