"""Choices that were made, in the order in which they were made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from foldline.core.ledger.facts.kinds import DecisionFact, Ledger, WorkFact
from foldline.core.ledger.page.items import MARK, items, text_of
from foldline.core.ledger.page.sheet import DECISIONS, Sheet
from foldline.core.ledger.text.sentences import clip

SHARE = 0.06  # of the budget
_MEANT = re.compile(r"\b(?:I|we)(?:['’]ll| will| should|['’](?:re|m) going to)\b|\blet['’]s\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{2,}")
LONGEST = 300  # characters of one choice


def line_of(fact: DecisionFact) -> str:
    """Write one choice."""
    return MARK + clip(fact.text, LONGEST)


def write(sheet: Sheet, ledger: Ledger, most: int) -> None:
    """Write the choices that no rule says, as many as fit: the user's are first in line, then the newest.

    One about a file that was deleted since holds no more, nor does what the assistant meant to do for a
    request before the newest: the work log says what it did.
    """
    known = frozenset(fact.text for fact in ledger.constraints)
    deleted = [fact.path for fact in ledger.files if fact.status == "deleted"]
    facts = [fact for fact in ledger.decisions if not _is_past(fact, ledger.work)]
    gone = [frozenset(map(str.lower, _WORD.findall(path.rpartition("/")[2]))) for path in deleted]
    newest = [
        fact
        for fact in reversed(facts)
        if fact.text not in known and (fact.user or not _is_about(fact, gone))
    ]
    line_up = sorted(newest, key=lambda fact: not fact.user)
    sheet.add(DECISIONS, map(line_of, line_up), most)
    place = {line_of(fact): number for number, fact in enumerate(facts)}
    sheet.parts[DECISIONS].sort(key=lambda line: place.get(line, -1))


def _is_past(fact: DecisionFact, work: Sequence[WorkFact]) -> bool:
    """Whether the assistant meant to do this for a request that was answered before the newest."""
    over = {one.key for one in work[:-1] if one.answered}
    return not fact.user and fact.work in over and bool(_MEANT.search(fact.text))


def _is_about(fact: DecisionFact, files: Iterable[frozenset[str]]) -> bool:
    """Whether a choice says most of the words of a file's name."""
    mine = frozenset(map(str.lower, _WORD.findall(fact.text)))
    return any(len(mine & file) >= max(2, len(file) - 1) for file in files)


def read(lines: Sequence[str]) -> tuple[DecisionFact, ...]:
    """Read the section back."""
    return tuple(DecisionFact(text_of(item[0]), "") for item in items(lines))
