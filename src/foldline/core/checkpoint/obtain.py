"""A summary from a request: asked for until one holds; the offline checkpoint is the last resort."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

import msgspec

from foldline.core.checkpoint.check import check
from foldline.core.checkpoint.ground import ground, proven, with_proven
from foldline.core.checkpoint.page import compose
from foldline.core.checkpoint.request import FAILED, WORDS_SHARE, SummaryReply, SummaryRequest
from foldline.core.decide.price import added
from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.redact import redact

ATTEMPTS = 2  # times that a summariser is asked before the offline checkpoint takes its place
ASKS = 4  # times that a model is asked in one compaction, its attempts and shorter versions together
OFFLINE = "offline"
EDITED = "by hand"  # the summariser of a checkpoint whose text the user wrote


class Cost(msgspec.Struct, frozen=True):
    """Usage and price (USD) of replies added up, and what the receipt should say of them, each thing once."""

    usage: Usage | None = None
    price: float | None = None
    notes: tuple[str, ...] = ()

    def plus(self, reply: SummaryReply) -> Cost:
        """Return the cost with that of a reply, whatever becomes of it."""
        price = self.price if reply.price is None else (self.price or 0.0) + reply.price
        return Cost(added(self.usage, reply.usage), price, _once(*self.notes, *reply.notes))

    def noting(self, words: str) -> Cost:
        """Return the cost with one more note."""
        return Cost(self.usage, self.price, _once(*self.notes, words))

    def on(self, reply: SummaryReply) -> SummaryReply:
        """Return a reply with all that was spent until it came."""
        return msgspec.structs.replace(reply, usage=self.usage, price=self.price, notes=self.notes)


FREE = Cost()


def _once(*notes: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))


Result = TypeVar("Result")
SummarySteps = Generator[SummaryRequest, SummaryReply | None, Result]  # yields requests, is sent the replies


class Obtained(msgspec.Struct, frozen=True):
    """A summary, with what all attempts cost and why one was rejected.

    A model may be asked `asks_left` times more; `model_asked`: one was asked, even if code wrote the summary.
    """

    reply: SummaryReply
    asks_left: int
    model_asked: bool


def obtain(wanted: SummaryRequest, counter: Counter, asks: int = ASKS) -> SummarySteps[Obtained]:
    """Ask for a summary until one holds (invariant 7), checked against its ledger; or write it by rule.

    A model is asked at most `asks` times, and not again after a call that failed.
    """
    cost, model_asked = Cost(), False
    for attempt in range(1, min(ATTEMPTS, asks) + 1):
        reply = yield wanted
        if reply is not None:
            cost = cost.plus(reply)
            if reply.stop != FAILED and reply.summarizer == OFFLINE:
                return Obtained(cost.on(reply), asks, model_asked)
        model_asked = True
        if reply is None or reply.stop == FAILED:
            asks = 0
            break
        asks -= 1
        checked = check(reply, wanted, counter=counter)
        if isinstance(checked, str):
            return Obtained(_grounded(cost.on(reply), checked, wanted, counter), asks, model_asked)
        cost = cost.noting(f"a summary by {reply.summarizer} was rejected: {checked.words}")
        wanted = msgspec.structs.replace(wanted, attempt=attempt, rejected=checked.words)
    return Obtained(cost.on(_by_rule(wanted, counter)), asks, model_asked)


def _grounded(reply: SummaryReply, text: str, wanted: SummaryRequest, counter: Counter) -> SummaryReply:
    """Return a reply whose text is checked against what code knows, with the rules that it proved."""
    entries = (*wanted.folded, *wanted.kept)
    rules = proven(text, entries, wanted.ledger.constraints)
    constraints = with_proven(wanted.ledger.constraints, rules, entries)
    ledger = msgspec.structs.replace(wanted.ledger, constraints=constraints)
    grounded = ground(
        text,
        ledger,
        [entry.message for entry in entries],
        wanted.previous,
        room=int(wanted.tokens * WORDS_SHARE),
        count=counter.count,
    )
    return msgspec.structs.replace(reply, text=grounded.text, rules=rules)


def _by_rule(wanted: SummaryRequest, counter: Counter) -> SummaryReply:
    """Write the offline checkpoint."""
    done = compose(
        wanted.ledger,
        wanted.page_tokens,
        counter.count,
        instructions=wanted.instructions,
        goal=wanted.goal or "",
    )
    return SummaryReply(text=redact(done.text), summarizer=OFFLINE, ledger=done.ledger)
