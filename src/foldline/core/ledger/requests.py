"""What the user asked, word for word."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.ledger.facts import RequestFact
from foldline.core.ledger.origin import prompts
from foldline.core.log.entries import Said


def collect(entries: Sequence[Said]) -> tuple[RequestFact, ...]:
    """Take the user's own words from the messages that a person wrote."""
    return tuple(RequestFact("\n".join(spans), entry.id) for entry, spans in prompts(entries))


def merge(old: Sequence[RequestFact], new: Sequence[RequestFact]) -> tuple[RequestFact, ...]:
    """Merge the requests of two ranges, one for each entry; those read back from a checkpoint cite none."""
    return tuple({fact.entry or fact.text: fact for fact in (*old, *new)}.values())
