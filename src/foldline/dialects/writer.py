"""What the writers of all dialects share: a list that grows by each message, and what it could not carry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, cast

from foldline.core.log.codec import in_utf8
from foldline.core.log.messages import Message, Opaque, Part, Thinking, ToolCall
from foldline.dialects.edits import split_steps
from foldline.dialects.ids import Ids, safe_name
from foldline.dialects.values import Losses, Rendered


class Writer(ABC):
    """Build a list of native messages: those received in the dialect as they are, others encoded."""

    def __init__(self, ids: Ids) -> None:
        self.losses = Losses()
        self._ids = ids
        self._out: list[Any] = []
        self._system: list[Any] = []

    @abstractmethod
    def native(self, body: Any, message: Message) -> None:
        """Append a message as received; one that says nothing is left out."""

    @abstractmethod
    def _add(self, message: Message) -> None:
        """Append a message of another dialect (or a made one)."""

    def add(self, message: Message, given: Message) -> None:
        """Append a message that is encoded, step by step; `given` is the message before its edits."""
        del given
        for said in split_steps(message):
            self._add(said)

    @property
    def at_head(self) -> bool:
        """Whether nothing but system prompts was written."""
        return not self._out

    def native_system(self, system: Any) -> None:
        """Take a system prompt as it was given."""
        self._system.append(system)

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return what is sent, as UTF-8 can carry it, and what was left out; see `Dialect.render`."""
        del whole
        if self._ids.renamed:
            self.losses.add("call ids changed", self._ids.renamed)
        return Rendered(in_utf8(self._out), in_utf8(self._one_system()), self.losses.lines())

    def _one_system(self) -> Any | None:
        """Return a single system prompt as given; several are joined into one text."""
        if len(self._system) < 2:
            return self._system[0] if self._system else None
        texts = [given if isinstance(given, str) else _text_of(given) for given in self._system]
        return "\n\n".join(text for text in texts if text)

    def _named(self, call: ToolCall, limit: int) -> str:
        """Return the name of a call's tool in the characters and the length that an API takes."""
        name = safe_name(call.name, limit, "tool")
        if name != call.name:
            self.losses.add("tool names changed")
        return name

    def _lose(self, part: Part, carried: Callable[[Opaque], bool] = lambda _: False) -> None:
        """Count thinking, or a block of another dialect that is not `carried`, as left out."""
        if isinstance(part, Thinking):
            self.losses.add("signed thinking left out" if part.signature else "thinking left out")
        elif isinstance(part, Opaque) and not carried(part):
            self.losses.add(f"{part.dialect} {part.kind} left out")


def _text_of(blocks: Any) -> str:
    return "\n\n".join(
        str(cast("dict[str, Any]", block).get("text", "")) for block in cast("list[Any]", blocks)
    )
