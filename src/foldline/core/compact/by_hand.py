"""A summary as the user wrote or edited it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.obtain import EDITED
from foldline.core.compact.rebase import Draft
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted, StandingConstraints
from foldline.core.secrets.redact import redact
from foldline.errors import InputError


def with_summary(draft: Draft, text: str) -> Draft:
    """Return a draft with the summary that the user made of its own.

    Standing constraints that the text no longer holds are dropped, and the receipt names them. Raises
    InputError for an empty text, and for a boundary that has no summary.
    """
    boundary = draft.boundary
    if not isinstance(boundary, Compacted):
        raise InputError("only old tool results are taken out here: there is no summary to edit")
    if not text.strip():
        raise InputError("the summary is empty: leave `summary` out to commit it as it was shown")
    whole, receipt = msgspec.convert(boundary.ledger, Ledger), boundary.receipt
    ledger = held_in(text, whole)
    standing = _less(receipt.constraints, taken_out(whole, ledger))
    edited = msgspec.structs.replace(
        boundary,
        checkpoint=msgspec.structs.replace(boundary.checkpoint, summary=redact(text)),
        ledger=msgspec.to_builtins(ledger),
        receipt=msgspec.structs.replace(receipt, summarizer=EDITED, constraints=standing),
    )
    return msgspec.structs.replace(draft, boundary=edited)


def held_in(text: str, ledger: Ledger) -> Ledger:
    """Return a ledger without the standing constraints that the user took out of the text."""
    there = " ".join(text.split())
    held = tuple(fact for fact in ledger.constraints if " ".join(fact.text.split()) in there)
    return msgspec.structs.replace(ledger, constraints=held)


def taken_out(before: Ledger, after: Ledger) -> list[str]:
    """Return the texts of the standing constraints that an edit took out."""
    return [fact.text for fact in before.constraints if fact not in after.constraints]


def _less(standing: StandingConstraints | None, gone: Sequence[str]) -> StandingConstraints | None:
    """Return what a receipt says of standing constraints when some are gone from the view."""
    if not gone:
        return standing
    texts = tuple(text for text in standing.texts if text not in gone) if standing else ()
    excess = standing.excess if standing else ()
    return StandingConstraints(len(texts), texts, tuple(dict.fromkeys((*excess, *gone))))
