"""A compaction from beginning to end, without doing anything: the one place where the rooms are composed.

`plan` is a generator. It tries a prune, measures, chooses a cut, and yields a `SummaryRequest`; whoever runs
it answers with a `SummaryReply`, or None where the summariser failed. It returns a boundary without an id,
ready to be chained and appended, or `Nothing` and why. Nothing here knows time, files or models.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.checkpoint import fitted
from foldline.core.checkpoint.obtain import SummarySteps
from foldline.core.compact.attempt import CONSTRAINT_SHARE, Attempt, folded, with_receipt
from foldline.core.compact.compaction_input import (
    SIGNED_LOOP,
    CompactionInput,
    carried,
    floor_of,
    least_floor,
    least_gain,
    limits_of,
    material_of,
)
from foldline.core.compact.fill import filled
from foldline.core.compact.receipt import balance_notes, no_gain
from foldline.core.compact.trim import (
    given_back,
    noted,
    only_pruned,
    prune_boundary,
    pruned,
    shortened,
    suffices,
)
from foldline.core.cut.choice import choose
from foldline.core.cut.cut import cut_notes
from foldline.core.cut.edits import Edits
from foldline.core.cut.thinking import signed_loop
from foldline.core.decide.ask import Nothing
from foldline.core.decide.triggers import thresholds
from foldline.core.log.entries import Compacted, Live, Pruned
from foldline.core.measure.window import share
from foldline.errors import FloorExceeded

LEAVES = 0.8  # of the hard trigger, at most, after an automatic fold: fuller, the next turn would fold again

Outcome = Compacted | Pruned | Nothing
Steps = SummarySteps[Outcome]


def plan(job: CompactionInput) -> Steps:
    """Plan one compaction of a view.

    Raises FloorExceeded where what cannot be removed is larger than usable.
    """
    if (idle := _idle(job)) is not None:
        return idle
    job = _with_room(job)
    edits = pruned(job)
    if edits and suffices(job, edits):
        return prune_boundary(job, given_back(job, noted(job, edits)))
    if not job.ask.policy.enable_compaction:
        return only_pruned(job, edits)
    return (yield from _compacted(job, edits))


def _idle(job: CompactionInput) -> Nothing | None:
    """Say why there is nothing to do; None where there may be."""
    state, ask, size = job.state, job.ask, job.size
    if ask.target is not None:
        return Nothing("fits", f"{size:,} tokens") if size <= ask.target else None
    again = ask.instructions and not ask.optional
    again = again or (ask.reason == "overflow" and size > ask.usable)  # what was kept does not fit
    if not state.kept[state.fresh_from :] and not again:
        return Nothing("nothing_new")
    return SIGNED_LOOP if ask.optional and size <= ask.usable and signed_loop(state.kept) else None


def _with_room(job: CompactionInput) -> CompactionInput:
    """Return the job with the live state that has room; raises FloorExceeded where nothing helps."""
    job = job.asking(live=fitted(_live(job), job.ask.usable, job.counter))
    floor = floor_of(job)
    if floor.total > job.ask.usable and job.ask.live:  # messages come before live state
        job = job.asking(live=())
        floor = floor_of(job)
    if floor.total > job.ask.usable:
        least = least_floor(job, floor)
        raise FloorExceeded(least.total, job.ask.usable, least.breakdown)
    return job


def _live(job: CompactionInput) -> Sequence[Live]:
    """Return live state as it is now; the checkpoint's where nobody keeps any: a list folded again."""
    ask, boundary = job.ask, job.state.boundary
    if ask.live or ask.continuation is not None or boundary is None:
        return ask.live
    return boundary.checkpoint.live


def _compacted(job: CompactionInput, pruned: Edits) -> Steps:
    """Fold what a choice folds, or shorten what is there where nothing can be folded."""
    ask, limits = job.ask, limits_of(job)
    if ask.optional:
        hard = thresholds(ask.policy, ask.window).hard or ask.usable
        most = max(min(job.size - least_gain(job), share(hard, LEAVES)), floor_of(job).total)
        limits = msgspec.structs.replace(limits, usable=min(limits.usable, most))
    job, limits = carried(job, limits)
    redraft = job.state.server is not None or (job.state.boundary is not None and not ask.optional)
    material = msgspec.structs.replace(material_of(job, pruned), redraft=redraft)
    choice = choose(material, ask.policy, limits, job.counter)
    if choice is None:
        return shortened(job, pruned)
    attempt = yield from folded(job, choice, limits, constraints=ask.usable // CONSTRAINT_SHARE)
    attempt = yield from filled(attempt, material, limits)
    return _judged(attempt)


def _judged(attempt: Attempt) -> Outcome:
    """Return the boundary with its receipt, if it gains enough."""
    job = attempt.proposal.job
    gain, least = job.size - attempt.size, least_gain(job)
    return with_receipt(attempt, _notes(attempt)) if gain >= least else no_gain(gain, least)


def _notes(attempt: Attempt) -> list[str]:
    """Return what a receipt says of the choice, and whether it pays."""
    job, choice = attempt.proposal.job, attempt.proposal.choice
    notes: list[str] = []
    if signed_loop(choice.kept):
        notes.append("the signed thinking of the unfinished tool loop was kept as it is")
    notes += cut_notes(choice.cut, job.ask.policy.cut_rule)
    return notes + balance_notes(job, (job.size, attempt.size), attempt.cost.price)
