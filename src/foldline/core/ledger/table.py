"""The ledger as a table: one row a kind of fact, each a module that can collect, merge and bound.

A new kind is one file in `facts/`, its struct and its field of `Ledger`, and one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

import msgspec

from foldline.core.cut.recalled import without_recall
from foldline.core.ledger.facts import checks, commits, constraints, files, items, met, plan, tools
from foldline.core.ledger.facts.actions import Stretch, stretch
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Said


class Kind(Protocol):
    """What a module does for its kind of fact."""

    def collect(self, found: Stretch, /) -> tuple[Any, ...]:
        """Take the facts of a stretch of entries, oldest first."""
        ...

    def merge(self, old: Sequence[Any], new: Sequence[Any], later: Ledger, /) -> tuple[Any, ...]:
        """Put the facts of a later range, whose ledger is `later`, to those of an earlier one."""
        ...

    def bound(self, facts: Sequence[Any], /) -> tuple[Any, ...]:
        """Return what is carried to the next fold, however long the session is."""
        ...


KINDS: Mapping[str, Kind] = {
    "items": items,
    "constraints": constraints,
    "files": files,
    "checks": checks,
    "commits": commits,
    "plan": plan,
    "tools": tools,
    "names": met,
}  # the names are the fields of Ledger


def collect(entries: Sequence[Said]) -> Ledger:
    """Take every kind of fact from entries; what recall put into them is no new fact."""
    entries = without_recall(entries)
    found = stretch(entries)
    facts: dict[str, Any] = {name: kind.collect(found) for name, kind in KINDS.items()}
    turns = sum(item.kind == "user" for item in facts["items"])
    return Ledger(**facts, turns=turns, messages=len(entries), base=found.base)


def merge(old: Ledger, new: Ledger) -> Ledger:
    """Merge two ledgers, the second of a range that follows the first's."""
    facts: dict[str, Any] = {
        name: kind.merge(getattr(old, name), getattr(new, name), new) for name, kind in KINDS.items()
    }
    return Ledger(
        **facts,
        base=new.base or old.base,
        goes_on=new.goes_on,
        turns=old.turns + new.turns,
        messages=old.messages + new.messages,
    )


def bounded(ledger: Ledger) -> Ledger:
    """Return a ledger that is bounded, however long the session is."""
    return msgspec.structs.replace(
        ledger, **{name: kind.bound(getattr(ledger, name)) for name, kind in KINDS.items()}
    )


def current(folded: Ledger, kept: Sequence[Said]) -> Ledger:
    """Return the ledger of what is folded, brought up to date by what is kept.

    What was said and done in kept entries stands in the view word for word: no item tells it again. Newer
    rules, plans and states of files and checks replace older ones.
    """
    tail = collect(kept)
    full = merge(folded, tail)
    ids = {entry.id for entry in kept}
    return msgspec.structs.replace(
        full,
        items=folded.items,
        checks=tuple(fact for fact in full.checks if not _only_in(fact.entries, ids)),
        commits=tuple(fact for fact in full.commits if not _only_in(fact.entries, ids)),
        files=tuple(fact for fact in full.files if not _only_in(fact.entries, ids)),
        names=folded.names,
        base=folded.base or tail.base,
        goes_on=bool(kept) and not any(kept[0].message.is_prompt for _ in kept[:1]),
        turns=folded.turns,
        messages=folded.messages,
    )


def _only_in(entries: Sequence[str], kept: AbstractSet[str]) -> bool:
    return bool(entries) and set(entries) <= kept


def within(ledger: Ledger, tokens: int, count: Callable[[str], int]) -> tuple[Ledger, tuple[str, ...]]:
    """Return the ledger with as many standing constraints as fit, newest first, and the texts of the others.

    Pinned ones are always in.
    """
    left = tokens
    stay: set[int] = set()
    for index in range(len(ledger.constraints) - 1, -1, -1):
        fact = ledger.constraints[index]
        size = count(fact.text) + 4
        if fact.pinned or size <= left:
            left -= size
            stay.add(index)
    inside = tuple(fact for i, fact in enumerate(ledger.constraints) if i in stay)
    excess = tuple(fact.text for i, fact in enumerate(ledger.constraints) if i not in stay)
    return msgspec.structs.replace(ledger, constraints=inside), excess
