"""What is to be done: open items of lists, what the assistant said comes next, the request that waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foldline.core.ledger.facts.kinds import OpenFact
from foldline.core.ledger.facts.open_work import is_done
from foldline.core.ledger.page.goal import pasted
from foldline.core.ledger.page.in_progress import is_begun
from foldline.core.ledger.page.items import MARK, TO_DO, items, text_of, told_apart
from foldline.core.ledger.page.sheet import NEXT_STEPS, Sheet
from foldline.core.ledger.text.sentences import clip

SHARE = 0.07  # of the budget
LONGEST = 240  # characters of one step
LONGEST_REQUEST = 500  # and of the request that waits
SAID_NEXT = "Said to come next: "
ASKED_LAST = "Asked last (what follows this summary may answer it): "


def line_of(fact: OpenFact) -> str:
    """Write one step; of what is on no list, with who said it."""
    asked = fact.state == "asked"
    text = (asked and pasted(fact.text)) or clip(fact.text, LONGEST_REQUEST if asked else LONGEST)
    if fact.kind != "next":
        return told_apart(text, TO_DO, lambda line: line.startswith((MARK + SAID_NEXT, MARK + ASKED_LAST)))
    return MARK + (ASKED_LAST if fact.state == "asked" else SAID_NEXT) + text


def write(sheet: Sheet, facts: Sequence[OpenFact], most: int, newest: str = "") -> None:
    """Write what is neither done nor begun, as much as fits; the request of entry `newest` is told above."""
    waiting = (
        fact
        for fact in facts
        if fact.kind != "call"
        and not (is_begun(fact) or is_done(fact))
        and not (newest and fact.state == "asked" and fact.entry == newest)
    )
    sheet.add(NEXT_STEPS, map(line_of, waiting), most)


def read(lines: Sequence[str]) -> Iterator[OpenFact]:
    """Read the section back."""
    for item in items(lines):
        text = text_of(item[0])
        if text.startswith(SAID_NEXT):
            yield OpenFact(text.removeprefix(SAID_NEXT), "next")
        elif text.startswith(ASKED_LAST):
            yield OpenFact(text.removeprefix(ASKED_LAST), "next", "asked")
        else:
            yield OpenFact(text.removeprefix(TO_DO), "todo", "pending")
