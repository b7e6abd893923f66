"""An attempt at a fold: a choice with its facts, its summary and the resulting view.

Choice -> Proposal (facts, frame) -> SummaryRequest -> SummaryReply -> Attempt (boundary, view)
^                                                          |                  |
|                                                          +-- retry, shorter, until the view fits
+---- for a target, with the tokens that the summary left (`fill_target`) ----+
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.carried.select import name_of, named, without_carried
from foldline.core.carried.summaries import earlier_summaries, newest_summary
from foldline.core.checkpoint.checkpoint import Frame, make_checkpoint
from foldline.core.checkpoint.ground import with_proven
from foldline.core.checkpoint.obtain import ASKS, EDITED, FREE, OFFLINE, Cost, SummarySteps, obtain
from foldline.core.checkpoint.request import RequestKind, SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import request
from foldline.core.compact.choice import Choice, SecondPass, choose, restored
from foldline.core.compact.compaction_input import CompactionInput, frame_before, of_summaries
from foldline.core.compact.receipt import constraint_figures, made_receipt, scrub_secrets, standing_in
from foldline.core.compact.room import CHECKPOINT_LEAST, SPARE, Room, floor_of
from foldline.core.cut.edits import edited_parts, flat, is_folded, merged, saved_by
from foldline.core.cut.thinking import server_edits, stripped
from foldline.core.ledger.facts.files import tracked
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.table import bounded, collect, current, merge, with_next, within
from foldline.core.log.entries import Compacted, Receipt, Said
from foldline.core.log.messages import Text
from foldline.core.secrets.derived import redact_facts, strings_in
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded

PASSES = 6  # summaries requested at most while the view is too large
FILLS = 3  # times that unused tokens of a target are given to the kept messages
CONSTRAINT_SHARE = 10  # standing constraints take at most usable / CONSTRAINT_SHARE


class Proposal(msgspec.Struct, frozen=True):
    """A fold without its summary: what is folded and kept, its facts, and the checkpoint's frame.

    `base` is the view state that the boundary is appended to: the job's own, or that of a new session.
    `shown` is the part of the ledger that has room in a checkpoint; `taken_out` are rules the user removed.
    """

    job: CompactionInput
    base: ViewState
    choice: Choice
    frame: Frame
    ledger: Ledger
    shown: Ledger
    taken_out: Sequence[str] = ()


class Attempt(msgspec.Struct, frozen=True):
    """A proposal with a summary: the boundary, and the view state after it.

    `cost` covers every summary written on the way. `model_asked`: a model was asked for one.
    """

    proposal: Proposal
    reply: SummaryReply
    boundary: Compacted
    after: ViewState
    cost: Cost = FREE
    model_asked: bool = False

    @property
    def size(self) -> int:
        """The tokens of the view after the boundary, with a separate system prompt and tools."""
        return self.proposal.job.ask.overhead_tokens + self.after.tokens

    @property
    def spare(self) -> int:
        """The tokens of usable that are left; negative if the view is too large."""
        return self.proposal.job.ask.usable - self.size


# ---- a proposal


def propose(job: CompactionInput, choice: Choice, ledger: Ledger | None = None) -> Proposal:
    """Return the proposal of a choice; `ledger` is that of what it folds, if known."""
    choice = _without_signed_thinking(job, choice)
    facts = ledger or ledger_of(job, choice.folded, choice.kept)
    rule_room = job.ask.usable // CONSTRAINT_SHARE + choice.room // 3  # rules come before the rest of a page
    shown, _ = within(facts, rule_room, job.counter.count)
    frame = frame_before(job, choice.kept, choice.quoted, choice.edits)
    return Proposal(job, job.state, choice, frame, facts, shown)


def _without_signed_thinking(job: CompactionInput, choice: Choice) -> Choice:
    """Return a choice that removes signed thinking from what is kept, since its prefix changes.

    The text of a kept server's compaction is removed too: the checkpoint has it. Of a reply that stays for a
    sealed compaction, only that is kept.
    """
    removals = stripped(choice.kept, 0, job.counter, edited_parts(choice.edits))
    shown = [entry for entry in choice.kept if not is_folded(choice.edits.get(entry.id, ()))]
    removals += server_edits(shown, choice.joined, job.counter)
    return msgspec.structs.replace(choice, edits=merged(choice.edits, removals))


def ledger_of(job: CompactionInput, folded: Sequence[Said], kept: Sequence[Said]) -> Ledger:
    """Return the ledger of what was folded before and is folded now, updated by what is kept."""
    boundary, clean = job.state.boundary, job.state.clean
    before = msgspec.convert(boundary.ledger, Ledger) if boundary is not None else Ledger()
    messages = without_carried(clean((*job.state.past, *folded)), job.carry.texts)
    new = collect(messages, before)
    earlier, later = tracked(job.state.notes, before.files, new.files, messages)
    combined = merge(with_next(merge(before, earlier), new), later)
    tail = clean(kept)
    read = {part.text for one in (*messages, *tail) for part in one.message.parts if isinstance(part, Text)}
    return redact_facts(current(combined, tail), read)


def summary_request(proposal: Proposal, kind: RequestKind, goal: str | None, tokens: int) -> SummaryRequest:
    """Return the request for the summary of a proposal."""
    ask, clean = proposal.job.ask, proposal.job.state.clean
    messages, previous = _previous_summary(proposal)
    wanted = request(
        ask.policy,
        kind="update" if previous and kind == "first" else kind,
        folded=messages,
        previous=previous,
        ledger=proposal.shown,
        tokens=tokens,
        instructions=ask.instructions or goal,
        goal=goal,
        kept=clean(proposal.choice.kept),
        project=of_summaries(proposal.job),
    )
    return msgspec.structs.replace(wanted, secrets=bool(clean.secrets), refused=ask.reason == "overflow")


def _previous_summary(proposal: Proposal) -> tuple[list[Said], str | None]:
    """Return the messages to summarise, and the previous summary to update.

    The previous summary is the server's compaction that the view begins with, else the checkpoint's, else the
    newest that an agent wrote into the list.
    """
    state = proposal.job.state
    boundary, folded = state.boundary, state.clean(proposal.choice.folded)
    if state.server is not None and (summaries := list(earlier_summaries(state.clean([state.server])))):
        return without_carried(folded, summaries), summaries[-1].text
    if boundary is not None:
        checkpoint = boundary.checkpoint
        older = [
            one.text for one in checkpoint.carried if one.kind == "summary" and one.text != checkpoint.summary
        ]
        return folded, "\n\n".join((*older, checkpoint.summary))
    newest = newest_summary(list(earlier_summaries(folded)))
    return (without_carried(folded, [newest]), newest.text) if newest is not None else (folded, None)


# ---- an attempt


def fold_choice(
    room: Room, choice: Choice, cost: Cost = FREE, *, model_failed: bool = False
) -> SummarySteps[Attempt]:
    """Return the attempt that carries out a choice; raises FloorExceeded if the view never fits.

    `cost` is what was spent before. After `model_failed`, code writes the summary.
    """
    job, policy = room.job, room.job.ask.policy
    proposal = propose(job, choice)
    tokens = choice.room if room.target else min(choice.room, room.most_summary(choice.folded))
    goal = job.ask.goal
    if policy.summary_prompt == "handoff" and policy.hard is None:  # the policy only hands off
        goal = goal or proposal.shown.newest_request or None
    kind: RequestKind = "first"
    if goal is not None or choice.cut.inside_turn:
        kind = "handoff" if goal is not None else "split_turn"
    request = summary_request(proposal, kind, goal, tokens)
    attempt = yield from fit_summary(proposal, request, cost, model_failed=model_failed)
    if attempt.spare < 0:
        floor = floor_of(job)
        raise FloorExceeded(max(floor.total, min(job.size, attempt.size)), job.ask.usable, floor.breakdown)
    return attempt


def fit_summary(
    proposal: Proposal, request: SummaryRequest, cost: Cost = FREE, *, model_failed: bool = False
) -> SummarySteps[Attempt]:
    """Have the summary written, shorter each time, until the view fits; else return the smallest attempt.

    The first summary may take `request.tokens`. `cost` is what was spent before. After `model_failed`, no
    model is asked.
    """
    tokens, tries, model_asked = request.tokens, 0 if model_failed else ASKS, model_failed
    attempts: list[Attempt] = []
    for passes_left in range(PASSES, 0, -1):
        request = msgspec.structs.replace(request, tokens=max(tokens, 1))
        obtained = yield from obtain(request, proposal.job.counter, tries)
        model_asked, cost = model_asked or obtained.model_asked, cost.plus(obtained.reply)
        tries = 0 if model_asked and obtained.reply.summarizer == OFFLINE else obtained.asks_left
        attempt = attempt_with(proposal, obtained.reply, cost, model_asked=model_asked)
        if attempt.spare >= 0:
            return attempt
        attempts.append(attempt)
        tokens = max(tokens + attempt.spare - 8, min(tokens, CHECKPOINT_LEAST) // passes_left)
    return min(attempts, key=lambda attempt: attempt.size)


def attempt_with(
    proposal: Proposal, reply: SummaryReply, cost: Cost = FREE, *, model_asked: bool = False
) -> Attempt:
    """Return the attempt of a proposal with its summary."""
    boundary = scrub_secrets(_boundary(proposal, reply), proposal.job)
    after = ViewState([*proposal.base.entries(), boundary], counter=proposal.job.counter)
    return Attempt(proposal, reply, boundary, after, cost, model_asked)


def _boundary(proposal: Proposal, reply: SummaryReply) -> Compacted:
    choice, frame, job = proposal.choice, proposal.frame, proposal.job
    messages = [*choice.folded, *choice.quoted, *choice.kept]
    constraints = with_proven(proposal.ledger.constraints, _new_rules(proposal, reply), messages)
    ledger = bounded(proposal.ledger)
    if reply.ledger is not None:
        ledger = redact_facts(reply.ledger, set(strings_in(proposal.ledger)))
    ledger = msgspec.structs.replace(ledger, constraints=constraints)
    joined = tuple(entry.id for entry in choice.joined)
    leading = (e.id for e in proposal.base.leading if job.carry.replaces.get(e.id) not in joined)
    if reply.summarizer not in (OFFLINE, EDITED):  # the model has merged the earlier summaries
        instructions = tuple(carried for carried in frame.carried if carried.kind != "summary")
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
    """Return the rules that a summary proved and that are not in the ledger."""
    texts = {fact.text for fact in proposal.ledger.constraints}
    return [fact for fact in reply.rules if fact.text not in texts]


# ---- unused tokens of a target


def fill_target(room: Room, attempt: Attempt) -> SummarySteps[Attempt]:
    """Return an attempt that uses the tokens which the summary left of its target.

    They go to more of the newest messages, else to what was shortened of them. A summary by code is written
    again for the smaller range. A model is not asked again: its summary stays, and also covers the additional
    messages that are kept.
    """
    for _ in range(FILLS if room.target else 0):
        if attempt.spare < room.usable // SPARE:
            break
        next_attempt = yield from _fill_more(room, attempt)
        if next_attempt is None or not 0 <= next_attempt.spare < attempt.spare:
            break
        attempt = next_attempt
    return attempt


def _fill_more(room: Room, attempt: Attempt) -> SummarySteps[Attempt | None]:
    """Return an attempt that uses more of the target; None if there is none."""
    choice, old = _choose_more(room, attempt), attempt.proposal.choice
    if choice is not None and choice.folded == old.folded:
        return _with_choice(attempt, choice, attempt.proposal.ledger)
    if choice is not None and (not attempt.model_asked or attempt.reply.summarizer == OFFLINE):
        try:
            return (yield from fold_choice(room, choice, attempt.cost, model_failed=attempt.model_asked))
        except FloorExceeded:
            return None
    shown = {entry.id for entry in (*choice.quoted, *choice.kept)} if choice is not None else set[str]()
    if choice is not None and shown.issuperset(entry.id for entry in old.quoted):  # no summary covers them
        next_attempt = _with_choice(attempt, choice)
        if 0 <= next_attempt.spare < attempt.spare:
            return next_attempt
    choice = _without_signed_thinking(room.job, restored(old, room, attempt.spare))
    if saved_by(choice.edits) >= saved_by(old.edits):
        return None
    return _with_choice(attempt, choice, attempt.proposal.ledger)


def _choose_more(room: Room, attempt: Attempt) -> Choice | None:
    """Choose again with the tokens that the summary left; None if no more messages fit."""
    old, spare = attempt.proposal.choice, attempt.spare
    leading = room.tokens(room.job.state.leading, old.edits)
    second = SecondPass(old.room - spare, leading + spare)
    choice = choose(room, second)
    if choice is None or choice.room < second.summary or choice.cut.index > old.cut.index:
        return None
    same = choice.cut.index == old.cut.index
    return None if same and saved_by(choice.edits) >= saved_by(old.edits) else choice


def _with_choice(attempt: Attempt, choice: Choice, ledger: Ledger | None = None) -> Attempt:
    """Return the attempt of another choice with the same summary."""
    proposal = propose(attempt.proposal.job, choice, ledger)
    return attempt_with(proposal, attempt.reply, attempt.cost, model_asked=attempt.model_asked)


# ---- the receipt


def with_receipt(attempt: Attempt, notes: Sequence[str] = ()) -> Compacted:
    """Return the boundary of an attempt with its receipt; `notes` come before those of the summary."""
    proposal, boundary = attempt.proposal, attempt.boundary
    receipt = made_receipt(proposal.job, boundary, attempt.after, proposal.choice.folded)
    rules = [*proposal.ledger.constraints, *_new_rules(proposal, attempt.reply)]
    shown, missing = standing_in(rules, attempt.after.items())
    receipt = msgspec.structs.replace(
        receipt,
        dropped={**receipt.dropped, **_dropped(proposal, boundary)},
        first_kept=boundary.first_kept,
        constraints=constraint_figures(shown, [*proposal.taken_out, *missing]),
        summarizer=attempt.reply.summarizer,
        usage=attempt.cost.usage,
        price=attempt.cost.price,
        notes=(*receipt.notes, *notes, *attempt.cost.notes),
    )
    return msgspec.structs.replace(boundary, receipt=scrub_secrets(receipt, proposal.job))


def _dropped(proposal: Proposal, boundary: Compacted) -> dict[str, list[str]]:
    """Return the instructions, earlier summaries and marks that had no room, by kind.

    Those in kept messages are still shown.
    """
    elided = {edit.entry for edit in boundary.edits if edit.kind == "elided"}
    leading = [*proposal.base.leading, *proposal.choice.joined]
    shorter = [f"{name_of(entry)} (without its middle)" for entry in leading if entry.id in elided]
    kept = {entry.id for entry in (*proposal.choice.kept, *proposal.choice.quoted)}
    dropped: dict[str, list[str]] = {"instructions": shorter} if shorter else {}
    for kind, name, entry in proposal.job.carry.dropped:
        if entry not in kept:
            key = "instructions" if kind == "instructions" else "earlier_summaries"
            dropped.setdefault(key, []).append(name)
    state = proposal.job.state
    shown = {mark.entry for mark in boundary.checkpoint.marks} | state.pins.keys()
    if missing := [mark for mark in state.marks.values() if mark.entry not in shown]:
        dropped["marks"] = [named(redact(mark.text)) for mark in missing]
    return dropped
