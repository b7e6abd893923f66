"""Entries into a ledger: every kind of fact from one pass over the calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.cut.recalled import without_recall
from foldline.core.ledger.facts import (
    answers,
    commands,
    constraints,
    decisions,
    edits,
    errors,
    files,
    open_work,
    reports,
    requests,
    tools,
    values,
)
from foldline.core.ledger.facts.calls import uses
from foldline.core.ledger.facts.kinds import ErrorFact, Ledger
from foldline.core.ledger.worth import excerpts, stale, survey
from foldline.core.log.entries import Said


def collect(entries: Sequence[Said]) -> Ledger:
    """Take all facts from the entries, oldest first in each list. Never raises on odd input."""
    entries = without_recall(entries)
    calls = uses(entries)
    asked = requests.collect(entries)
    met = survey.survey(entries)
    touched = files.from_uses(calls)
    base = values.base_of(survey.root(met), touched)
    made = edits.edits(calls)
    outcomes = commands.judged(calls)
    replaced = stale.replaced_values(made)
    choices = decisions.made(entries)
    chosen = decisions.settled([fact for fact in choices if not stale.names_any(fact.text, replaced)])
    turned = (fact.text for fact in decisions.turned(choices) if fact.user)
    undone = (fact.text for fact in reports.taken_back(calls, entries))
    wrong = _with_edits(errors.from_uses(calls, outcomes), made, entries)
    mended = (fact.text for fact in wrong if fact.fixed)
    waiting = open_work.from_uses(calls, entries)
    stopped = frozenset(fact.entry for fact in waiting if fact.kind == "call" and fact.then)
    worked = [use for use in calls if use.result is not None or use.entry not in stopped]
    gone = frozenset(excerpts.opening_of(text) for text in (*turned, *undone, *mended))
    return Ledger(
        requests=asked,
        constraints=constraints.collect(entries),
        files=touched,
        commands=commands.from_uses(calls, outcomes),
        errors=wrong,
        decisions=chosen,
        values=values.from_uses(worked, base, replaced),
        open=waiting,
        tools=tools.from_uses(calls),
        reports=reports.from_uses(calls, entries, replaced),
        excerpts=(
            *answers.collect(entries, gone),
            *excerpts.choose(entries, met, made=made, base=base, gone=gone, stopped=stopped),
        ),
        turns=len(asked),
        messages=len(entries),
    )


def _with_edits(
    wrong: Sequence[ErrorFact], made: Sequence[edits.FileEdit], entries: Sequence[Said]
) -> tuple[ErrorFact, ...]:
    """Return the errors, those that an edit has outlived as fixed."""
    place = {entry.id: number for number, entry in enumerate(entries)}
    return tuple(
        msgspec.structs.replace(fact, fixed=fact.fixed or stale.outlived(fact, made, place)) for fact in wrong
    )
