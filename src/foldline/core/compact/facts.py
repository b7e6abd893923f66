"""What code knows of all that is folded, and the standing constraints of it that have room."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.carried.select import without_carried
from foldline.core.compact.job import CompactionInput
from foldline.core.ledger.facts.files import tracked
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.table import collect, current, merge, within
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.derived import redact_facts

CONSTRAINT_SHARE = 10  # standing constraints take at most usable / CONSTRAINT_SHARE


class Facts(msgspec.Struct, frozen=True):
    """The whole ledger, and the one that is shown: standing constraints had `room` tokens in it.

    `excess` are the texts of those that were left out.
    """

    whole: Ledger
    shown: Ledger
    excess: Sequence[str] = ()
    room: int = 0


def ledger_of(job: CompactionInput, folded: Sequence[Said], kept: Sequence[Said]) -> Ledger:
    """Return the ledger of what was folded before and is folded now, brought up to date by what is kept."""
    boundary, clean = job.state.boundary, job.state.clean
    before = msgspec.convert(boundary.ledger, Ledger) if boundary is not None else Ledger()
    said = without_carried(clean((*job.state.past, *folded)), job.carry.texts)
    known = merge(merge(before, collect(said)), tracked(job.state.notes))
    return redact_facts(current(known, clean(kept)))


def facts_within(ledger: Ledger, room: int, counter: Counter) -> Facts:
    """Return the facts of a ledger with as many standing constraints as fit into `room` tokens."""
    shown, excess = within(ledger, room, counter.count)
    return Facts(ledger, shown, excess, room)
