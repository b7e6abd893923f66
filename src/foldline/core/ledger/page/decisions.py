"""Choices that were made, in the order in which they were made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from foldline.core.ledger.facts.kinds import DecisionFact
from foldline.core.ledger.page.items import MARK, items, text_of
from foldline.core.ledger.page.sheet import DECISIONS, Sheet
from foldline.core.ledger.text.sentences import clip

SHARE = 0.06  # of the budget
LONGEST = 300  # characters of one choice


def line_of(fact: DecisionFact) -> str:
    """Write one choice."""
    return MARK + clip(fact.text, LONGEST)


def write(sheet: Sheet, facts: Sequence[DecisionFact], rules: Iterable[str], most: int) -> None:
    """Write the choices that no rule says, as many as fit: the user's are first in line, then the newest."""
    known = frozenset(rules)
    newest = [fact for fact in reversed(facts) if fact.text not in known]
    line_up = sorted(newest, key=lambda fact: not fact.user)
    sheet.add(DECISIONS, map(line_of, line_up), most)
    place = {line_of(fact): number for number, fact in enumerate(facts)}
    sheet.parts[DECISIONS].sort(key=lambda line: place.get(line, -1))


def read(lines: Sequence[str]) -> tuple[DecisionFact, ...]:
    """Read the section back."""
    return tuple(DecisionFact(text_of(item[0]), "") for item in items(lines))
