"""What a fold left of its target, given away.

Where a summary costs nothing it is written again: with the standing constraints that had no room, else with
more of the newest messages kept. Otherwise what was shortened is given back.
"""

from __future__ import annotations

import msgspec

from foldline.core.checkpoint.obtain import SummarySteps
from foldline.core.compact.attempt import Attempt, attempt_with
from foldline.core.compact.edits import saved_by
from foldline.core.compact.fold import folded, frame_of_choice, with_stripped
from foldline.core.cut.choice import SPARE, Choice, Limits, Material, Used, choose, eased
from foldline.errors import FloorExceeded

FILLS = 3  # times that what a checkpoint left of a target is given away


def filled(attempt: Attempt, material: Material, limits: Limits) -> SummarySteps[Attempt]:
    """Return the attempt with what it left of its target given away, as far as something comes of it."""
    for _ in range(FILLS):
        fuller = yield from _fuller(attempt, material, limits)
        if fuller is None or not fuller.fits or fuller.spare >= attempt.spare:
            break
        attempt = fuller
    return attempt


def _fuller(attempt: Attempt, material: Material, limits: Limits) -> SummarySteps[Attempt | None]:
    """Return an attempt that uses more of the target; None where nothing comes of it."""
    if not limits.target or attempt.spare < attempt.proposal.job.ask.usable // SPARE:
        return None
    if attempt.model_asked:
        return _eased(attempt, material, limits)
    return (yield from _rewritten(attempt, material, limits))


def _rewritten(attempt: Attempt, material: Material, limits: Limits) -> SummarySteps[Attempt | None]:
    """Choose again with what the summary left, and have it written again."""
    spare, choice, facts = attempt.spare, attempt.proposal.choice, attempt.proposal.facts
    job, constraints = attempt.proposal.job, facts.room
    if facts.excess:
        constraints += spare
    else:
        used = Used(choice.room - spare, material.tokens(material.leading, choice.edits) + spare)
        found = choose(material, job.ask.policy, limits, job.counter, used)
        if found is None or found.room < used.summary or not _keeps_more(found, choice):
            return _eased(attempt, material, limits)
        choice = found
    try:
        return (yield from folded(job, choice, limits, constraints=constraints, cost=attempt.cost))
    except FloorExceeded:
        return None


def _eased(attempt: Attempt, material: Material, limits: Limits) -> Attempt | None:
    """Give back what was shortened; the summary as it was written stands for the same messages as before."""
    proposal = attempt.proposal
    job = proposal.job
    choice = with_stripped(job, eased(proposal.choice, material, limits, job.counter, attempt.spare))
    if not _keeps_more(choice, proposal.choice):
        return None
    fuller = msgspec.structs.replace(proposal, choice=choice, frame=frame_of_choice(job, choice))
    return attempt_with(fuller, attempt.reply, attempt.cost, model_asked=attempt.model_asked)


def _keeps_more(choice: Choice, before: Choice) -> bool:
    """Whether more of the newest is kept, or less of the same shortened."""
    if choice.cut.index == before.cut.index:
        return saved_by(choice.edits) < saved_by(before.edits)
    return choice.cut.index < before.cut.index
