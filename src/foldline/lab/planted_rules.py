"""What is planted into a session to see whether it survives: lasting rules, and settings that change."""

from __future__ import annotations

from typing import NamedTuple

from foldline.core.log.messages import Message, Text

RULES = (
    "Never push to the branch release/frozen.",
    "Always write dates as day-month-year in the reports.",
    "No file under ledger/archive may be deleted.",
    "All error messages must name the account they are about.",
    "Don't call the payment sandbox from the tests.",
    "Every new table needs an owner column.",
)


class Replaced(NamedTuple):
    """A rule that a later one replaces."""

    old: str
    new: str


REPLACED = (
    Replaced("Always use port 7171 for the demo server.", "Always use port 7272 for the demo server."),
    Replaced("Batches must never exceed 250 rows.", "Batches must never exceed 900 rows."),
    Replaced("Only use yarn in the admin folder.", "Only use bun in the admin folder."),
    Replaced("The session timeout must be 15 minutes.", "The session timeout must be 40 minutes."),
)


def first_words() -> list[Message]:
    """Return the exchange that plants the rules and the first settings."""
    lines = [*RULES, *(one.old for one in REPLACED)]
    return _exchange("Some rules for all of this work:", lines, "Understood, I keep to these rules.")


def second_words() -> list[Message]:
    """Return the exchange that replaces the settings."""
    return _exchange(
        "Some of that changes from now on:", [one.new for one in REPLACED], "Understood, changed."
    )


def _exchange(head: str, lines: list[str], answer: str) -> list[Message]:
    said = "\n".join([head, *(f"- {line}" for line in lines)])
    return [Message("user", (Text(said),)), Message("assistant", (Text(answer),))]
