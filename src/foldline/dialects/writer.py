"""Lists of native messages, written one by one; what could not be carried is counted.

`Writer` is what the writers of all dialects share. `TurnsWriter` is for APIs whose messages are the user's or
the model's and nobody else's: messages are merged into turns, and results come first in the user's. System
messages at the head become the system prompt; later ones, and those that Foldline made, become user text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, cast

from foldline.core.cut.notes import SYSTEM
from foldline.core.log.codec import in_utf8
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import split_steps
from foldline.dialects.ids import Ids, safe_name
from foldline.dialects.payload import items_of
from foldline.dialects.values import Losses, Rendered

SYSTEM_NOTE = f"{SYSTEM}\n"  # marks user text that the system wrote, not the user
OPENING = "[The conversation begins with the assistant.]"  # the APIs require a user message first

Block = dict[str, Any]


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

    def _named(self, call: ToolCall, limit: int, safe: Callable[[str, int, str], str] = safe_name) -> str:
        """Return the name of a call's tool in the characters and the length that an API takes."""
        name = safe(call.name, limit, "tool")
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


# ---- turns


def input_of(call: ToolCall) -> Block:
    """Return the arguments of a call as an object; text is wrapped in one."""
    return {"input": call.arguments} if isinstance(call.arguments, str) else call.arguments


class TurnsWriter(Writer):
    """Build a list: native messages as they are, others encoded and merged into turns."""

    content: ClassVar[str] = "content"  # the field of a message that holds what it says
    model: ClassVar[str] = "assistant"  # the role of what the model says

    def __init__(self, ids: Ids) -> None:
        super().__init__(ids)
        self._turn: tuple[str, list[Block], list[Block]] | None = None  # role, results, other blocks
        self._foreign = False  # something was encoded
        self._encoded = False  # the list begins with an encoded message

    def native(self, body: Block, message: Message) -> None:
        """Append a message as received; one without content is left out."""
        if body.get(self.content) in (None, []):
            self.losses.add("empty messages left out")
            return
        self._flush()
        self._keep(body, message)
        self._out.append(body)

    @property
    def at_head(self) -> bool:
        """Whether nothing but system prompts was written."""
        return not self._out and self._turn is None

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return the list, the system prompt and the losses; a `whole` request is as the API takes it."""
        self._flush()
        if whole:
            self._out = self._request(self._out)
        begins = self._out[0].get("role") if self._out else None
        if ((whole or self._encoded) and begins == self.model) or (self._foreign and begins is None):
            self.losses.add("a first user message added")
            self._out = [*self._said("user", [], [self._text(OPENING)]), *self._out]
        return super().finish(whole=whole)

    # ---- what each dialect says

    @abstractmethod
    def _text(self, text: str) -> Block:
        """Return a text as a block."""

    def _prompt(self, text: str) -> Any:
        """Return a text as a system prompt."""
        return text

    @abstractmethod
    def _block(self, part: Part, role: str) -> Block | None:
        """Return the block of a part of the `user` or of the `assistant`; None for what is left out."""

    @abstractmethod
    def _said(self, role: str, results: list[Block], blocks: list[Block]) -> list[Block]:
        """Return a turn as messages; none where it says nothing."""

    @abstractmethod
    def _request(self, messages: list[Block]) -> list[Block]:
        """Return messages as a request takes them."""

    def _keep(self, body: Block, message: Message) -> None:
        """Note the calls of a message that is written as received."""
        del body
        for call in message.calls:
            self._ids.keep(call.id)

    # ---- turns

    def _add(self, message: Message) -> None:
        """Append a message of another dialect (or a made one) as part of a turn."""
        self._foreign = True
        if message.role in {"system", "developer"}:
            self._add_system(message)
            return
        role = "assistant" if message.role == "assistant" else "user"
        results, blocks = self._blocks_of(role)
        for part in message.parts:
            if isinstance(part, ToolCall if role == "user" else ToolResult):
                self.losses.add(f"{'calls' if role == 'user' else 'results'} of an {role} message left out")
            elif (block := self._block(part, role)) is not None:
                (results if isinstance(part, ToolResult) else blocks).append(block)

    def _add_system(self, message: Message) -> None:
        texts = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
        for part in message.parts:
            if not isinstance(part, Text):
                self._leave(part)
        if self.at_head and message.native is not None:
            self._system.extend(self._prompt(part.text) for part in texts)
            return
        # a made message (a checkpoint) must be in the list, where a later fold finds it
        note = "" if message.injected or message.native is None else SYSTEM_NOTE
        _, blocks = self._blocks_of("user")
        blocks.extend(self._text(note + part.text) for part in texts)
        if texts:
            self.losses.add("system messages became user messages")

    def _blocks_of(self, role: str) -> tuple[list[Block], list[Block]]:
        """Return the open turn of a role; begin one if the open turn is another role's."""
        if self._turn is None or self._turn[0] != role:
            self._flush()
            self._turn = (role, [], [])
            if role == "assistant":
                self._ids.batch()
        return self._turn[1], self._turn[2]

    def _flush(self) -> None:
        if self._turn is None:
            return
        said = self._said(*self._turn)
        self._turn = None
        self._encoded = self._encoded or bool(said and not self._out)
        self._out += said

    # ---- what cannot be carried

    def _leave(self, part: Part) -> None:
        """Count a part as left out."""
        if isinstance(part, Media):
            self.losses.add(f"{part.kind} left out")
        else:
            self._lose(part)

    def _input(self, call: ToolCall) -> Block:
        if isinstance(call.arguments, str):
            self.losses.add("call arguments that are not a JSON object wrapped in one")
        return input_of(call)

    def _one_system(self) -> Any | None:
        """Return a single system prompt as given; several become text blocks."""
        given = self._system
        if len(given) < 2:
            return given[0] if given else None
        blocks: list[Any] = []
        for value in given:
            if isinstance(value, list):
                blocks.extend(items_of(value))
            elif str(value).strip():
                blocks.append(self._text(str(value)))
        return blocks
