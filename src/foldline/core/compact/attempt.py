"""An attempt at a fold: a proposal with its summary, and the view that comes of it."""

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
from foldline.core.compact.facts import Facts
from foldline.core.compact.job import CompactionInput
from foldline.core.compact.receipts import constraint_figures, made_receipt, standing_in
from foldline.core.compact.second_line import scrub_secrets
from foldline.core.cut.choice import CHECKPOINT_LEAST, Choice
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.ledger.table import bounded
from foldline.core.log.entries import Compacted, Receipt, Said
from foldline.core.view import ViewState

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
