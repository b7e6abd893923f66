"""A hand-off: the checkpoint that a new session starts from, written for its goal.

The old session does not change. What helps the goal is carried over, with the user's standing constraints,
the pins and the live state.
"""

from __future__ import annotations

import msgspec

from foldline.core.carried.instructions import kind_of
from foldline.core.carried.select import Carry, carry, newest_messages
from foldline.core.checkpoint.check import check
from foldline.core.checkpoint.checkpoint import fitted, make_checkpoint
from foldline.core.checkpoint.obtain import EDITED, SummarySteps
from foldline.core.checkpoint.request import FAILED, SummaryReply
from foldline.core.checkpoint.state import two_sentences
from foldline.core.checkpoint.summary import request
from foldline.core.compact.attempt import (
    CONSTRAINT_SHARE,
    Attempt,
    Proposal,
    attempt_with,
    fit_summary,
    ledger_of,
    summary_request,
    with_receipt,
)
from foldline.core.compact.choice import Choice
from foldline.core.compact.compaction_input import CompactionInput, frame
from foldline.core.compact.plan import Steps
from foldline.core.compact.rebase import held_in
from foldline.core.compact.room import CHECKPOINT_LEAST, floor_of
from foldline.core.cut.cut import Cut
from foldline.core.decide.ask import Nothing
from foldline.core.decide.policy import summary_cap
from foldline.core.ledger.table import within
from foldline.core.log.entries import Compacted, Entry, Noted, Said
from foldline.core.log.log import chained, said
from foldline.core.secrets.derived import Sweep
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded


class Start(msgspec.Struct, frozen=True):
    """The beginning of a new session: its leading messages, chained, and the note that links the old one."""

    leading: tuple[Said, ...]
    link: Noted


def start_of(state: ViewState, link: Noted) -> Start:
    """Return the beginning of a new session: system and developer messages, the newest of each kind."""
    entries: list[Said] = []
    newest = newest_messages([entry for entry in state.kept if entry.message.role != "assistant"])
    leading = [entry for entry in state.leading if kind_of(entry.message) not in newest]
    for entry in (*leading, *reversed(newest.values())):
        parent, said_key = (entries[-1].id, entries[-1].said_key) if entries else (None, "")
        entries.append(
            said(entry.message, parent=parent, said_key=said_key, tokens=entry.tokens, at=entry.at)
        )
    return Start(tuple(entries), chained(link, entries[-1].id if entries else None))


def opening(start: Start, boundary: Compacted) -> list[Entry]:
    """Return the first entries of the new session, chained, the checkpoint last."""
    return [*start.leading, start.link, chained(boundary, start.link.id)]


def handoff(job: CompactionInput, start: Start, *, text: str | None = None) -> Steps:
    """Plan the checkpoint of a hand-off for the job's goal (None: the newest request).

    `text` is a checkpoint that the user wrote or edited; then no summary is requested. Returns a Compacted
    for the new session, without an id. Raises FloorExceeded if it does not fit beside the system prompt, the
    tools and the pins.
    """
    ask, state = job.ask, job.state
    job = job.asking(live=fitted(ask.live, ask.usable, job.counter), number=1, continuation=None)
    folded = [*state.quoted, *state.kept]
    if not folded and state.boundary is None:
        return Nothing("nothing_to_fold")
    job = job.changed(carry=_carried(job, start, folded))
    ledger = ledger_of(job, folded, ())
    ledger = msgspec.structs.replace(ledger, goal=redact(ask.goal or ledger.newest_request))
    taken_out: list[str] = []
    if text is not None:
        ledger, taken_out = held_in(text, ledger)
    shown, _ = within(ledger, ask.usable // CONSTRAINT_SHARE, job.counter.count)
    base = ViewState([*start.leading, start.link], counter=job.counter)
    handoff_frame = frame(job, pins=state.pins.values(), marks=job.marks(), ack=True, carried=job.carry.texts)
    fixed_tokens = make_checkpoint("", handoff_frame, job.counter).tokens + base.tokens
    room = min(
        ask.usable - ask.overhead_tokens - fixed_tokens, summary_cap(ask.policy, ask.window, ask.usable)
    )
    cut = Cut(len(state.kept), inside_turn=False)
    choice = Choice(cut, folded, [], [], {}, max(room, CHECKPOINT_LEAST))
    proposal = Proposal(job, base, choice, handoff_frame, ledger, shown, taken_out)
    if text is not None:
        return _fitting(attempt_with(proposal, SummaryReply(redact(text), EDITED)))
    request_for_goal = summary_request(proposal, "handoff", ledger.goal or None, choice.room)
    return _fitting((yield from fit_summary(proposal, request_for_goal)))


def _carried(job: CompactionInput, start: Start, folded: list[Said]) -> Carry:
    """Return the texts to carry over; system and developer messages are in the new session already."""
    state, usable = job.state, job.ask.usable - job.ask.overhead_tokens
    return carry(
        (),
        state.clean(folded),
        state.boundary.checkpoint.carried if state.boundary is not None else (),
        max(usable - sum(entry.tokens for entry in start.leading) - CHECKPOINT_LEAST, 0) // 2,
        job.counter.count,
        shown={entry.id for entry in folded if kind_of(entry.message) is not None},
        begun=state.boundary is not None,
    )


def _fitting(attempt: Attempt) -> Compacted:
    """Return the boundary with its receipt; raises FloorExceeded if it does not fit."""
    job = attempt.proposal.job
    if attempt.spare < 0:
        floor = floor_of(msgspec.structs.replace(job, state=attempt.proposal.base))
        raise FloorExceeded(attempt.size, job.ask.usable, floor.breakdown)
    return with_receipt(attempt)


# ---- two sentences for people


DISPLAY_TOKENS = 120  # the most for both sentences


def display(job: CompactionInput) -> SummarySteps[str]:
    """Have two sentences written about the view of a job; code writes them if the reply is unusable."""
    state = job.state
    entries = state.clean([*state.quoted, *state.kept])
    ledger = ledger_of(job, entries, ())
    display_request = request(
        job.ask.policy,
        kind="display",
        folded=entries,
        previous=state.boundary.checkpoint.summary if state.boundary is not None else None,
        ledger=ledger,
        tokens=DISPLAY_TOKENS,
    )
    reply = yield display_request
    if reply is not None and reply.stop != FAILED:
        checked = check(reply, display_request, counter=job.counter)
        if isinstance(checked, str):
            return " ".join(Sweep(state.clean.secrets).text(checked).split())
    return two_sentences(ledger)
