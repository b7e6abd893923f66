"""The rules that a user stated in a session: those that stand, and what ended the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from foldline.core.ledger.facts.constraints import Ended, history
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.log.entries import Compacted, Entry, Said
from foldline.stores.base import Store


class Rules(msgspec.Struct, frozen=True):
    """The standing rules of a session, and those that a later sentence ended; oldest first."""

    standing: tuple[ConstraintFact, ...]
    ended: tuple[Ended, ...]


def rules_of(entries: Sequence[Entry]) -> Rules:
    """Return the rules of a path."""
    said = [entry for entry in entries if isinstance(entry, Said)]
    return Rules(*history(said, _proven(entries)))


async def stored_rules(store: Store, session: str) -> Rules:
    """Return the rules of a stored session; reads its path."""
    path = [entry async for entry in store.path(session)]
    return await asyncio.to_thread(rules_of, path)  # seconds for a path of ten thousands of messages


def _proven(entries: Sequence[Entry]) -> frozenset[str]:
    """The rules in the boundaries' ledgers: a model may have named some that code alone does not find."""
    ledgers = (
        msgspec.convert(entry.ledger, Ledger)
        for entry in entries
        if isinstance(entry, Compacted) and entry.ledger
    )
    return frozenset(fact.text for ledger in ledgers for fact in ledger.constraints if fact.entry)
