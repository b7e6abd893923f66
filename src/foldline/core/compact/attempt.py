"""An attempt at a fold: a choice with its facts, its summary, and the view that comes of it.

Choice -> Proposal (facts, frame) -> SummaryRequest -> SummaryReply -> Attempt (boundary, view)
^                                                          |
+---- a shorter summary is asked for until the view fits --+
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.carried.select import name_of, without_carried
from foldline.core.carried.summaries import earlier_summaries, newest_summary
from foldline.core.checkpoint.checkpoint import Frame, make_checkpoint
from foldline.core.checkpoint.obtain import ASKS, EDITED, FREE, OFFLINE, Cost, SummarySteps, obtain
from foldline.core.checkpoint.proposals import with_proven
from foldline.core.checkpoint.request import RequestKind, SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import request
from foldline.core.compact.compaction_input import CompactionInput, floor_of, frame_of
from foldline.core.compact.receipt import constraint_figures, made_receipt, scrub_secrets, standing_in
from foldline.core.cut.choice import CHECKPOINT_LEAST, Choice, Limits
from foldline.core.cut.edits import edited_parts, merged
from foldline.core.cut.thinking import server_edits, stripped
from foldline.core.decide.policy import Policy
from foldline.core.ledger.facts.files import tracked
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.table import bounded, collect, current, merge, within
from foldline.core.log.entries import Compacted, Receipt, Said
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.derived import redact_facts
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded

PASSES = 6  # times that a summary is asked for because the view came out too large


class Proposal(msgspec.Struct, frozen=True):
    """A fold without its summary: what is folded and what stays, the facts of it, and the checkpoint's frame.

    `base` is the view state that the boundary goes onto: the job's own, or that of a new session.
    """

    job: CompactionInput
    base: ViewState
    choice: Choice
    facts: Facts
    frame: Frame


class Attempt(msgspec.Struct, frozen=True):
    """A proposal with a summary: the boundary, and the view state behind it.

    `cost` is that of every summary written on the way; `model_asked`: a model wrote one, or was asked to.
    """

    proposal: Proposal
    reply: SummaryReply
    boundary: Compacted
    after: ViewState
    cost: Cost = FREE
    model_asked: bool = False

    @property
    def size(self) -> int:
        """The tokens of the view behind the boundary, with a system prompt and tools given apart."""
        return self.proposal.job.ask.overhead_tokens + self.after.tokens

    @property
    def model_wrote(self) -> bool:
        """Whether the summary is a model's: it is not written again."""
        return self.model_asked and self.reply.summarizer != OFFLINE

    @property
    def fits(self) -> bool:
        """Whether the view is within what is usable."""
        return self.size <= self.proposal.job.ask.usable

    @property
    def spare(self) -> int:
        """The tokens of usable that are left."""
        return max(0, self.proposal.job.ask.usable - self.size)

    @property
    def excess(self) -> int:
        """The tokens by which the view is too large."""
        return max(0, self.size - self.proposal.job.ask.usable)


def summary_request(
    proposal: Proposal, kind: RequestKind, goal: str | None, *, tokens: int = 0
) -> SummaryRequest:
    """Return the request for the summary of a proposal."""
    ask, clean = proposal.job.ask, proposal.job.state.clean
    folded, previous = _previous(proposal)
    wanted = request(
        ask.policy,
        kind="update" if previous and kind == "first" else kind,
        folded=folded,
        previous=previous,
        ledger=proposal.facts.shown,
        tokens=tokens,
        instructions=ask.instructions or goal,
        goal=goal,
        kept=clean(proposal.choice.kept),
    )
    return msgspec.structs.replace(wanted, secrets=bool(clean.secrets))


def _previous(proposal: Proposal) -> tuple[list[Said], str | None]:
    """Return what a summary tells of, and the summary that it follows.

    That is the one of a provider's server where the view begins with it, else the checkpoint's; without any,
    the newest that an agent wrote into the list.
    """
    state = proposal.job.state
    boundary, folded = state.boundary, state.clean(proposal.choice.folded)
    if state.server is not None and (found := list(earlier_summaries(state.clean([state.server])))):
        return without_carried(folded, found), found[-1].text
    if boundary is not None:
        point = boundary.checkpoint
        older = [one.text for one in point.carried if one.kind == "summary" and one.text != point.summary]
        return folded, "\n\n".join((*older, point.summary))
    newest = newest_summary(list(earlier_summaries(folded)))
    if newest is None:
        return folded, None
    return without_carried(folded, [newest]), newest.text


def fit_summary(
    proposal: Proposal, wanted: SummaryRequest, cost: Cost = FREE, *, in_vain: bool = False
) -> SummarySteps[Attempt]:
    """Have the summary written, shorter each time, until the view fits; the smallest attempt where none does.

    The first may take `wanted.tokens`. `cost` is what was spent before. Where a model was asked
    `in_vain` before, none is asked again.
    """
    room, asks, model_asked = wanted.tokens, 0 if in_vain else ASKS, in_vain
    tried: list[Attempt] = []
    for left in range(PASSES, 0, -1):
        wanted = msgspec.structs.replace(wanted, tokens=max(room, 1))
        got = yield from obtain(wanted, proposal.job.counter, asks)
        model_asked, cost = model_asked or got.model_asked, cost.plus(got.reply)
        asks = 0 if model_asked and got.reply.summarizer == OFFLINE else got.asks_left
        attempt = attempt_with(proposal, got.reply, cost, model_asked=model_asked)
        if attempt.fits:
            return attempt
        tried.append(attempt)
        room = max(room - attempt.excess - 8, min(room, CHECKPOINT_LEAST) // left)
    return min(tried, key=lambda attempt: attempt.size)


def attempt_with(
    proposal: Proposal, reply: SummaryReply, cost: Cost = FREE, *, model_asked: bool = False
) -> Attempt:
    """Return the attempt that a summary makes of a proposal."""
    boundary = scrub_secrets(_boundary(proposal, reply), proposal.job)
    after = ViewState([*proposal.base.entries(), boundary], counter=proposal.job.counter)
    return Attempt(proposal, reply, boundary, after, cost, model_asked)


def _boundary(proposal: Proposal, reply: SummaryReply) -> Compacted:
    choice, whole = proposal.choice, proposal.facts.whole
    constraints = with_proven(whole.constraints, _new_rules(proposal, reply), _entries(choice))
    carried = msgspec.structs.replace(reply.ledger or bounded(whole), constraints=constraints)
    joined = tuple(entry.id for entry in choice.joined)
    replaces = proposal.job.carry.replaces
    return Compacted(
        id="",
        parent=None,
        checkpoint=make_checkpoint(reply.text, _frame(proposal, reply), proposal.job.counter),
        receipt=Receipt(reason=proposal.job.ask.reason),
        first_kept=choice.kept[0].id if choice.kept else None,
        leading=(*(e.id for e in proposal.base.leading if replaces.get(e.id) not in joined), *joined),
        quoted=tuple(entry.id for entry in choice.quoted),
        edits=tuple(edit for found in choice.edits.values() for edit in found),
        ledger=msgspec.to_builtins(carried),
    )


def _frame(proposal: Proposal, reply: SummaryReply) -> Frame:
    """Return the frame of a summary: a model has read the earlier summaries and told of them in its own."""
    frame = proposal.frame
    if reply.summarizer in (OFFLINE, EDITED):
        return frame
    kept = tuple(one for one in frame.carried if one.kind != "summary")
    return msgspec.structs.replace(frame, carried=kept)


def _new_rules(proposal: Proposal, reply: SummaryReply) -> list[ConstraintFact]:
    """Return the rules that a summary proved and the ledger does not hold."""
    known = {fact.text for fact in proposal.facts.whole.constraints}
    return [fact for fact in reply.rules if fact.text not in known]


def _entries(choice: Choice) -> list[Said]:
    return [*choice.folded, *choice.quoted, *choice.kept]


def with_receipt(attempt: Attempt, notes: Sequence[str] = ()) -> Compacted:
    """Return the boundary of an attempt with its receipt; `notes` stand before those of the summary."""
    proposal, boundary = attempt.proposal, attempt.boundary
    job, facts, after = proposal.job, proposal.facts, attempt.after.view()
    receipt = made_receipt(
        job,
        before=job.state.view(),
        after=after,
        folded=proposal.choice.folded,
        edits=boundary.edits,
        sizes=(job.size, attempt.size),
    )
    standing = [*facts.shown.constraints, *_new_rules(proposal, attempt.reply)]
    shown, lost = standing_in(standing, after)
    receipt = msgspec.structs.replace(
        receipt,
        dropped={**receipt.dropped, **_lost(proposal, boundary)},
        first_kept=boundary.first_kept,
        constraints=constraint_figures(shown, [*facts.excess, *lost]),
        summarizer=attempt.reply.summarizer,
        usage=attempt.cost.usage,
        price=attempt.cost.price,
        notes=(*receipt.notes, *notes, *attempt.cost.notes),
    )
    return msgspec.structs.replace(boundary, receipt=scrub_secrets(receipt, job))


def _lost(proposal: Proposal, boundary: Compacted) -> dict[str, list[str]]:
    """Return the instructions and earlier summaries that had no room, by kind; what is kept shows its own."""
    elided = {edit.entry for edit in boundary.edits if edit.kind == "elided"}
    leading = [*proposal.base.leading, *proposal.choice.joined]
    shorter = [f"{name_of(entry)} (without its middle)" for entry in leading if entry.id in elided]
    kept = {entry.id for entry in (*proposal.choice.kept, *proposal.choice.quoted)}
    found: dict[str, list[str]] = {"instructions": shorter} if shorter else {}
    for kind, name, entry in proposal.job.carry.dropped:
        if entry not in kept:
            key = "instructions" if kind == "instructions" else "earlier_summaries"
            found.setdefault(key, []).append(name)
    return found


# ---- what code knows of what is folded


CONSTRAINT_SHARE = 10  # standing constraints take at most usable / CONSTRAINT_SHARE


class Facts(msgspec.Struct, frozen=True):
    """The whole ledger, and the one that is shown: standing constraints had `room` tokens in it.

    `excess` are the texts of those that were left out.
    """

    whole: Ledger
    shown: Ledger
    excess: Sequence[str] = ()
    room: int = 0


def ledger_of(job: CompactionInput, folded: Sequence[Said], kept: Sequence[Said]) -> Ledger:
    """Return the ledger of what was folded before and is folded now, brought up to date by what is kept."""
    boundary, clean = job.state.boundary, job.state.clean
    before = msgspec.convert(boundary.ledger, Ledger) if boundary is not None else Ledger()
    said = without_carried(clean((*job.state.past, *folded)), job.carry.texts)
    known = merge(merge(before, collect(said)), tracked(job.state.notes))
    return redact_facts(current(known, clean(kept)))


def facts_within(ledger: Ledger, room: int, counter: Counter) -> Facts:
    """Return the facts of a ledger with as many standing constraints as fit into `room` tokens."""
    shown, excess = within(ledger, room, counter.count)
    return Facts(ledger, shown, excess, room)


# ---- a choice made into an attempt


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
