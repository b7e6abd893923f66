"""Entries into a ledger: every kind of fact from one pass over the calls."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.ledger import (
    commands,
    constraints,
    decisions,
    edits,
    errors,
    excerpts,
    files,
    open_work,
    requests,
    stale,
    survey,
    tools,
    values,
)
from foldline.core.ledger.calls import uses
from foldline.core.ledger.facts import Ledger
from foldline.core.log.entries import Said


def collect(entries: Sequence[Said]) -> Ledger:
    """Take all facts from the entries, oldest first in each list. Never raises on odd input."""
    calls = uses(entries)
    asked = requests.collect(entries)
    met = survey.survey(entries)
    touched = files.from_uses(calls)
    base = values.base_of(survey.root(met), touched)
    made = edits.edits(calls)
    return Ledger(
        requests=asked,
        constraints=constraints.collect(entries),
        files=touched,
        commands=commands.from_uses(calls),
        errors=errors.from_uses(calls),
        decisions=decisions.collect(entries),
        values=values.from_uses(calls, base, stale.replaced_values(made)),
        open=open_work.from_uses(calls, entries),
        tools=tools.from_uses(calls),
        excerpts=excerpts.choose(entries, met, made=made, base=base),
        turns=len(asked),
        messages=len(entries),
    )
