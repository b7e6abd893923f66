"""The page as headings with lines below them: filled within a budget, and split again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from foldline.core.ledger.page.constraints import CLOSE, OPEN, block, without_blocks

Count = Callable[[str], int]

GOAL = "## Goal"
CONSTRAINTS = "## Constraints & Preferences"
WORK_LOG = "## Work Log"
PROGRESS = "## Progress"
DONE = "### Done"
IN_PROGRESS = "### In Progress"
BLOCKED = "### Blocked"
DECISIONS = "## Key Decisions"
NEXT_STEPS = "## Next Steps"
CONTEXT = "## Critical Context"
INDEX = "## Index"
HEADINGS = (
    GOAL,
    CONSTRAINTS,
    WORK_LOG,
    PROGRESS,
    DONE,
    IN_PROGRESS,
    BLOCKED,
    DECISIONS,
    NEXT_STEPS,
    CONTEXT,
    INDEX,
)
UNDER_PROGRESS = (DONE, IN_PROGRESS, BLOCKED)
NOTHING = "(none)"


class Sheet:
    """The lines under each heading, and the tokens that are left for more."""

    def __init__(self, budget: int, count: Count) -> None:
        self.budget = budget
        self.count = count
        self.parts: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
        self.tail: list[str] = []
        self.used = count("\n\n".join((*HEADINGS, OPEN, CLOSE)))

    @property
    def left(self) -> int:
        """Tokens of the budget that nothing has taken."""
        return self.budget - self.used

    def add(self, heading: str, lines: Iterable[str], most: int) -> int:
        """Add lines to a part while they fit into `most` tokens and the budget; return the tokens taken."""
        taken = 0
        for line in lines:
            cost = self.count(line) + 1
            if taken + cost > most or cost > self.left:
                continue
            self.parts[heading].append(line)
            self.used += cost
            taken += cost
        return taken

    def add_newest_first(self, heading: str, lines: Iterable[str], most: int) -> int:
        """Add lines that come newest first, so that these get the room; they stand oldest first."""
        part = self.parts[heading]
        start = len(part)
        taken = self.add(heading, lines, most)
        part[start:] = reversed(part[start:])
        return taken

    def lines(self) -> list[str]:
        """Return the lines of all parts."""
        return [line for lines in self.parts.values() for line in lines]

    def text(self) -> str:
        """Write the page."""
        blocks: list[str] = []
        for heading in HEADINGS:
            lines = self._told(heading)
            progress = heading == PROGRESS and any(self.parts[part] for part in UNDER_PROGRESS)
            if lines or progress:
                blocks.append("\n".join((heading, *lines)))
        if self.tail:
            blocks.append(without_blocks("\n".join(self.tail)))
        return "\n\n".join(blocks)

    def _told(self, heading: str) -> list[str]:
        """Return the lines of a part: the rules in their block, which no other line can begin or end."""
        if heading == CONSTRAINTS:
            return block(self.parts[heading])
        return [without_blocks(line) for line in self.parts[heading]]


def split(text: str) -> dict[str, list[str]]:
    """Split a page at its headings: the lines below each, blank ends cut."""
    found: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    current: list[str] = []
    waiting = list(HEADINGS)
    for line in text.split("\n"):
        if line in waiting:
            waiting = waiting[waiting.index(line) + 1 :]
            current = found[line]
        else:
            current.append(line)
    for lines in found.values():
        while lines and not lines[-1].strip():
            lines.pop()
        if lines == [NOTHING]:
            lines.clear()
    return found
