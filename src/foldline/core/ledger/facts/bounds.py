"""What of a ledger is carried on to the next fold: it is bounded, however long the session is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.ledger.facts.kinds import Excerpt, Ledger, RequestFact
from foldline.core.ledger.facts.requests import substantial

EXCERPTS = 400  # beside those that were written
REQUESTS = 20  # the newest, beside the first


def _few(requests: Sequence[RequestFact]) -> tuple[RequestFact, ...]:
    """The first request that asks for something, and the newest."""
    first = substantial(requests)[:1]
    return (*first, *[fact for fact in requests if fact not in first][-REQUESTS:])


def bounded(ledger: Ledger, picked: Sequence[Excerpt] = ()) -> Ledger:
    """Bound a ledger that is carried on: what was written (`picked`), and the best of what was not."""
    written = {id(excerpt) for excerpt in picked}
    rest = sorted(
        (excerpt for excerpt in ledger.excerpts if id(excerpt) not in written), key=lambda e: -e.weight
    )
    kept = {id(excerpt) for excerpt in rest[:EXCERPTS]} | written
    return msgspec.structs.replace(
        ledger,
        requests=_few(ledger.requests),
        files=ledger.files[-300:],
        commands=ledger.commands[-60:],
        errors=ledger.errors[-60:],
        decisions=ledger.decisions[-60:],
        values=ledger.values[-80:],
        open=ledger.open[-80:],
        reports=ledger.reports[-60:],
        excerpts=tuple(excerpt for excerpt in ledger.excerpts if id(excerpt) in kept),
    )
