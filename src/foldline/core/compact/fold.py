"""A choice made into an attempt: its facts are taken, and its summary is written until the view fits."""

from __future__ import annotations

import msgspec

from foldline.core.checkpoint.checkpoint import Frame
from foldline.core.checkpoint.obtain import FREE, Cost, SummarySteps
from foldline.core.checkpoint.request import RequestKind
from foldline.core.compact.attempt import Attempt, Proposal, fit_summary, summary_request
from foldline.core.compact.edits import edited_parts, merged, server_edits, stripped
from foldline.core.compact.facts import facts_within, ledger_of
from foldline.core.compact.job import CompactionInput, floor_of, frame_of
from foldline.core.cut.choice import Choice, Limits
from foldline.core.decide.policy import Policy
from foldline.core.ledger.facts.kinds import Ledger
from foldline.errors import FloorExceeded


def folded(
    job: CompactionInput,
    choice: Choice,
    limits: Limits,
    *,
    constraints: int,
    cost: Cost = FREE,
    in_vain: bool = False,
) -> SummarySteps[Attempt]:
    """Return the attempt that folds what a choice folds; raises FloorExceeded where the view never fits.

    Standing constraints may take `constraints` tokens; `cost` is what was spent before. Where a model was
    asked `in_vain`, code writes the summary.
    """
    choice = with_stripped(job, choice)
    proposal = proposed(job, choice, constraints)
    room = choice.room if limits.target else min(choice.room, limits.most_summary(choice.folded))
    goal = job.ask.goal or _next_task(job.ask.policy, proposal.facts.shown)
    wanted = summary_request(proposal, _kind(job, choice, goal), goal, tokens=room)
    wanted = msgspec.structs.replace(wanted, refused=job.ask.reason == "overflow")
    attempt = yield from fit_summary(proposal, wanted, cost, in_vain=in_vain)
    if not attempt.fits:
        floor = floor_of(job)
        raise FloorExceeded(max(floor.total, min(job.size, attempt.size)), job.ask.usable, floor.breakdown)
    return attempt


def proposed(job: CompactionInput, choice: Choice, constraints: int) -> Proposal:
    """Return the proposal of a choice; standing constraints have `constraints` tokens."""
    facts = facts_within(ledger_of(job, choice.folded, choice.kept), constraints, job.counter)
    return Proposal(job, job.state, choice, facts, frame_of_choice(job, choice))


def frame_of_choice(job: CompactionInput, choice: Choice) -> Frame:
    """Return what stands around the summary of a choice."""
    return frame_of(job, quoted=choice.quoted, kept=choice.kept, edited=choice.edits)


def with_stripped(job: CompactionInput, choice: Choice) -> Choice:
    """Return a choice that takes signed thinking out of what is kept: its prefix is no longer there.

    Where a server's compaction is kept, its text goes, as the checkpoint tells it; of a reply that stays for
    a sealed one the rest goes.
    """
    new = stripped(choice.kept, 0, job.counter, edited_parts(choice.edits))
    new += server_edits(choice.kept, choice.joined, job.counter)
    return msgspec.structs.replace(choice, edits=merged(choice.edits, new))


def _next_task(policy: Policy, ledger: Ledger) -> str | None:
    """Return the goal of a hand-off that names none: the newest request, where the policy only hands off."""
    hands_off = policy.summary_prompt == "handoff" and policy.hard is None
    return (ledger.newest_request or None) if hands_off else None


def _kind(job: CompactionInput, choice: Choice, goal: str | None) -> RequestKind:
    if goal is not None:
        return "handoff"
    if choice.cut.inside_turn:
        return "split_turn"
    return "update" if job.state.boundary is not None else "first"
