"""Standing constraints, word for word. They come first in line for the budget."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.ledger.page.items import whole_items, word_for_word
from foldline.core.ledger.page.sheet import CONSTRAINTS, Sheet


def write(sheet: Sheet, facts: Sequence[ConstraintFact], most: int) -> None:
    """Write as many as fit."""
    sheet.add(CONSTRAINTS, (word_for_word(fact.text) for fact in facts), most)


def read(lines: Sequence[str]) -> tuple[ConstraintFact, ...]:
    """Read the section back."""
    return tuple(ConstraintFact(text, "") for text in whole_items(lines))
