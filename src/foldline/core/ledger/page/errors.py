"""An error on one line with where it came from; under Blocked, or under Done once it was fixed."""

from __future__ import annotations

import re
from collections.abc import Callable

from foldline.core.ledger.facts.kinds import ErrorFact
from foldline.core.ledger.page.commands import telling
from foldline.core.ledger.page.items import FIXED, MARK, WENT_WRONG, told_apart
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip

LONGEST, LONGEST_SOURCE = 240, 80
LONGEST_FIXED, LONGEST_FIXED_SOURCE = 140, 60

_FROM = " (from `"
_COUNT = re.compile(
    r"\W*(?:\d+ \w+|found \d+|elifecycle|error: script|npm err|fail(?:ed|ure)?s?)\b", re.IGNORECASE
)
_SOURCE = re.compile(r" \(from `(.*)`\)$")


def open_line_of(fact: ErrorFact, is_other: Callable[[str], bool]) -> str:
    """Write an error that stands; `is_other` says which lines are read as something else."""
    return told_apart(
        _with_source(fact.text, LONGEST, clip(fact.source, LONGEST_SOURCE)), WENT_WRONG, is_other
    )


def fixed_line_of(fact: ErrorFact) -> str:
    """Write an error that was fixed."""
    source = telling(fact.source, LONGEST_FIXED_SOURCE)
    return MARK + FIXED + _with_source(fact.text, LONGEST_FIXED, source)


def _with_source(text: str, longest: int, source: str) -> str:
    text = clip(text, longest).replace(_FROM, " (from '")
    return f"{text}{_FROM}{source}`)" if source else text


def is_fixed(line: str) -> bool:
    """Whether a line is that of an error that was fixed."""
    return line.startswith(MARK + FIXED)


def says_what(fact: ErrorFact) -> bool:
    """Whether an error names what was wrong, rather than that something was."""
    return bool(names.find(fact.text)) and not _COUNT.match(fact.text)


def read(line: str) -> ErrorFact:
    """Read a line back."""
    fixed = is_fixed(line)
    text = line.removeprefix(MARK).removeprefix(FIXED if fixed else WENT_WRONG)
    source = _SOURCE.search(text)
    if source is None:
        return ErrorFact(text, fixed=fixed)
    return ErrorFact(text[: source.start()], source.group(1), fixed=fixed)
