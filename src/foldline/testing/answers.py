"""What a scripted model answers, and the finished reply made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from foldline.core.log.messages import ToolCall, Usage
from foldline.testing.gate import Gate
from foldline.testing.refusals import Refusal
from foldline.testing.request import Asked

Stop = Literal["end", "tools", "length", "refused", "paused"]

_FRAGMENTS = 40  # a long text comes in this many pieces, a short one in pieces of some words
_SHORTEST = 24


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's answer: text, tool calls and thinking, in any combination.

    A call without an id gets one. `stop` None: it follows from the rest; "paused" is Anthropic's
    `pause_turn`, after which the reply is to be sent back, and an end for the other APIs. `usage` None: it is
    counted from the request and the answer, with a simulated prompt cache. `wait` seconds pass before the
    first byte, or a `Gate` opens.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str | None = None
    stop: Stop | None = None
    usage: Usage | None = None
    wait: float | Gate = 0.0


Item = str | Answer | Refusal | Callable[[Asked], Any]  # a function returns an Item


def call(name: str, /, **arguments: Any) -> Answer:
    """Return an answer that calls one tool with these arguments."""
    return Answer(calls=(ToolCall("", name, arguments),))


def calls(*answers: Answer) -> Answer:
    """Put the calls of several answers into one answer, as parallel calls."""
    return Answer(
        text="\n".join(answer.text for answer in answers if answer.text),
        calls=tuple(one for answer in answers for one in answer.calls),
    )


class FinishedReply(msgspec.Struct, frozen=True):
    """A finished reply, in no dialect yet. `key`: 24 characters, unique in a conversation."""

    key: str
    model: str
    text: str
    calls: tuple[ToolCall, ...]
    thinking: str | None
    signature: str | None
    stop: Stop
    usage: Usage
    asked: Asked


def fragments(text: str) -> list[str]:
    """Cut a text into the pieces of a stream."""
    size = max(_SHORTEST, -(-len(text) // _FRAGMENTS))
    return [text[start : start + size] for start in range(0, len(text), size)]
