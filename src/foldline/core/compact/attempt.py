"""An attempt at a fold: a choice with its facts, its summary, and the view that comes of it.

Choice -> Proposal (facts, frame) -> SummaryRequest -> SummaryReply -> Attempt (boundary, view)
^                                                          |                  |
|                                                          +-- again, shorter, until the view fits
+---- for a target, with what the summary left of it (`filled`) --------------+
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.carried.instructions import kind_of, on_compacting
from foldline.core.carried.select import name_of, named, without_carried
from foldline.core.carried.summaries import earlier_summaries, newest_summary
from foldline.core.checkpoint.checkpoint import Frame, make_checkpoint
from foldline.core.checkpoint.ground import with_proven
from foldline.core.checkpoint.obtain import ASKS, EDITED, FREE, OFFLINE, Cost, SummarySteps, obtain
from foldline.core.checkpoint.request import RequestKind, SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import request
from foldline.core.compact.choice import Choice, SecondPass, choose, restored
from foldline.core.compact.compaction_input import CompactionInput, frame_before
from foldline.core.compact.receipt import constraint_figures, made_receipt, scrub_secrets, standing_in
from foldline.core.compact.room import CHECKPOINT_LEAST, SPARE, Room, floor_of
from foldline.core.cut.edits import edited_parts, flat, is_folded, merged, saved_by
from foldline.core.cut.thinking import server_edits, stripped
from foldline.core.ledger.facts.files import tracked
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.table import bounded, collect, current, merge, with_next, within
from foldline.core.log.entries import Compacted, Receipt, Said
from foldline.core.secrets.derived import redact_facts
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded

PASSES = 6  # times that a summary is asked for because the view came out too large
FILLS = 3  # times that what a checkpoint left of a target is given away
CONSTRAINT_SHARE = 10  # standing constraints take at most usable / CONSTRAINT_SHARE


class Proposal(msgspec.Struct, frozen=True):
    """A fold without its summary: what is folded and what stays, the facts of it, and the checkpoint's frame.

    `base` is the view state that the boundary goes onto: the job's own, or that of a new session. `shown` is
    the part of the ledger that has room in a checkpoint; `taken_out` are the rules that the user removed.
    """

    job: CompactionInput
    base: ViewState
    choice: Choice
    frame: Frame
    ledger: Ledger
    shown: Ledger
    taken_out: Sequence[str] = ()


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
    def spare(self) -> int:
        """The tokens of usable that are left; negative where the view is too large."""
        return self.proposal.job.ask.usable - self.size


# ---- a proposal


def proposed(job: CompactionInput, choice: Choice, ledger: Ledger | None = None) -> Proposal:
    """Return the proposal of a choice; `ledger` is that of what it folds, where it is known."""
    choice = _without_bound(job, choice)
    known = ledger or ledger_of(job, choice.folded, choice.kept)
    for_rules = job.ask.usable // CONSTRAINT_SHARE + choice.room // 3  # before what else a page tells
    shown, _ = within(known, for_rules, job.counter.count)
    frame = frame_before(job, choice.kept, choice.quoted, choice.edits)
    return Proposal(job, job.state, choice, frame, known, shown)


def _without_bound(job: CompactionInput, choice: Choice) -> Choice:
    """Return a choice that takes signed thinking out of what is kept: its prefix is no longer there.

    Where a server's compaction is kept, its text goes, as the checkpoint tells it; of a reply that stays for
    a sealed one the rest goes.
    """
    gone = stripped(choice.kept, 0, job.counter, edited_parts(choice.edits))
    shown = [entry for entry in choice.kept if not is_folded(choice.edits.get(entry.id, ()))]
    gone += server_edits(shown, choice.joined, job.counter)
    return msgspec.structs.replace(choice, edits=merged(choice.edits, gone))


def ledger_of(job: CompactionInput, folded: Sequence[Said], kept: Sequence[Said]) -> Ledger:
    """Return the ledger of what was folded before and is folded now, brought up to date by what is kept."""
    boundary, clean = job.state.boundary, job.state.clean
    before = msgspec.convert(boundary.ledger, Ledger) if boundary is not None else Ledger()
    said = without_carried(clean((*job.state.past, *folded)), job.carry.texts)
    found = collect(said, before.constraints)
    earlier, later = tracked(job.state.notes, before.files, found.files, said)
    known = merge(with_next(merge(before, earlier), found), later)
    return redact_facts(current(known, clean(kept)))


def summary_request(proposal: Proposal, kind: RequestKind, goal: str | None, tokens: int) -> SummaryRequest:
    """Return the request for the summary of a proposal."""
    ask, clean = proposal.job.ask, proposal.job.state.clean
    folded, previous = _previous(proposal)
    wanted = request(
        ask.policy,
        kind="update" if previous and kind == "first" else kind,
        folded=folded,
        previous=previous,
        ledger=proposal.shown,
        tokens=tokens,
        instructions=ask.instructions or goal,
        goal=goal,
        kept=clean(proposal.choice.kept),
        project=of_summaries(proposal.job),
    )
    return msgspec.structs.replace(wanted, secrets=bool(clean.secrets), refused=ask.reason == "overflow")


def of_summaries(job: CompactionInput) -> str:
    """Return what the instructions that the session holds say of summaries, each thing once."""
    state, replaced = job.state, job.carry.replaces
    told = [entry for entry in (*state.leading, *state.kept) if kind_of(entry.message) is not None]
    texts = [
        *(entry.message.text for entry in state.clean(told) if entry.id not in replaced),
        *(one.text for one in job.carry.texts if one.kind == "instructions"),
    ]
    sections = (job.ask.project, *map(on_compacting, texts))
    return "\n\n".join(dict.fromkeys(one for one in sections if one))


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
    return (without_carried(folded, [newest]), newest.text) if newest is not None else (folded, None)


# ---- an attempt


def folded(room: Room, choice: Choice, cost: Cost = FREE, *, in_vain: bool = False) -> SummarySteps[Attempt]:
    """Return the attempt that folds what a choice folds; raises FloorExceeded where the view never fits.

    `cost` is what was spent before. Where a model was asked `in_vain`, code writes the summary.
    """
    job, policy = room.job, room.job.ask.policy
    proposal = proposed(job, choice)
    tokens = choice.room if room.target else min(choice.room, room.most_summary(choice.folded))
    goal = job.ask.goal
    if policy.summary_prompt == "handoff" and policy.hard is None:  # the policy only hands off
        goal = goal or proposal.shown.newest_request or None
    kind: RequestKind = "first"
    if goal is not None or choice.cut.inside_turn:
        kind = "handoff" if goal is not None else "split_turn"
    wanted = summary_request(proposal, kind, goal, tokens)
    attempt = yield from fit_summary(proposal, wanted, cost, in_vain=in_vain)
    if attempt.spare < 0:
        floor = floor_of(job)
        raise FloorExceeded(max(floor.total, min(job.size, attempt.size)), job.ask.usable, floor.breakdown)
    return attempt


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
        if attempt.spare >= 0:
            return attempt
        tried.append(attempt)
        room = max(room + attempt.spare - 8, min(room, CHECKPOINT_LEAST) // left)
    return min(tried, key=lambda attempt: attempt.size)


def attempt_with(
    proposal: Proposal, reply: SummaryReply, cost: Cost = FREE, *, model_asked: bool = False
) -> Attempt:
    """Return the attempt that a summary makes of a proposal."""
    boundary = scrub_secrets(_boundary(proposal, reply), proposal.job)
    after = ViewState([*proposal.base.entries(), boundary], counter=proposal.job.counter)
    return Attempt(proposal, reply, boundary, after, cost, model_asked)


def _boundary(proposal: Proposal, reply: SummaryReply) -> Compacted:
    choice, frame, job = proposal.choice, proposal.frame, proposal.job
    said = [*choice.folded, *choice.quoted, *choice.kept]
    constraints = with_proven(proposal.ledger.constraints, _new_rules(proposal, reply), said)
    ledger = msgspec.structs.replace(reply.ledger or bounded(proposal.ledger), constraints=constraints)
    joined = tuple(entry.id for entry in choice.joined)
    leading = (e.id for e in proposal.base.leading if job.carry.replaces.get(e.id) not in joined)
    if reply.summarizer not in (OFFLINE, EDITED):  # a model has read the earlier summaries and told of them
        instructions = tuple(one for one in frame.carried if one.kind != "summary")
        frame = msgspec.structs.replace(frame, carried=instructions)
    return Compacted(
        id="",
        parent=None,
        checkpoint=make_checkpoint(reply.text, frame, job.counter),
        receipt=Receipt(reason=job.ask.reason),
        first_kept=choice.kept[0].id if choice.kept else None,
        leading=(*leading, *joined),
        quoted=tuple(entry.id for entry in choice.quoted),
        edits=tuple(flat(choice.edits)),
        ledger=msgspec.to_builtins(ledger),
    )


def _new_rules(proposal: Proposal, reply: SummaryReply) -> list[ConstraintFact]:
    """Return the rules that a summary proved and the ledger does not hold."""
    known = {fact.text for fact in proposal.ledger.constraints}
    return [fact for fact in reply.rules if fact.text not in known]


# ---- what a summary left of a target


def filled(room: Room, attempt: Attempt) -> SummarySteps[Attempt]:
    """Return the attempt with what it left of its target given away, as far as something comes of it.

    It goes to more of the newest messages, else to what was shortened of them. Where a summary costs nothing
    it is written again for what is folded then. A model is not asked again: its summary stays as it is, so
    what is kept in addition stands in both.
    """
    for _ in range(FILLS if room.target else 0):
        if attempt.spare < room.usable // SPARE:
            break
        fuller = yield from _fuller(room, attempt)
        if fuller is None or not 0 <= fuller.spare < attempt.spare:
            break
        attempt = fuller
    return attempt


def _fuller(room: Room, attempt: Attempt) -> SummarySteps[Attempt | None]:
    """Return an attempt that uses more of the target; None where nothing comes of it."""
    choice, before = _keeping_more(room, attempt), attempt.proposal.choice
    if choice is not None and choice.folded == before.folded:
        return _with_choice(attempt, choice, attempt.proposal.ledger)
    if choice is not None and (not attempt.model_asked or attempt.reply.summarizer == OFFLINE):
        try:
            return (yield from folded(room, choice, attempt.cost, in_vain=attempt.model_asked))
        except FloorExceeded:
            return None
    if choice is not None and _shows(choice, before.quoted):
        fuller = _with_choice(attempt, choice)
        if 0 <= fuller.spare < attempt.spare:
            return fuller
    choice = _without_bound(room.job, restored(before, room, attempt.spare))
    if saved_by(choice.edits) >= saved_by(before.edits):
        return None
    return _with_choice(attempt, choice, attempt.proposal.ledger)


def _keeping_more(room: Room, attempt: Attempt) -> Choice | None:
    """Choose again with what the summary left; None where no more of the newest has room."""
    before, spare = attempt.proposal.choice, attempt.spare
    leading = room.tokens(room.job.state.leading, before.edits)
    second = SecondPass(before.room - spare, leading + spare)
    found = choose(room, second)
    if found is None or found.room < second.summary or found.cut.index > before.cut.index:
        return None
    same = found.cut.index == before.cut.index
    return None if same and saved_by(found.edits) >= saved_by(before.edits) else found


def _shows(choice: Choice, quoted: Sequence[Said]) -> bool:
    """Whether a choice keeps what was quoted beside a summary: the summary does not tell of it."""
    stay = {entry.id for entry in (*choice.quoted, *choice.kept)}
    return all(entry.id in stay for entry in quoted)


def _with_choice(attempt: Attempt, choice: Choice, ledger: Ledger | None = None) -> Attempt:
    """Let the summary stand before what another choice keeps: it still tells of what it was written from."""
    proposal = proposed(attempt.proposal.job, choice, ledger)
    return attempt_with(proposal, attempt.reply, attempt.cost, model_asked=attempt.model_asked)


# ---- the receipt


def with_receipt(attempt: Attempt, notes: Sequence[str] = ()) -> Compacted:
    """Return the boundary of an attempt with its receipt; `notes` stand before those of the summary."""
    proposal, boundary = attempt.proposal, attempt.boundary
    job, after = proposal.job, attempt.after.view()
    receipt = made_receipt(
        job, before=job.state.view(), after=after, edits=boundary.edits, folded=proposal.choice.folded
    )
    rules = [*proposal.ledger.constraints, *_new_rules(proposal, attempt.reply)]
    shown, lost = standing_in(rules, after)
    receipt = msgspec.structs.replace(
        receipt,
        dropped={**receipt.dropped, **_lost(proposal, boundary)},
        first_kept=boundary.first_kept,
        constraints=constraint_figures(shown, [*proposal.taken_out, *lost]),
        summarizer=attempt.reply.summarizer,
        usage=attempt.cost.usage,
        price=attempt.cost.price,
        notes=(*receipt.notes, *notes, *attempt.cost.notes),
    )
    return msgspec.structs.replace(boundary, receipt=scrub_secrets(receipt, job))


def _lost(proposal: Proposal, boundary: Compacted) -> dict[str, list[str]]:
    """Return the instructions, earlier summaries and marks that had no room, by kind.

    What is kept shows its own.
    """
    elided = {edit.entry for edit in boundary.edits if edit.kind == "elided"}
    leading = [*proposal.base.leading, *proposal.choice.joined]
    shorter = [f"{name_of(entry)} (without its middle)" for entry in leading if entry.id in elided]
    kept = {entry.id for entry in (*proposal.choice.kept, *proposal.choice.quoted)}
    found: dict[str, list[str]] = {"instructions": shorter} if shorter else {}
    for kind, name, entry in proposal.job.carry.dropped:
        if entry not in kept:
            key = "instructions" if kind == "instructions" else "earlier_summaries"
            found.setdefault(key, []).append(name)
    state, held = proposal.job.state, {mark.entry for mark in boundary.checkpoint.marks}
    if lost := [one for one in state.marks.values() if one.entry not in held | state.pins.keys()]:
        found["marks"] = [named(redact(one.text)) for one in lost]
    return found
