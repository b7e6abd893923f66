"""A summary as the user wrote or edited it."""

from __future__ import annotations

import msgspec

from foldline.core.compact.rebase import Draft
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted
from foldline.core.secrets.redact import redact
from foldline.errors import InputError

EDITED = "by hand"  # the summariser of a checkpoint whose text the user wrote


def with_summary(draft: Draft, text: str) -> Draft:
    """Return a draft with the summary that the user made of its own.

    Standing constraints that the text no longer holds are dropped. Raises InputError for an empty text, and
    for a boundary that has no summary.
    """
    boundary = draft.boundary
    if not isinstance(boundary, Compacted):
        raise InputError("only old tool results are taken out here: there is no summary to edit")
    if not text.strip():
        raise InputError("the summary is empty: leave `summary` out to commit it as it was shown")
    ledger = held_in(text, msgspec.convert(boundary.ledger, Ledger))
    edited = msgspec.structs.replace(
        boundary,
        checkpoint=msgspec.structs.replace(boundary.checkpoint, summary=redact(text)),
        ledger=msgspec.to_builtins(ledger),
        receipt=msgspec.structs.replace(boundary.receipt, summarizer=EDITED),
    )
    return msgspec.structs.replace(draft, boundary=edited)


def held_in(text: str, ledger: Ledger) -> Ledger:
    """Return a ledger without the standing constraints that the user took out of the text."""
    there = " ".join(text.split())
    held = tuple(fact for fact in ledger.constraints if " ".join(fact.text.split()) in there)
    return msgspec.structs.replace(ledger, constraints=held)
