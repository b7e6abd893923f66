"""Standing constraints, word for word, in a block that code alone writes.

In everything else of a checkpoint, and in whatever a model wrote, the block's tags are broken: what the
block holds was said by the user, nothing outside it is read back as a rule. They stand in the order in which
they were said; one that may change an older one is marked as later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from foldline.core.ledger.facts.kinds import ConstraintFact

OPEN = "<user-rules>"
CLOSE = "</user-rules>"
LATER = " (said later: where a rule above differs, this one holds)"
_MARK = "- "


def lines_of(facts: Iterable[ConstraintFact]) -> list[str]:
    """Write each as an item: its further lines are indented, so that none of them can close the block."""
    return [_MARK + fact.told.replace("\n", "\n  ") + (LATER if fact.later else "") for fact in facts]


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
    if not all(row.startswith((_MARK, "  ")) for row in inside):
        return ()
    return tuple(
        ConstraintFact(text.removesuffix(LATER), "", later=text.endswith(LATER)) for text in _whole(inside)
    )


def _whole(rows: Sequence[str]) -> Iterator[str]:
    """Yield items word for word, their further lines included."""
    item: list[str] = []
    for row in rows:
        if row.startswith(_MARK) and item:
            yield "\n".join(item)
            item = []
        item.append(row.removeprefix(_MARK) if row.startswith(_MARK) else row.removeprefix("  "))
    if item:
        yield "\n".join(item)
