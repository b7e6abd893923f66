"""What is committed and what is not, under Done."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from foldline.core.ledger.facts.kinds import CommitFact
from foldline.core.ledger.page.items import MARK, unticked
from foldline.core.ledger.page.sheet import DONE, Sheet
from foldline.core.ledger.text.paths import by_folder, of_folder, relative

SHARE = 0.02  # of the budget
SHOWN = 12  # files changed since, the newest

COMMITTED = "Committed: "
SINCE = "Not committed: "
_LINE = re.compile(r"- Committed: `([0-9a-f]{7,40})` on (\S+)( \(pushed\))?: (.*)$")
_PUSHED = " (pushed)"


def write(sheet: Sheet, facts: Sequence[CommitFact], base: str, most: int) -> None:
    """Write the newest commit and the files that were changed since."""
    for fact in facts[-1:]:
        sheet.add(DONE, lines_of(fact, base), max(most, min(sheet.left, 60)))


def lines_of(fact: CommitFact, base: str) -> list[str]:
    """Write a commit as one line, and what is not in it as another."""
    pushed = _PUSHED if fact.pushed else ""
    lines = [f"{MARK}{COMMITTED}`{fact.key}` on {fact.branch}{pushed}: {unticked(fact.subject)}"]
    later = [relative(path, base) for path in fact.later if not any(mark in path for mark in "`,\n")]
    if later:
        shown = "; ".join(f"`{line}`" for line in by_folder(later[-SHOWN:]))
        lines.append(f"{MARK}{SINCE}{shown}")
    return lines


def read(lines: Sequence[str]) -> tuple[CommitFact, ...]:
    """Read the lines back, from all lines of the section."""
    found = next((match for line in lines if (match := _LINE.match(line))), None)
    if found is None:
        return ()
    key, branch, pushed, subject = found.groups()
    fact = CommitFact(key, branch, subject, bool(pushed))
    since = next((line for line in lines if line.startswith(MARK + SINCE)), "")
    later = tuple(path for several in re.findall(r"`([^`]+)`", since) for path in of_folder(several))
    return (msgspec.structs.replace(fact, later=later),)


def is_commit(line: str) -> bool:
    """Whether a line is one of these."""
    return line.startswith((MARK + COMMITTED, MARK + SINCE))
