"""The message forms of frameworks: how they are decoded and encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from foldline.core.log.messages import Message
from foldline.dialects import OPENAI_CHAT, decode_placed
from foldline.transcripts.forms.lists import decode_list

T = TypeVar("T")


@dataclass(frozen=True)
class FrameworkForm(Generic[T]):
    """The message form of one framework.

    `decode` converts a list: each message may become several of ours, or none. One that becomes none is part
    of the message before it, or, if the form `leads`, of the next. `encode` converts native messages of
    `dialect` to the framework's; a Chat result has its tool's `name`.
    """

    dialect: str
    decode: Callable[[Sequence[T]], list[list[Message]]]
    encode: Callable[[Sequence[dict[str, Any]]], list[T]]
    leads: bool = False


def chat_form(
    read: Callable[[T], Sequence[dict[str, Any]]], write: Callable[[dict[str, Any]], T]
) -> FrameworkForm[T]:
    """Return a form whose messages are converted to lists of Chat Completions messages, and back."""
    return FrameworkForm(
        OPENAI_CHAT,
        lambda messages: read_chat([read(message) for message in messages]),
        lambda payloads: [write(payload) for payload in payloads],
    )


def native_form(dialect: str, write: Callable[[dict[str, Any]], T]) -> FrameworkForm[T]:
    """Return a form whose messages are native messages of a dialect, or objects with the same fields."""
    return FrameworkForm(
        dialect,
        lambda messages: read_list(messages, dialect),
        lambda payloads: [write(payload) for payload in payloads],
    )


def read_list(messages: Sequence[Any], dialect: str | None = None) -> list[list[Message]]:
    """Decode messages of a form that `foldline.compact` reads; return our messages for each."""
    decoded: list[list[Message]] = [[] for _ in messages]
    for place, message in decode_list(messages, dialect).placed:
        decoded[place].append(message)
    return decoded


def read_chat(payloads: Sequence[Sequence[dict[str, Any]]]) -> list[list[Message]]:
    """Decode lists of Chat Completions messages, one list for each message of a framework."""
    decoded: list[list[Message]] = [[] for _ in payloads]
    owners = [index for index, group in enumerate(payloads) for _ in group]
    for place, message in decode_placed([payload for group in payloads for payload in group], OPENAI_CHAT):
        decoded[owners[place]].append(message)
    return decoded
