"""The items of a list of work that are being worked on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foldline.core.ledger.facts.kinds import OpenFact
from foldline.core.ledger.page.items import MARK, items, text_of
from foldline.core.ledger.page.sheet import IN_PROGRESS, Sheet
from foldline.core.ledger.text.sentences import clip

SHARE = 0.08  # of the budget
LONGEST = 240  # characters of one item


def is_begun(fact: OpenFact) -> bool:
    """Whether an item is being worked on, as the tool that keeps the list puts it."""
    return fact.state in ("in_progress", "in progress", "active")


def line_of(fact: OpenFact) -> str:
    """Write one item."""
    return MARK + clip(fact.text, LONGEST)


def write(sheet: Sheet, facts: Sequence[OpenFact], most: int) -> None:
    """Write the items that are being worked on, as many as fit."""
    sheet.add(IN_PROGRESS, (line_of(fact) for fact in facts if is_begun(fact)), most)


def read(lines: Sequence[str]) -> Iterator[OpenFact]:
    """Read the section back."""
    for item in items(lines):
        yield OpenFact(text_of(item[0]), "todo", "in_progress")
