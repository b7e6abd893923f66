"""Plan a compaction from beginning to end, without side effects.

`plan` is a generator. It tries a prune, measures, chooses a cut and yields a `SummaryRequest`. The caller
sends back a `SummaryReply`, or None if the summariser failed. `plan` returns a boundary without an id, ready
to be chained and appended, or `Nothing` with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.checkpoint import fitted
from foldline.core.checkpoint.obtain import SummarySteps
from foldline.core.compact.attempt import fill_target, fold_choice, with_receipt
from foldline.core.compact.choice import choose
from foldline.core.compact.chosen_range import cut_up_to, folded_since
from foldline.core.compact.compaction_input import SIGNED_LOOP, CompactionInput
from foldline.core.compact.receipt import balance_notes, no_gain
from foldline.core.compact.room import floor_of, least_floor, most_left, room_of, with_carried
from foldline.core.compact.trim import noted, only_pruned, prune_boundary, pruned, shortened, to_spare
from foldline.core.cut.cut import cut_notes
from foldline.core.cut.thinking import signed_loop
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Compacted, Edit, Pruned
from foldline.errors import FloorExceeded

Outcome = Compacted | Pruned | Nothing
Steps = SummarySteps[Outcome]


def plan(job: CompactionInput) -> Steps:
    """Plan one compaction of a view.

    Raises FloorExceeded if what cannot be removed is larger than usable, and InputError if nothing in the
    chosen range can be folded.
    """
    chosen = job.ask.chosen
    if chosen is not None and chosen.way == "since":
        return (yield from folded_since(job, chosen.entry))
    if chosen is not None:
        job = cut_up_to(job, chosen.entry)
    elif (idle := _idle(job)) is not None:
        return idle
    job = _fit_live_state(job)
    edits = pruned(job) if chosen is None else []
    if edits and to_spare(job, edits) >= 0:
        return prune_boundary(job, noted(job, edits))
    if not job.ask.policy.enable_compaction:
        return only_pruned(job, edits)
    return (yield from _compacted(job, edits))


def _idle(job: CompactionInput) -> Nothing | None:
    """Return why there is nothing to do, or None if there may be."""
    state, ask, size = job.state, job.ask, job.size
    if ask.target is not None:
        return Nothing("fits", f"{size:,} tokens") if size <= ask.target else None
    redraft = ask.instructions and not ask.optional
    redraft = redraft or (ask.reason == "overflow" and size > ask.usable)  # the kept messages do not fit
    if not state.kept[state.fresh_from :] and not redraft:
        return Nothing("nothing_new")
    return SIGNED_LOOP if ask.optional and size <= ask.usable and signed_loop(state.kept) else None


def _fit_live_state(job: CompactionInput) -> CompactionInput:
    """Return the job with the live state and marks that have room; raises FloorExceeded if it cannot fit.

    If a list is folded again without live state, the checkpoint's live state is kept.
    """
    ask, boundary = job.ask, job.state.boundary
    restores_live = not ask.live and ask.continuation is None and boundary is not None
    live = boundary.checkpoint.live if restores_live and boundary is not None else ask.live
    job = job.asking(live=fitted(live, ask.usable, job.counter))
    floor = floor_of(job)
    if floor.total > ask.usable and job.ask.live:  # messages come before live state
        job = job.asking(live=())
        floor = floor_of(job)
    if floor.total > ask.usable and job.state.marks:
        job = job.changed(marks_room=False)
        floor = floor_of(job)
    if floor.total > ask.usable:
        smallest = least_floor(job, floor)
        raise FloorExceeded(smallest.total, ask.usable, smallest.breakdown)
    return job


def _compacted(job: CompactionInput, edits: Sequence[Edit]) -> Steps:
    """Fold older messages, or shorten the kept ones if nothing can be folded."""
    ask, room = job.ask, room_of(job, edits)
    if ask.optional:
        most = max(min(job.size - job.least_gain, most_left(ask)), floor_of(job).total)
        room = msgspec.structs.replace(room, usable=min(room.usable, most))
    room = with_carried(room)
    choice = choose(room)
    if choice is None:
        return shortened(job, edits)
    attempt = yield from fold_choice(room, choice)
    attempt = yield from fill_target(room, attempt)
    gain = job.size - attempt.size
    if gain < job.least_gain:
        return no_gain(gain, job.least_gain)
    choice = attempt.proposal.choice
    loop_note = "the signed thinking of the unfinished tool loop was kept unchanged"
    return with_receipt(
        attempt,
        [
            *([loop_note] if signed_loop(choice.kept) else []),
            *cut_notes(choice.cut, ask.policy.cut_rule),
            *balance_notes(job, job.size, attempt.size, attempt.cost.price),
        ],
    )
