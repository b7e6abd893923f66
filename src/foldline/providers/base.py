"""The provider protocol: one model behind one API, which returns replies whole or as a stream.

A provider sends a request and reports the reply. It does not retry (`retry.py` does) or fold, and keeps only
its connections between two calls.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, Literal, Protocol

import msgspec

from foldline import tracing
from foldline.core.log.messages import Usage
from foldline.core.measure.overflow import Overflow
from foldline.errors import ProviderError

Stop = Literal["end", "tools", "length", "refused", "error"]
DeltaKind = Literal["text", "thinking", "call", "restart", "wait"]

# Seconds for a whole reply, or between two events of a stream: the SDKs' default.
PATIENCE: Final = 600.0

__all__ = ["PATIENCE", "Call", "Delta", "DeltaKind", "Provider", "ProviderError", "Reply", "Stop", "traced"]


class Call(msgspec.Struct, frozen=True):
    """One request: native messages in the provider's dialect, and its options.

    `system` and `tools` are in the dialect's form (in `openai-chat` the system prompt becomes the first
    message). `max_tokens` limits the reply (None: the API's default, for Anthropic the model's output limit).
    `thinking` None leaves it to the model, False switches it off where the API can, True on. `timeout` in
    seconds is for a whole reply, or between two events of a stream (None: 600). Above `compact_at` input
    tokens the provider compacts on its server, if it can.
    """

    messages: list[Any]
    system: Any = None
    tools: Any = None
    max_tokens: int | None = None
    thinking: bool | None = None
    timeout: float | None = None
    compact_at: int | None = None


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """A piece of a reply as it streams in: of its text, its thinking, or a tool call.

    For a call, `index` counts the calls of the reply from 0, `id` and `name` come with its first piece, and
    `text` is the next piece of its arguments. A provider that retries (`retry.py`) also sends `restart`: all
    earlier pieces are void; and `wait`: attempt number `index` failed (`text` says how), and the next one
    starts in about `seconds`.
    """

    kind: DeltaKind
    text: str = ""
    index: int = 0
    id: str | None = None
    name: str | None = None
    seconds: float = 0.0


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's reply.

    `native` is the provider's whole reply (a ChatCompletion, a Response, a Message) as a dict:
    `session.append` and the dialect's `decode_reply` read message and usage from it. `text` is only its text.
    `stop` is why it ended, `reason` the API's word for it; `tokens_asked` is the `max_tokens` that was sent.
    `overflow`: the provider answered, but counted more input than the model's known window: the context must
    be folded. `empty`: the reply has no text and no call, at most thinking.
    """

    native: dict[str, Any]
    text: str
    usage: Usage | None
    stop: Stop
    model: str
    tokens_asked: int | None = None
    overflow: Overflow | None = None
    reason: str = ""
    empty: bool = False


class Provider(Protocol):
    """A model. Tasks of one event loop may share it; `close` ends its connections."""

    @property
    def name(self) -> str:
        """Name the model as `provider:model`."""
        ...

    @property
    def dialect(self) -> str:
        """Name the dialect of its messages: openai-chat, openai-responses or anthropic."""
        ...

    async def complete(self, call: Call) -> Reply:
        """Request a whole reply; raises ProviderError. Cancelling closes the connection."""
        ...

    def stream(self, call: Call) -> AsyncIterator[Delta | Reply]:
        """Stream a reply piece by piece, the whole Reply last; raises ProviderError.

        Closing the iterator before its end, or cancelling, closes the connection.
        """
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


def traced(usage: Usage | None) -> dict[str, tracing.Value]:
    """Return the usage as attributes of a call's span; {} if it is unknown."""
    if usage is None:
        return {}
    return {
        tracing.INPUT_TOKENS: usage.total - usage.output,
        tracing.CACHE_READ_TOKENS: usage.cache_read,
        tracing.CACHE_WRITE_TOKENS: usage.cache_write,
        tracing.OUTPUT_TOKENS: usage.output,
    }
