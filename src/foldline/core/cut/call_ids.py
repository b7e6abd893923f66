"""Ids of calls that stand once in a view, where the dialect wants that."""

from __future__ import annotations

from foldline.core.log.messages import Message, ToolCall, ToolResult

UNIQUE_IDS = ("anthropic", "openai-responses")  # dialects that want a call's id once in the whole list


class CallIds:
    """The ids of the calls of a view, taken message by message: one that is used again becomes another."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}  # id -> how many calls had it
        self._renamed: dict[str, str] = {}  # of the newest batch: its own id -> its id in the view

    def in_view(self, call_id: str) -> str:
        """Return the id that a call of the newest batch has in the view."""
        return self._renamed.get(call_id, call_id)

    def take(self, message: Message, gone: set[int]) -> dict[int, str]:
        """Take the next message; return the new ids of its calls and results, by part index.

        `gone` are the parts that the view leaves out.
        """
        native = message.native
        unique = native is None or native.dialect in UNIQUE_IDS
        new: dict[int, str] = {}
        for index, part in enumerate(message.parts):
            if index in gone:
                continue
            if isinstance(part, ToolCall):
                times = self._used[part.id] = self._used.get(part.id, 0) + 1
                self._renamed.pop(part.id, None)
                if times > 1 and unique:
                    new[index] = self._renamed[part.id] = self._free(part.id, times, message)
            elif isinstance(part, ToolResult) and part.call_id in self._renamed:
                new[index] = self._renamed[part.call_id]
        return new

    def _free(self, call_id: str, number: int, message: Message) -> str:
        """Return an id that no call of the view has so far, nor another call of the message."""
        taken = {call.id for call in message.calls}
        while (new := f"{call_id}_{number}") in self._used or new in taken:
            number += 1
        self._used[new] = 1
        return new
