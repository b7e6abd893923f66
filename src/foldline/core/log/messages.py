"""Messages and their parts, independent of the dialect in which they were received.

The native payload is kept as received. Parts are shaped like Anthropic's content blocks, the superset of the
dialects; what no part can express is `Opaque` and stays in its dialect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

Role = Literal["system", "developer", "user", "assistant", "tool"]


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens that a provider counted for one reply; the first four do not overlap.

    `input` is uncached input, `output` includes reasoning, `cache_write_hour` is the part of `cache_write`
    that is cached for an hour. `outdated`: the view was folded, or a fold undone, while the reply was made;
    the figures are what it cost, and not the size of the view that it was added to.
    """

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cache_write_hour: int = 0
    outdated: bool = False

    @property
    def total(self) -> int:
        """The context size after the reply, in tokens."""
        return self.input + self.cache_read + self.cache_write + self.output


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Plain text."""

    text: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True):
    """Reasoning of a model; `signature` binds it to the exact messages before it."""

    text: str = ""
    signature: str | None = None


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call"):
    """A tool call. `arguments` is the parsed object, or the text as received if it does not parse."""

    id: str
    name: str
    arguments: dict[str, Any] | str


class Media(msgspec.Struct, frozen=True, tag="media", omit_defaults=True):
    """An image, a document or a sound: its kind, MIME type, and base64 data, URL or file id."""

    kind: str
    mime: str = ""
    data: str | None = None
    url: str | None = None
    name: str | None = None


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """A block that only its own dialect understands (encrypted, server-side, unknown), as received."""

    dialect: str
    kind: str
    data: Any


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True):
    """The result of the call `call_id`; `served`: read from a block that the provider ran."""

    call_id: str
    content: tuple[Text | Media | Opaque, ...] = ()
    is_error: bool = False
    served: bool = False

    @property
    def text(self) -> str:
        """The text of the result, without media."""
        return "\n".join(part.text for part in self.content if isinstance(part, Text))


Part = Text | Thinking | ToolCall | ToolResult | Media | Opaque


class Native(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message as received: its dialect, and the JSON bytes (as received, or serialised at append).

    A malformed message is repaired when it is read: `raw` is then what may be sent, `mended` says what was
    changed, and `received` holds the original bytes.
    """

    dialect: str
    raw: bytes
    mended: tuple[str, ...] = ()
    received: bytes = b""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message: its role, its parts in order, and what came with it.

    `injected` marks a user-role message that a program wrote (a reminder, an attachment, a hook's output); it
    holds no request or constraint of the user. `name` is the speaker's if several people speak as the user.
    `stop` is why the model stopped: end, tools, length, aborted or error; a log may hold other values.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    native: Native | None = None
    usage: Usage | None = None
    model: str | None = None
    stop: str | None = None
    injected: bool = False
    name: str | None = None

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolResult))

    @property
    def is_prompt(self) -> bool:
        """Whether a person wrote at least part of it: a user message that is not only tool results."""
        return (
            self.role == "user"
            and not self.injected
            and any(not isinstance(part, ToolResult) for part in self.parts)
        )


def texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message, its thinking and its tool results, but not its arguments."""
    for part in message.parts:
        if isinstance(part, Text | Thinking | ToolResult):
            yield part.text
