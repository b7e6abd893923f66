"""A ledger in the light of what is kept: nothing superseded, nothing that kept messages say themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

import msgspec

from foldline.core.ledger.facts.commands import is_check
from foldline.core.ledger.facts.kinds import CommandFact, ErrorFact, FileFact, Ledger, ValueFact, WorkFact
from foldline.core.ledger.merge import merge
from foldline.core.ledger.worth import excerpts

Cited = TypeVar("Cited", FileFact, CommandFact, ErrorFact, ValueFact)


def current(folded: Ledger, tail: Ledger, *, kept: AbstractSet[str]) -> Ledger:
    """Return the ledger of what is folded, brought up to date by the ledger `tail` of the kept entries.

    Newer states, values and constraints of the tail replace older ones. Facts that stand in kept entries
    alone are left out: the view has them word for word.
    """
    full = merge(msgspec.structs.replace(folded, excerpts=()), msgspec.structs.replace(tail, excerpts=()))
    return msgspec.structs.replace(
        full,
        requests=tuple(fact for fact in full.requests if fact.entry not in kept),
        decisions=tuple(fact for fact in full.decisions if fact.entry not in kept),
        reports=tuple(fact for fact in full.reports if fact.entry not in kept),
        work=_unless_it_goes_on(folded.work, tail.work),
        files=_elsewhere(full.files, kept),
        commands=_commands(full.commands, kept),
        errors=_elsewhere(full.errors, kept),
        values=_elsewhere(full.values, kept),
        open=tuple(fact for fact in full.open if not (fact.kind == "call" and fact.entry in kept)),
        excerpts=excerpts.beside(folded.excerpts, tail.excerpts),
        turns=folded.turns,
        messages=folded.messages,
    )


def _unless_it_goes_on(work: Sequence[WorkFact], later: Sequence[WorkFact]) -> tuple[WorkFact, ...]:
    """Return the work that is folded; its last request is open where the kept messages go on with it."""
    if work and later and not later[0].key:
        return (*work[:-1], msgspec.structs.replace(work[-1], answered=False))
    return tuple(work)


def _elsewhere(facts: Sequence[Cited], kept: AbstractSet[str]) -> tuple[Cited, ...]:
    return tuple(fact for fact in facts if not fact.entries or not set(fact.entries) <= kept)


def _commands(facts: Sequence[CommandFact], kept: AbstractSet[str]) -> tuple[CommandFact, ...]:
    """Return the commands that ran before what is kept; where all of them are outdated, the newest check too.

    Without it the page would say that nothing was checked since the last change.
    """
    found = _elsewhere(facts, kept)
    fresh = [fact for fact in facts if is_check(fact) and not fact.outdated]
    outdated = any(map(is_check, found)) and all(fact.outdated for fact in found)
    return (*found, *fresh[-1:]) if outdated else found


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
