"""Standing constraints, word for word, in a block that code alone writes.

They come first in line for the budget. In everything else on the page, and in whatever a model wrote, the
block's tags are broken: what the block holds was said by the user, nothing outside it is read back as a rule.
They stand in the order in which they were said; one that may change an older one is marked as later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.ledger.page.items import MARK, whole_items, word_for_word

OPEN = "<user-rules>"
CLOSE = "</user-rules>"
LATER = " (said later: where a rule above differs, this one holds)"


def lines_of(facts: Iterable[ConstraintFact]) -> list[str]:
    """Write each as an item: its further lines are indented, so that none of them can close the block."""
    return [word_for_word(fact.told) + (LATER if fact.later else "") for fact in facts]


def block(lines: Sequence[str]) -> list[str]:
    """Put the tags around items; no block where there is none."""
    return [OPEN, *lines, CLOSE] if lines else []


def without_blocks(text: str) -> str:
    """Break every tag of a block in a text that others wrote; lines that are a tag alone go."""
    rows = [row for row in text.split("\n") if row.strip() not in (OPEN, CLOSE)]
    return "\n".join(rows).replace(OPEN, "< user-rules>").replace(CLOSE, "< /user-rules>")


def read(text: str) -> tuple[ConstraintFact, ...]:
    """Read the one block of a page back; a text with none, several or a broken one holds no rule."""
    rows = text.split("\n")
    if rows.count(OPEN) != 1 or rows.count(CLOSE) != 1:
        return ()
    inside = rows[rows.index(OPEN) + 1 : rows.index(CLOSE)]
    if not all(row.startswith((MARK, "  ")) for row in inside):
        return ()
    return tuple(
        ConstraintFact(text.removesuffix(LATER), "", later=text.endswith(LATER))
        for text in whole_items(inside)
    )
