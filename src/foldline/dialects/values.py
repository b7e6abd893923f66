"""What every dialect answers with: rendered messages, problems found, and what a conversion left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

OPENAI_CHAT = "openai-chat"
OPENAI_RESPONSES = "openai-responses"
ANTHROPIC = "anthropic"
UI_MESSAGE = "ui-message"

FILE_ID = "file-id:"  # a Media whose url starts so is a file uploaded to its provider, known there alone


class Rendered(msgspec.Struct, frozen=True):
    """Messages ready to send, the system prompt where the dialect takes it apart, and what was left out."""

    messages: list[Any]
    system: Any | None = None
    warnings: tuple[str, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """A broken rule: the place of the message (-1: the list or the system prompt), the rule's name, what is wrong."""

    index: int
    rule: str
    text: str


Say = Callable[[str, str], None]  # takes a rule's name and what is wrong


def noted(problems: list[Problem], index: int) -> Say:
    """Return what adds a problem of the message at `index`."""

    def say(rule: str, text: str) -> None:
        problems.append(Problem(index, rule, text))

    return say


class Losses:
    """Counts what a conversion could not carry, one line a kind."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, kind: str, count: int = 1) -> None:
        """Note that `count` things of a kind were left out or changed."""
        self._counts[kind] = self._counts.get(kind, 0) + count

    def lines(self) -> tuple[str, ...]:
        """One line a kind, with its count, in the order in which they were met."""
        return tuple(f"{kind} ({count})" for kind, count in self._counts.items())
