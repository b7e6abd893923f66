"""The ledger as a table: one row a kind of fact: how it is collected, merged and bounded.

A new kind is one file in `facts/`, its struct and its field of `Ledger`, and one row here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from foldline.core.cut.notes import without_recall
from foldline.core.ledger.facts import constraints, files, items, met, runs
from foldline.core.ledger.facts.actions import NOTHING, Stretch, stretch
from foldline.core.ledger.facts.kinds import FileFact, Item, Ledger
from foldline.core.log.entries import Said


class FactKind(msgspec.Struct, frozen=True):
    """What is done for a kind of fact, oldest first in every list.

    `collect` takes the facts of a stretch of entries, `merge` puts those of a later range to those of an
    earlier one (its third argument is the later range's ledger). `bound` is how many of the newest are
    carried to the next fold, or returns what is.
    """

    collect: Callable[[Stretch], tuple[Any, ...]]
    merge: Callable[[Sequence[Any], Sequence[Any], Ledger], tuple[Any, ...]]
    bound: int | Callable[[Sequence[Any]], tuple[Any, ...]]

    def bounded(self, facts: Sequence[Any]) -> tuple[Any, ...]:
        """Return the facts that are carried to the next fold, however long the session is."""
        return tuple(facts[-self.bound :]) if isinstance(self.bound, int) else self.bound(facts)


KINDS: Mapping[str, FactKind] = {
    "items": FactKind(items.collect, items.merge, items.bound),
    "constraints": FactKind(constraints.collect, constraints.merge, tuple),  # no rule is dropped
    "files": FactKind(files.collect, files.merge, 300),
    "checks": FactKind(runs.checks, runs.merge_checks, 24),
    "commits": FactKind(runs.commits, runs.merge_commits, 20),
    "uncommitted": FactKind(runs.uncommitted, runs.merge_uncommitted, 60),
    "plan": FactKind(runs.plan, runs.merge_plan, 60),
    "tools": FactKind(runs.tools, runs.merge_tools, 60),
    "names": FactKind(met.collect, met.merge, tuple),
}  # the names are the fields of Ledger
BROUGHT_UP_TO_DATE = ("constraints", "checks", "commits", "uncommitted")


def collect(entries: Sequence[Said], before: Ledger = NOTHING, without: Collection[str] = ()) -> Ledger:
    """Take every kind of fact from entries but those left out; what recall put into them is not taken as new.

    `before` is what is known of what came before them: the entries may end its rules, and push its commits or
    take them back.
    """
    entries = without_recall(entries)
    found = stretch(entries, before)
    facts: dict[str, Any] = {name: kind.collect(found) for name, kind in KINDS.items() if name not in without}
    turns = sum(item.kind == "user" for item in facts["items"])
    tokens = sum(entry.tokens for entry in entries)
    return Ledger(
        **facts,
        base=found.base,
        branch=runs.branch(found),
        committed=runs.committed(found),
        turns=turns,
        messages=len(entries),
        tokens=tokens,
    )


def merge(old: Ledger, new: Ledger) -> Ledger:
    """Merge two ledgers, the second of a range that follows the first's."""
    facts: dict[str, Any] = {
        name: kind.merge(getattr(old, name), getattr(new, name), new) for name, kind in KINDS.items()
    }
    return Ledger(
        **facts,
        base=new.base or old.base,
        branch=new.branch or old.branch,
        goal=new.goal or old.goal,
        goes_on=new.goes_on,
        committed=old.committed or new.committed,
        turns=old.turns + new.turns,
        messages=old.messages + new.messages,
        tokens=old.tokens + new.tokens,
    )


def extended(ledger: Ledger, entries: Sequence[Said]) -> Ledger:
    """Return the ledger of a range and of the entries that follow it.

    The user's new words are read from the entries: an item may hold only a part of them.
    """
    return with_next(ledger, collect(entries, ledger))


def with_next(old: Ledger, new: Ledger) -> Ledger:
    """Merge two ledgers of which the second has brought rules, checks and commits of the first up to date."""
    merged = merge(old, msgspec.structs.replace(new, constraints=()))
    return msgspec.structs.replace(merged, **{name: getattr(new, name) for name in BROUGHT_UP_TO_DATE})


def bounded(ledger: Ledger) -> Ledger:
    """Return a ledger that is bounded, however long the session is."""
    facts = {name: kind.bounded(getattr(ledger, name)) for name, kind in KINDS.items()}
    return msgspec.structs.replace(ledger, **facts, last=None, answer="")


def current(folded: Ledger, kept: Sequence[Said]) -> Ledger:
    """Return the ledger of what is folded, brought up to date by what is kept.

    Kept entries are in the view word for word: only the state repeats what they say, no item does. Newer
    rules, plans and states of files and checks replace older ones.
    """
    tail = collect(kept, folded, without=("names",))
    full = with_next(folded, tail)
    ids = {entry.id for entry in kept}
    return msgspec.structs.replace(
        full,
        items=folded.items,
        files=_not_only_in(full.files, ids),
        names=folded.names,
        base=folded.base or tail.base,
        asked=tail.newest_request,
        last=next(reversed((*folded.items, *tail.items)), None),
        answer=_answer(folded.items, tail.items),
        goes_on=bool(kept) and not kept[0].message.is_prompt,
        turns=folded.turns,
        messages=folded.messages,
        tokens=folded.tokens,
    )


def _answer(folded: Sequence[Item], kept: Sequence[Item]) -> str:
    """Return what the assistant said last before the newest request; "" where that is kept."""
    items = (*folded, *kept)
    newest = max((at for at, item in enumerate(items) if item.kind == "user"), default=0)
    at = max((at for at in range(newest) if items[at].kind == "said"), default=len(folded))
    return items[at].text if at < len(folded) else ""


def _not_only_in(facts: Sequence[FileFact], kept: set[str]) -> tuple[FileFact, ...]:
    return tuple(fact for fact in facts if not fact.entries or not kept.issuperset(fact.entries))


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
