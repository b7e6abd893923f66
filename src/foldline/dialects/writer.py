"""Write lists of native messages one message at a time, and count what cannot be converted.

`Writer` is the base of all writers. `TurnsWriter` is for APIs with only user and assistant messages: messages
are merged into turns, with results first in the user's. System messages at the start become the system
prompt; later ones, and those that Foldline made, become user text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

from foldline.core.cut.notes import SYSTEM
from foldline.core.log.codec import in_utf8
from foldline.core.log.messages import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult
from foldline.dialects.edits import split_steps
from foldline.dialects.ids import Ids, safe_name
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.values import Losses, Rendered

SYSTEM_NOTE = f"{SYSTEM}\n"  # prefix of system messages sent as user text
OPENING = "[The conversation begins with the assistant.]"  # the APIs require a user message first

Block = Fields


class Writer(ABC):
    """Build a list of native messages: messages of the dialect as received, others encoded."""

    def __init__(self, ids: Ids) -> None:
        self.losses = Losses()
        self._ids = ids
        self._out: list[Any] = []
        self._system: list[Any] = []

    @abstractmethod
    def native(self, body: Any, message: Message) -> None:
        """Append a message as received, unless it is empty."""

    @abstractmethod
    def _add(self, message: Message) -> None:
        """Append a message of another dialect, or a made one."""

    def add(self, message: Message, original: Message) -> None:
        """Encode and append a message step by step; `original` is the message before its edits."""
        del original
        for step in split_steps(message):
            self._add(step)

    @property
    def at_head(self) -> bool:
        """Whether nothing but system prompts was written."""
        return not self._out

    def native_system(self, system: Any) -> None:
        """Add a system prompt as received."""
        self._system.append(system)

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return the messages, valid as UTF-8, and what was left out; see `Dialect.render`."""
        del whole
        if self._ids.renamed:
            self.losses.add("call ids changed", self._ids.renamed)
        return Rendered(in_utf8(self._out), in_utf8(self._joined_system()), self.losses.lines())

    def _joined_system(self) -> Any | None:
        """Return a single system prompt as received; several are joined into one text."""
        if len(self._system) < 2:
            return self._system[0] if self._system else None
        return "\n\n".join(text for text in map(system_text, self._system) if text)

    def _tool_name(self, call: ToolCall, limit: int, safe: Callable[[str, int, str], str] = safe_name) -> str:
        """Return the name of a call's tool with the characters and length that an API accepts."""
        name = safe(call.name, limit, "tool")
        if name != call.name:
            self.losses.add("tool names changed")
        return name

    def _input(self, call: ToolCall) -> Fields:
        """Return the arguments of a call as an object; text is wrapped in one, and counted."""
        if isinstance(call.arguments, str):
            self.losses.add("call arguments that are not a JSON object wrapped in one")
        return input_of(call)

    def _count_loss(self, part: Part, supported: Callable[[Opaque], bool] = lambda _: False) -> None:
        """Count thinking, or an opaque block that is not `supported`, as left out."""
        if isinstance(part, Thinking):
            self.losses.add("signed thinking left out" if part.signature else "thinking left out")
        elif isinstance(part, Opaque) and not supported(part):
            self.losses.add(f"{part.dialect} {part.kind} left out")


def input_of(call: ToolCall) -> Fields:
    """Return the arguments of a call as an object; text is wrapped in one."""
    return {"input": call.arguments} if isinstance(call.arguments, str) else call.arguments


def system_text(system: Any) -> str:
    """Return a system prompt, a text or a list of blocks, as one text."""
    if not isinstance(system, list):
        return system or ""
    return "\n\n".join(str(block.get("text", "")) for block in map(fields_of, items_of(system)))


# ---- turns


class TurnsWriter(Writer):
    """Build a list: native messages as received, others encoded and merged into turns."""

    content: ClassVar[str] = "content"  # the field of a message with its blocks
    model: ClassVar[str] = "assistant"  # the role of the model

    def __init__(self, ids: Ids) -> None:
        super().__init__(ids)
        self._turn: tuple[str, list[Block], list[Block]] | None = None  # role, results, other blocks
        self._foreign = False  # a message was encoded
        self._encoded = False  # the first message was encoded

    def native(self, body: Block, message: Message) -> None:
        """Append a message as received, unless it has no content."""
        if body.get(self.content) in (None, []):
            self.losses.add("empty messages left out")
            return
        self._flush()
        self._keep_ids(body, message)
        self._out.append(body)

    @property
    def at_head(self) -> bool:
        """Whether nothing but system prompts was written."""
        return not self._out and self._turn is None

    def finish(self, *, whole: bool = False) -> Rendered:
        """Return the list, the system prompt and the losses; a `whole` list must be valid as a request."""
        self._flush()
        if whole:
            self._out = self._as_request(self._out)
        first = self._out[0].get("role") if self._out else None
        if ((whole or self._encoded) and first == self.model) or (self._foreign and first is None):
            self.losses.add("a first user message added")
            self._out = [*self._messages_of("user", [], [self._text(OPENING)]), *self._out]
        return super().finish(whole=whole)

    # ---- what each dialect defines

    @abstractmethod
    def _text(self, text: str) -> Block:
        """Return a text as a block."""

    def _system_prompt(self, text: str) -> Any:
        """Return a text as a system prompt."""
        return text

    @abstractmethod
    def _block(self, part: Part, role: str) -> Block | None:
        """Return the block of a part of a `user` or `assistant` message; None if it is left out."""

    @abstractmethod
    def _messages_of(self, role: str, results: list[Block], blocks: list[Block]) -> list[Block]:
        """Return the messages of a turn; [] if it is empty."""

    @abstractmethod
    def _as_request(self, messages: list[Block]) -> list[Block]:
        """Return messages in the form that a request requires."""

    def _keep_ids(self, body: Block, message: Message) -> None:
        """Record the call ids of a message that is written as received."""
        del body
        for call in message.calls:
            self._ids.keep(call.id)

    # ---- turns

    def _add(self, message: Message) -> None:
        """Append a message to the turn of its role."""
        self._foreign = True
        if message.role in {"system", "developer"}:
            self._add_system(message)
            return
        role = "assistant" if message.role == "assistant" else "user"
        results, blocks = self._open_turn(role)
        for part in message.parts:
            if isinstance(part, ToolCall if role == "user" else ToolResult):
                self.losses.add(f"{'calls' if role == 'user' else 'results'} of an {role} message left out")
            elif (block := self._block(part, role)) is not None:
                (results if isinstance(part, ToolResult) else blocks).append(block)

    def _add_system(self, message: Message) -> None:
        texts = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
        for part in message.parts:
            if not isinstance(part, Text):
                self._leave_out(part)
        if self.at_head and message.native is not None:
            self._system.extend(self._system_prompt(part.text) for part in texts)
            return
        # a made message (a checkpoint) must stay in the list, where a later fold looks for it
        prefix = "" if message.injected or message.native is None else SYSTEM_NOTE
        _, blocks = self._open_turn("user")
        blocks.extend(self._text(prefix + part.text) for part in texts)
        if texts:
            self.losses.add("system messages became user messages")

    def _open_turn(self, role: str) -> tuple[list[Block], list[Block]]:
        """Return the results and blocks of the open turn; starts a new turn if the role changes."""
        if self._turn is None or self._turn[0] != role:
            self._flush()
            self._turn = (role, [], [])
            if role == "assistant":
                self._ids.batch()
        return self._turn[1], self._turn[2]

    def _flush(self) -> None:
        if self._turn is None:
            return
        messages = self._messages_of(*self._turn)
        self._turn = None
        self._encoded = self._encoded or bool(messages and not self._out)
        self._out += messages

    def _leave_out(self, part: Part) -> None:
        """Count a part as left out."""
        if isinstance(part, Media):
            self.losses.add(f"{part.kind} left out")
        else:
            self._count_loss(part)

    def _joined_system(self) -> Any | None:
        """Return a single system prompt as received; several become text blocks."""
        if len(self._system) < 2:
            return super()._joined_system()
        blocks: list[Any] = []
        for prompt in self._system:
            if isinstance(prompt, list):
                blocks.extend(items_of(prompt))
            elif str(prompt).strip():
                blocks.append(self._text(str(prompt)))
        return blocks
