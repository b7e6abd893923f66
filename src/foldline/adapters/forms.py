"""How frameworks write their messages, and how they are read."""

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
    """How one framework writes its messages.

    `decode` reads them: each may hold several of ours, or none. One that holds none is part of the one before
    it, or, where it `leads`, of the next. `encode` writes native messages of `dialect` as the framework's
    own; a Chat result has its tool's `name`.
    """

    dialect: str
    decode: Callable[[Sequence[T]], list[list[Message]]]
    encode: Callable[[Sequence[dict[str, Any]]], list[T]]
    leads: bool = False


def chat_form(
    read: Callable[[T], Sequence[dict[str, Any]]], write: Callable[[dict[str, Any]], T]
) -> FrameworkForm[T]:
    """Return the form of a framework whose messages are written as some of Chat Completions, and back."""
    return FrameworkForm(
        OPENAI_CHAT,
        lambda messages: read_chat([read(one) for one in messages]),
        lambda payloads: [write(one) for one in payloads],
    )


def native_form(dialect: str, write: Callable[[dict[str, Any]], T]) -> FrameworkForm[T]:
    """Return the form of a framework whose messages are native ones of a dialect, or objects of that form."""
    return FrameworkForm(
        dialect,
        lambda messages: read_list(messages, dialect),
        lambda payloads: [write(one) for one in payloads],
    )


def read_list(messages: Sequence[Any], dialect: str | None = None) -> list[list[Message]]:
    """Read messages of a form that `foldline.compact` reads: for each, what it holds."""
    read: list[list[Message]] = [[] for _ in messages]
    for place, message in decode_list(messages, dialect).placed:
        read[place].append(message)
    return read


def read_chat(payloads: Sequence[Sequence[dict[str, Any]]]) -> list[list[Message]]:
    """Read messages that were written as some Chat Completions messages each."""
    read: list[list[Message]] = [[] for _ in payloads]
    owners = [place for place, each in enumerate(payloads) for _ in each]
    for place, message in decode_placed([one for each in payloads for one in each], OPENAI_CHAT):
        read[owners[place]].append(message)
    return read
