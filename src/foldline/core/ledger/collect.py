"""Entries into a ledger: each kind of fact takes what is its own, from one pairing of calls with results."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.cut.recalled import without_recall
from foldline.core.ledger import work_log
from foldline.core.ledger.facts import (
    commands,
    commits,
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
from foldline.core.ledger.facts.calls import Use, uses
from foldline.core.ledger.facts.kinds import DecisionFact, ErrorFact, Ledger
from foldline.core.ledger.worth import excerpts
from foldline.core.ledger.worth.survey import root, survey
from foldline.core.log.entries import Said


def collect(entries: Sequence[Said]) -> Ledger:
    """Take all facts from the entries, oldest first in each list. Never raises on odd input."""
    entries = without_recall(entries)
    calls = uses(entries)
    changes = edits.edits(calls)
    replaced = edits.replaced_values(changes)
    outcomes = commands.judged(calls)
    met = survey(entries)

    asked = requests.collect(entries)
    touched = files.collect(calls)
    choices = decisions.made(entries)
    wrong = errors.collect(calls, outcomes, changes, {entry.id: at for at, entry in enumerate(entries)})
    waiting = open_work.collect(entries, calls)
    stopped = open_work.stopped(waiting)
    base = values.base_of(commands.home(calls), touched) or values.base_of(root(met), touched)
    gone = _no_longer_so(entries, calls, choices, wrong) | frozenset(
        map(excerpts.opening_of, commits.outdated(entries, calls, outcomes))
    )
    part_of = work_log.keys(entries, asked)
    return Ledger(
        requests=asked,
        constraints=constraints.collect(entries),
        files=touched,
        commands=work_log.last_in_work(
            commands.collect(calls, outcomes, work_log.changed_in(calls, changes)), part_of
        ),
        commits=commits.collect(calls, outcomes),
        errors=work_log.last_in_work(wrong, part_of),
        decisions=work_log.in_work(decisions.settled(choices, replaced), part_of),
        values=values.collect(
            [use for use in calls if use.result is not None or use.entry not in stopped], base, replaced
        ),
        open=waiting,
        tools=tools.collect(calls),
        reports=work_log.in_work(reports.collect(entries, calls, replaced), part_of),
        work=work_log.collect(entries, asked, calls, outcomes, gone=gone, edits=changes),
        excerpts=(
            *work_log.told_once(
                work_log.in_work(
                    excerpts.collect(entries, met, edits=changes, base=base, gone=gone, stopped=stopped),
                    part_of,
                )
            ),
        ),
        turns=len(asked),
        messages=len(entries),
    )


def _no_longer_so(
    entries: Sequence[Said],
    calls: Sequence[Use],
    choices: Sequence[DecisionFact],
    wrong: Sequence[ErrorFact],
) -> frozenset[str]:
    """Return how outdated sentences begin: choices and reports taken back, errors that were fixed."""
    texts = (
        *(fact.text for fact in decisions.turned(choices) if fact.user),
        *(fact.text for fact in reports.taken_back(entries, calls)),
        *(fact.text for fact in wrong if fact.fixed),
    )
    return frozenset(map(excerpts.opening_of, texts))
