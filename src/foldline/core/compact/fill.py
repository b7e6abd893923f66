"""What a fold left of its target, given away.

It goes to the standing constraints that had no room, else to more of the newest messages, else to what was
shortened of them. Where a summary costs nothing it is written again for what is folded then. A model is not
asked again: its summary stays as it is, so what is kept in addition stands in both.
"""

from __future__ import annotations

import msgspec

from foldline.core.checkpoint.ground import ground
from foldline.core.checkpoint.obtain import SummarySteps
from foldline.core.checkpoint.request import WORDS_SHARE
from foldline.core.compact.attempt import (
    Attempt,
    Proposal,
    attempt_with,
    folded,
    frame_of_choice,
    proposed,
    with_stripped,
)
from foldline.core.cut.choice import SPARE, Choice, CutInput, Limits, SecondPass, choose, restored
from foldline.core.cut.edits import saved_by
from foldline.errors import FloorExceeded

A_LINE = 4  # tokens of a constraint's line beside its text
FILLS = 3  # times that what a checkpoint left of a target is given away


def filled(attempt: Attempt, material: CutInput, limits: Limits) -> SummarySteps[Attempt]:
    """Return the attempt with what it left of its target given away, as far as something comes of it."""
    for _ in range(FILLS):
        fuller = yield from _fuller(attempt, material, limits)
        if fuller is None or not fuller.fits or not _better(fuller, attempt):
            break
        attempt = fuller
    return attempt


def _better(fuller: Attempt, attempt: Attempt) -> bool:
    """Whether more of the standing constraints has room, or less of the target is left."""
    more, less = (len(one.proposal.facts.excess) for one in (attempt, fuller))
    return less < more or (less == more and fuller.spare < attempt.spare)


def _fuller(attempt: Attempt, material: CutInput, limits: Limits) -> SummarySteps[Attempt | None]:
    """Return an attempt that uses more of the target; None where nothing comes of it."""
    proposal = attempt.proposal
    little = attempt.spare < proposal.job.ask.usable // SPARE
    if not limits.target or (little and (attempt.model_wrote or not proposal.facts.excess)):
        return None
    rules = proposal.facts.room + _for_rules(attempt)
    choice = proposal.choice if proposal.facts.excess else _keeping_more(attempt, material, limits)
    if choice is None:
        return _with_restored(attempt, material, limits)
    if attempt.model_wrote:
        return _restated(attempt, choice, rules) or _with_restored(attempt, material, limits)
    write = folded(
        proposal.job, choice, limits, constraints=rules, cost=attempt.cost, in_vain=attempt.model_asked
    )
    try:
        return (yield from write)
    except FloorExceeded:
        return None


def _keeping_more(attempt: Attempt, material: CutInput, limits: Limits) -> Choice | None:
    """Choose again with what the summary left; None where no more of the newest has room."""
    job, choice = attempt.proposal.job, attempt.proposal.choice
    spare = attempt.spare
    second = SecondPass(choice.room - spare, material.tokens(material.leading, choice.edits) + spare)
    found = choose(material, job.ask.policy, limits, job.counter, second)
    if found is None or found.room < second.summary or not _keeps_more(found, choice):
        return None
    return found


def _restated(attempt: Attempt, choice: Choice, rules: int) -> Attempt | None:
    """Let the summary stand before what another choice keeps; None where the view does not fit then.

    The ledger holds what is folded now; the text goes on to tell of what it was written from.
    """
    before = attempt.proposal
    stay = {entry.id for entry in (*choice.quoted, *choice.kept)}
    if any(entry.id not in stay for entry in before.choice.quoted):
        return None  # the summary does not tell of what was quoted beside it
    proposal = proposed(before.job, with_stripped(before.job, choice), rules)
    reply = attempt.reply
    if before.facts.excess:
        reply = msgspec.structs.replace(reply, text=_with_rules(proposal, reply.text))
    fuller = attempt_with(proposal, reply, attempt.cost, model_asked=True)
    return fuller if fuller.fits and fuller.spare < attempt.spare else None


def _with_rules(proposal: Proposal, text: str) -> str:
    """Put the standing constraints that have room now into a summary."""
    choice, state = proposal.choice, proposal.job.state
    messages = [entry.message for entry in state.clean((*choice.folded, *choice.kept))]
    previous = state.boundary.checkpoint.summary if state.boundary is not None else None
    room = int(proposal.choice.room * WORDS_SHARE)
    count = proposal.job.counter.count
    return ground(text, proposal.facts.shown, messages, previous, room=room, count=count).text


def _with_restored(attempt: Attempt, material: CutInput, limits: Limits) -> Attempt | None:
    """Give back what was shortened; the summary as it was written stands for the same messages as before."""
    proposal = attempt.proposal
    job = proposal.job
    choice = with_stripped(job, restored(proposal.choice, material, limits, job.counter, attempt.spare))
    if not _keeps_more(choice, proposal.choice):
        return None
    fuller = msgspec.structs.replace(proposal, choice=choice, frame=frame_of_choice(job, choice))
    return attempt_with(fuller, attempt.reply, attempt.cost, model_asked=attempt.model_asked)


def _for_rules(attempt: Attempt) -> int:
    """Return the tokens that go to constraints that had no room: they come before what else a page tells."""
    proposal = attempt.proposal
    needed = sum(proposal.job.counter.count(text) + A_LINE for text in proposal.facts.excess)
    return min(needed, attempt.spare + (0 if attempt.model_wrote else proposal.choice.room // 3))


def _keeps_more(choice: Choice, before: Choice) -> bool:
    """Whether more of the newest is kept, or less of the same shortened."""
    if choice.cut.index == before.cut.index:
        return saved_by(choice.edits) < saved_by(before.edits)
    return choice.cut.index < before.cut.index
