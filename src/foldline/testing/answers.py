"""Answers and refusals of a scripted model, and the finished reply."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, cast

import msgspec

from foldline.core.log.messages import ToolCall, Usage
from foldline.testing.request import Asked
from foldline.testing.wire import Gate

Stop = Literal["end", "tools", "length", "refused", "paused"]

_FRAGMENTS = 40  # pieces of a long text
_SHORTEST = 24  # characters of a piece of a short text


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's answer: text, tool calls and thinking, in any combination.

    `calls` also takes what `call` and `calls` return; a call without an id gets one. `stop` None: derived
    from the other fields; "paused" is Anthropic's `pause_turn`, after which the client sends the reply back,
    and "end" for the other APIs. `usage` None: counted from the request and the answer, with a simulated
    prompt cache. `wait` is the delay before the first byte: seconds, or until a `Gate` opens. `summary` is
    the text of the server's own compaction, if the request causes one.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str | None = None
    stop: Stop | None = None
    usage: Usage | None = None
    wait: float | Gate = 0.0
    summary: str = "What was said before, in the words of the server."

    def __post_init__(self) -> None:
        given = cast("Iterable[object]", self.calls)
        calls = tuple(
            call for item in given for call in (item.calls if isinstance(item, Answer) else (item,))
        )
        if not all(isinstance(call, ToolCall) for call in calls):
            raise TypeError("`calls` takes ToolCalls, or what `call` and `calls` return")
        msgspec.structs.force_setattr(self, "calls", calls)


class Refusal(Exception):
    """An error of a provider, raised by the rules or part of a script.

    `status` is the HTTP status. Without `text` (and `kind`, the error's type) it has the provider's usual
    text for that status. `code` and `param` are OpenAI's fields, `retry_after` (seconds) becomes the header.
    """

    def __init__(
        self,
        status: int,
        text: str = "",
        *,
        kind: str | None = None,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(text or f"status {status}")
        self.status = status
        self.text = text
        self.kind = kind
        self.code = code
        self.param = param
        self.retry_after = retry_after

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of the error."""
        if self.retry_after is None:
            return []
        return [("retry-after", f"{self.retry_after:g}")]


Item = str | Answer | Refusal | Callable[[Asked], Any]  # a function returns an Item


def call(name: str, /, **arguments: Any) -> Answer:
    """Return an answer that calls one tool with these arguments."""
    return Answer(calls=(ToolCall("", name, arguments),))


def calls(*answers: Answer) -> Answer:
    """Put the calls of several answers into one answer, as parallel calls."""
    return Answer(
        text="\n".join(answer.text for answer in answers if answer.text),
        calls=tuple(call for answer in answers for call in answer.calls),
    )


class FinishedReply(msgspec.Struct, frozen=True):
    """A finished reply before it is written in a dialect. `key`: 24 characters, unique in a conversation.

    `compacted` is the summary (`anthropic`) or the encrypted text of the server's compaction before it.
    """

    key: str
    model: str
    text: str
    calls: tuple[ToolCall, ...]
    thinking: str | None
    signature: str | None
    stop: Stop
    usage: Usage
    request: Asked
    compacted: str | None = None


def fragments(text: str) -> list[str]:
    """Cut a text into the pieces of a stream."""
    size = max(_SHORTEST, -(-len(text) // _FRAGMENTS))
    return [text[start : start + size] for start in range(0, len(text), size)]
