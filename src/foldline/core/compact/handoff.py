"""A hand-off: the checkpoint that a new session starts from, written for the goal of its work.

The old session is not folded: nothing of it changes. What it is worth to the goal goes over, and with it the
user's standing constraints, the pins and the live state.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.checkpoint import make_checkpoint
from foldline.core.checkpoint.live import fitted
from foldline.core.checkpoint.obtain import ASKS, obtain
from foldline.core.checkpoint.redact import redact, redact_facts
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import request
from foldline.core.compact.job import floor_of, made_receipt
from foldline.core.compact.plan import CONSTRAINT_SHARE, PASSES, Steps
from foldline.core.compact.trim import constraint_figures
from foldline.core.cut.choice import CHECKPOINT_LEAST, tokens_of
from foldline.core.decide.ask import Ask, Nothing
from foldline.core.ledger.bounds import bounded
from foldline.core.ledger.collect import collect
from foldline.core.ledger.current import current, within
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.merge import merge
from foldline.core.log.entries import Checkpoint, Compacted, Entry, Noted, Receipt, Said
from foldline.core.log.log import chained, said
from foldline.core.measure.tokens import Counter
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded

EDITED = "by hand"  # the summariser of a checkpoint whose text the user wrote


class Start(msgspec.Struct, frozen=True):
    """What a new session begins with: its leading messages, chained, and what it knows of the old one."""

    leading: tuple[Said, ...]
    link: Noted


def start_of(fold: ViewState, link: Noted) -> Start:
    """Return the beginning of a new session: the system and developer messages at the head of the old one."""
    chain: list[Said] = []
    for old in fold.leading:
        parent, key = (chain[-1].id, chain[-1].said_key) if chain else (None, "")
        chain.append(said(old.message, parent=parent, said_key=key, tokens=old.tokens, at=old.at))
    return Start(tuple(chain), chained(link, chain[-1].id if chain else None))


def opening(start: Start, boundary: Compacted) -> list[Entry]:
    """Return the first entries of the new session, chained, the checkpoint last."""
    return [*start.leading, start.link, chained(boundary, start.link.id)]


class _Job(msgspec.Struct, frozen=True):
    """One hand-off while it is planned."""

    fold: ViewState
    ask: Ask
    start: Start
    counter: Counter

    @property
    def folded(self) -> list[Said]:
        """What the view holds beside its leading messages."""
        return [*self.fold.quoted, *self.fold.kept]


def handoff(fold: ViewState, ask: Ask, start: Start, counter: Counter, *, text: str | None = None) -> Steps:
    """Plan the checkpoint of a hand-off for `ask.goal` (None: the newest request); `text` is one that the user wrote.

    Returns a Compacted for the new session, without an id. Raises FloorExceeded where it does not fit beside
    the system prompt, the tools and the pins.
    """
    ask = msgspec.structs.replace(ask, live=fitted(ask.live, ask.usable, counter), number=1)
    job = _Job(fold, ask, start, counter)
    if not job.folded and fold.boundary is None:
        return Nothing("nothing_to_fold")
    whole = redact_facts(_facts(job))
    if text is not None:
        return _fitting(job, SummaryReply(redact(text), EDITED), _still_held(whole, text), ())
    ledger, excess = within(whole, ask.usable // CONSTRAINT_SHARE, counter.count)
    room, asks, left = _room(job), ASKS, PASSES
    while True:
        reply, asks = yield from obtain(_wanted(job, ledger, room), counter, asks)
        over = _over(job, _boundary(job, reply, whole))
        if over <= 0 or left <= 1:
            return _fitting(job, reply, whole, excess)
        room, left = max(room - over - 8, CHECKPOINT_LEAST // left), left - 1


def _facts(job: _Job) -> Ledger:
    """The facts of all that goes over: of the earlier checkpoint, and of what the view holds."""
    before = job.fold.boundary.ledger if job.fold.boundary is not None else {}
    known = merge(msgspec.convert(before, Ledger), collect(job.folded))
    return current(known, Ledger(), kept=frozenset())


def _still_held(ledger: Ledger, text: str) -> Ledger:
    """Leave out the standing constraints that the user took out of the text."""
    there = " ".join(text.split())
    held = tuple(fact for fact in ledger.constraints if " ".join(fact.text.split()) in there)
    return msgspec.structs.replace(ledger, constraints=held)


def _room(job: _Job) -> int:
    """The tokens that the summary may take."""
    ask = job.ask
    wrap = _point(job, "").tokens + tokens_of(job.start.leading, {})
    cap = ask.policy.summary_tokens.resolve(ask.window, ask.usable)
    return max(min(ask.usable - ask.apart_tokens - wrap, cap), CHECKPOINT_LEAST)


def _point(job: _Job, text: str) -> Checkpoint:
    ask, pins = job.ask, tuple(job.fold.pins.values())
    return make_checkpoint(
        text, ask.policy, job.counter, pins=pins, ack=bool(ask.policy.ack), number=ask.number, live=ask.live
    )


def _wanted(job: _Job, ledger: Ledger, room: int) -> SummaryRequest:
    boundary = job.fold.boundary
    goal = job.ask.goal or (ledger.requests[-1].text if ledger.requests else None)
    return request(
        job.ask.policy,
        kind="handoff",
        folded=job.folded,
        previous=boundary.checkpoint.summary if boundary is not None else None,
        ledger=ledger,
        tokens=room,
        instructions=job.ask.instructions or goal,
        goal=goal,
    )


def _boundary(job: _Job, reply: SummaryReply, ledger: Ledger) -> Compacted:
    carried = msgspec.structs.replace(reply.ledger or bounded(ledger), constraints=ledger.constraints)
    return Compacted(
        id="",
        parent=None,
        checkpoint=_point(job, reply.text),
        receipt=Receipt(reason=job.ask.reason),
        leading=tuple(entry.id for entry in job.start.leading),
        ledger=msgspec.to_builtins(carried),
    )


def _after(job: _Job, boundary: Compacted) -> ViewState:
    return ViewState(opening(job.start, boundary), counter=job.counter)


def _over(job: _Job, boundary: Compacted) -> int:
    """By how many tokens the new session's view would exceed usable; 0 or less: it fits."""
    return job.ask.apart_tokens + _after(job, boundary).tokens - job.ask.usable


def _fitting(job: _Job, reply: SummaryReply, ledger: Ledger, excess: Sequence[str]) -> Compacted:
    """Return the boundary with its receipt; raises FloorExceeded where it does not fit."""
    fold, ask = job.fold, job.ask
    boundary = _boundary(job, reply, ledger)
    if (over := _over(job, boundary)) > 0:
        floor = floor_of(ViewState(job.start.leading, counter=job.counter), ask, job.counter)
        raise FloorExceeded(ask.usable + over, ask.usable, floor.breakdown)
    after = _after(job, boundary)
    receipt = made_receipt(
        ask,
        before=fold.view(),
        after=after.view(),
        folded=job.folded,
        edits=(),
        sizes=(ask.apart_tokens + fold.tokens, ask.apart_tokens + after.tokens),
    )
    shown = [fact for fact in ledger.constraints if fact.text not in excess]
    receipt = msgspec.structs.replace(
        receipt,
        constraints=constraint_figures(shown, excess),
        summarizer=reply.summarizer,
        usage=reply.usage,
        price=reply.price,
        notes=(*receipt.notes, *reply.notes),
    )
    return msgspec.structs.replace(boundary, receipt=receipt)
