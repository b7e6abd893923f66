"""What the dialects return: rendered messages, problems found, changes made, what a conversion left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from foldline.core.log.codec import in_utf8

OPENAI_CHAT = "openai-chat"
OPENAI_RESPONSES = "openai-responses"
ANTHROPIC = "anthropic"
UI_MESSAGE = "ui-message"
BEDROCK_CONVERSE = "bedrock-converse"
GEMINI = "gemini"

FILE_ID = "file-id:"  # prefix of a Media's url: a file uploaded to its provider, known only there


class Rendered(msgspec.Struct, frozen=True):
    """Messages ready to send, the system prompt if the dialect takes it separately, and what was left out."""

    messages: list[Any]
    system: Any | None = None
    warnings: tuple[str, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """A broken rule: the message's index (-1: the list or the system prompt), the rule, what is wrong."""

    index: int
    rule: str
    text: str


Say = Callable[[str, str], None]  # takes a rule's name and what is wrong


def reporter(problems: list[Problem], index: int) -> Say:
    """Return a function that adds a problem of the message at `index`."""

    def say(rule: str, text: str) -> None:
        problems.append(Problem(index, rule, text))

    return say


def check_text(say: Say, value: Any) -> None:
    """Check that UTF-8 can carry a message or a system prompt; `say(rule, text)` takes what is wrong."""
    if in_utf8(value) is not value:
        say("text-surrogate", "a text holds half of a surrogate pair, which UTF-8 cannot carry")


class Losses:
    """Count what a conversion could not carry, by kind."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, kind: str, count: int = 1) -> None:
        """Count `count` things of a kind that were left out or changed."""
        if count:
            self._counts[kind] = self._counts.get(kind, 0) + count

    def field(self, key: str) -> None:
        """Count a field that was left out."""
        self.add(f"field {key!r} left out")

    def lines(self) -> tuple[str, ...]:
        """Return one line for each kind with its count, in the order first met."""
        return tuple(f"{kind} ({count})" for kind, count in self._counts.items())
