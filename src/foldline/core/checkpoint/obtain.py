"""A summary from a request: asked for until one holds; the offline checkpoint is the last resort."""

from __future__ import annotations

from collections.abc import Generator

import msgspec

from foldline.core.checkpoint.cost import Cost
from foldline.core.checkpoint.ground import ground
from foldline.core.checkpoint.redact import redact
from foldline.core.checkpoint.request import FAILED, SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import Accepted, check
from foldline.core.ledger.page.compose import compose
from foldline.core.measure.tokens import Counter

ATTEMPTS = 2  # times that a summariser is asked before the offline checkpoint takes its place
ASKS = 4  # times that a model is asked in one compaction, its attempts and shorter versions together
OFFLINE = "offline"


def obtain(
    wanted: SummaryRequest, counter: Counter, asks: int = ASKS
) -> Generator[SummaryRequest, SummaryReply | None, tuple[SummaryReply, int]]:
    """Ask for a summary until one holds (invariant 7), checked against its ledger; or write it by rule.

    The reply carries what all attempts cost, and why one was rejected. Returns beside it how many of the `asks`
    are left: none after a call that failed, as many as before without a model.
    """
    spent = Cost()
    for attempt in range(1, min(ATTEMPTS, asks) + 1):
        reply = yield wanted
        if reply is not None:
            spent.take(reply)
        if reply is None or reply.stop == FAILED:
            asks = 0
            break
        if reply.summarizer == OFFLINE:
            return spent.on(reply), asks
        asks -= 1
        checked = check(reply, wanted, counter=counter)
        if isinstance(checked, Accepted):
            messages = [entry.message for entry in (*wanted.folded, *wanted.kept)]
            grounded = ground(checked.text, wanted.ledger, messages, wanted.previous)
            return msgspec.structs.replace(spent.on(reply), text=grounded.text), asks
        spent.note(f"a summary by {reply.summarizer} was rejected: {checked.why}")
        wanted = msgspec.structs.replace(wanted, attempt=attempt, rejected=checked.why)
    done = compose(
        wanted.ledger,
        wanted.tokens,
        counter.count,
        previous=wanted.previous,
        instructions=wanted.instructions,
    )
    offline = SummaryReply(text=redact(done.text), summarizer=OFFLINE, ledger=done.ledger)
    return spent.on(offline), asks
