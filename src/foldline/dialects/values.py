"""What the dialects return: rendered messages, problems, and what a conversion left out."""

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
    """Messages ready to send, the system prompt if the dialect sends it separately, and what was left out."""

    messages: list[Any]
    system: Any | None = None
    warnings: tuple[str, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """A broken rule: the message's index (-1: the list or the system prompt), the rule, a description."""

    index: int
    rule: str
    text: str


Report = Callable[[str, str], None]  # (rule, description)


def reporter(problems: list[Problem], index: int) -> Report:
    """Return a function that adds a problem with the message at `index`."""

    def report(rule: str, text: str) -> None:
        problems.append(Problem(index, rule, text))

    return report


def check_text(report: Report, value: Any) -> None:
    """Report text that cannot be encoded as UTF-8."""
    if in_utf8(value) is not value:
        report("text-surrogate", "the text contains half of a surrogate pair, which UTF-8 cannot encode")


class Losses:
    """Count what a conversion left out or changed, by kind."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, kind: str, count: int = 1) -> None:
        """Add `count` to a kind."""
        if count:
            self._counts[kind] = self._counts.get(kind, 0) + count

    def field(self, key: str) -> None:
        """Count a field that was left out."""
        self.add(f"field {key!r} left out")

    def lines(self) -> tuple[str, ...]:
        """Return a line for each kind with its count, in order of first occurrence."""
        return tuple(f"{kind} ({count})" for kind, count in self._counts.items())
