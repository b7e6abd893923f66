"""A compaction from beginning to end, without doing anything: the one place where the rooms are composed.

`plan` is a generator. It tries a prune, measures, chooses a cut, and yields a `SummaryRequest`; whoever runs
it answers with a `SummaryReply`, or None where the summariser failed. It returns a boundary without an id,
ready to be chained and appended, or `Nothing` and why. Nothing here knows time, files or models.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from foldline.core.checkpoint.cost import Cost
from foldline.core.checkpoint.live import fitted
from foldline.core.checkpoint.obtain import ASKS, OFFLINE, obtain
from foldline.core.checkpoint.redact import redact_facts
from foldline.core.checkpoint.request import RequestKind, SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import request
from foldline.core.compact.job import (
    Job,
    balance_notes,
    floor_of,
    limits_of,
    made_receipt,
    material_of,
    needed,
)
from foldline.core.compact.rebase import checkpoint_of
from foldline.core.compact.trim import (
    constraint_figures,
    edited_parts,
    least_gain,
    no_gain,
    noted,
    only_pruned,
    prune_boundary,
    pruned,
    shortened,
    standing_in,
    stripped,
    suffices,
)
from foldline.core.cut.choice import (
    CHECKPOINT_LEAST,
    Choice,
    Edits,
    Limits,
    Material,
    Used,
    add,
    choose,
    eased,
    open_loop,
    signed,
    tokens_of,
)
from foldline.core.cut.cut import cut_notes
from foldline.core.decide.ask import Ask, Nothing
from foldline.core.decide.policy import Policy
from foldline.core.ledger.bounds import bounded
from foldline.core.ledger.collect import collect
from foldline.core.ledger.current import current, within
from foldline.core.ledger.facts.kinds import ConstraintFact, Ledger
from foldline.core.ledger.merge import merge
from foldline.core.log.entries import Compacted, Live, Pruned, Receipt, Said
from foldline.core.measure.tokens import Counter
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded

FILLS = 3  # times that what a checkpoint left of a target is given away
SPARE = 10  # a target of which less than 1 / SPARE is left is used
PASSES = 6  # times that an offline checkpoint is written again because the whole came out too large
CONSTRAINT_SHARE = 10  # standing constraints take at most usable / CONSTRAINT_SHARE

Outcome = Compacted | Pruned | Nothing
Steps = Generator[SummaryRequest, SummaryReply | None, Outcome]


def plan(fold: ViewState, ask: Ask, counter: Counter) -> Steps:
    """Plan one compaction of a fold.

    Raises FloorExceeded where what cannot be removed is larger than usable.
    """
    size = ask.apart_tokens + fold.tokens
    if (idle := _idle(fold, ask, size)) is not None:
        return idle
    ask = msgspec.structs.replace(ask, live=fitted(_live(fold, ask), ask.usable, counter))
    floor = floor_of(fold, ask, counter)
    if floor.total > ask.usable and ask.live:  # what is said is never refused for the sake of live state
        ask = msgspec.structs.replace(ask, live=())
        floor = floor_of(fold, ask, counter)
    if floor.total > ask.usable:
        least = needed(fold, ask, floor, counter)
        raise FloorExceeded(least.total, ask.usable, least.breakdown)
    job = Job(fold, ask, counter, size)
    edits = pruned(job)
    if edits and suffices(job, edits):
        return prune_boundary(job, noted(job, edits))
    if not ask.policy.enable_compaction:
        return only_pruned(job, edits)
    return (yield from _compact(job, edits))


def _live(fold: ViewState, ask: Ask) -> Sequence[Live]:
    """Live state as it is now; the checkpoint's, where whoever asks keeps none: a list that is folded again."""
    if ask.live or ask.standing is not None or fold.boundary is None:
        return ask.live
    return fold.boundary.checkpoint.live


def _idle(fold: ViewState, ask: Ask, size: int) -> Nothing | None:
    if ask.target is not None:
        return Nothing("fits", f"{size:,} tokens") if size <= ask.target else None
    again = ask.instructions and not ask.automatic
    again = again or (ask.reason == "overflow" and size > ask.usable)  # what was kept does not fit
    if not fold.kept[fold.fresh_from :] and not again:
        return Nothing("nothing_new")
    waits = ask.automatic and size <= ask.usable
    if waits and any(signed(entry.message) for entry in fold.kept[open_loop(fold.kept) :]):
        return Nothing(
            "signed_thinking", "inside a tool loop whose thinking is bound to what stands before it"
        )
    return None


# ---- compact


class _Facts(msgspec.Struct, frozen=True):
    """The whole ledger, and its standing constraints as they are shown and as they were left out."""

    whole: Ledger
    shown: Sequence[ConstraintFact]
    excess: Sequence[str]


class _Done(msgspec.Struct, frozen=True):
    """A choice with its summary: the boundary, the fold behind it, and by how much that is over what is usable.

    A model may be asked `asks` times more; standing constraints had `rules` tokens.
    """

    choice: Choice
    reply: SummaryReply
    facts: _Facts
    boundary: Compacted
    after: ViewState
    over: int
    asks: int = 0
    rules: int = 0


def _compact(job: Job, pruned: Edits) -> Steps:
    fold, ask, counter = job.fold, job.ask, job.counter
    limits = limits_of(fold, ask, counter)
    if ask.automatic:
        most = max(job.size - least_gain(ask), floor_of(fold, ask, counter).total)
        limits = msgspec.structs.replace(limits, usable=min(limits.usable, most))
    redraft = fold.boundary is not None and not ask.automatic
    material = msgspec.structs.replace(material_of(fold, pruned), redraft=redraft)
    choice = choose(material, ask.policy, limits, counter)
    if choice is None:
        return shortened(job, pruned)
    spent = Cost()
    done = yield from _fitted(job, choice, limits, spent, rules=ask.usable // CONSTRAINT_SHARE, asks=ASKS)
    for _ in range(FILLS):
        fuller = yield from _fuller(job, material, limits, done, spent)
        if fuller is None:
            break
        done = fuller
    return _judged(job, done, spent)


def _fitted(
    job: Job, choice: Choice, limits: Limits, spent: Cost, *, rules: int, asks: int
) -> Generator[SummaryRequest, SummaryReply | None, _Done]:
    """Have the summary of a choice written until the view fits; raises FloorExceeded where it never does."""
    fold, ask, counter = job.fold, job.ask, job.counter
    add(choice.edits, stripped(choice.kept, 0, counter, edited_parts(choice.edits)))
    before = _previous(fold)
    ledger = current(merge(before, collect(choice.folded)), collect(choice.kept), kept=_ids(choice.kept))
    whole = redact_facts(ledger)
    ledger, excess = within(whole, rules, counter.count)
    room = choice.room if limits.target else min(choice.room, limits.summary_cap)
    smallest = job.size
    for left in range(PASSES, 0, -1):
        reply, asks = yield from _summary(job, choice, ledger, room, asks)
        spent.take(reply)
        done = _done(job, choice, reply, _Facts(whole, ledger.constraints, excess))
        if done.over <= 0:
            return msgspec.structs.replace(done, asks=asks, rules=rules)
        smallest = min(smallest, ask.usable + done.over)
        room = max(room - done.over - 8, CHECKPOINT_LEAST // left)
    floor = floor_of(fold, ask, counter)
    raise FloorExceeded(max(floor.total, smallest), ask.usable, floor.breakdown)


def _fuller(
    job: Job, material: Material, limits: Limits, done: _Done, spent: Cost
) -> Generator[SummaryRequest, SummaryReply | None, _Done | None]:
    """Give what a fold left of its target away; None where nothing comes of it.

    It goes to what was shortened and, where a summary costs nothing, first to standing constraints that had no room,
    at last to more of the newest.
    """
    spare = -done.over
    if not limits.target or spare < job.ask.usable // SPARE:
        return None
    if done.reply.summarizer == OFFLINE and done.asks == ASKS:  # no model was asked
        fuller = yield from _rewritten(job, material, limits, done, spent)
    else:
        fuller = _eased(job, material, limits, done)
    return fuller if fuller is not None and done.over < fuller.over <= 0 else None


def _rewritten(
    job: Job, material: Material, limits: Limits, done: _Done, spent: Cost
) -> Generator[SummaryRequest, SummaryReply | None, _Done | None]:
    """Choose again with what the summary left, and have it written again."""
    spare, choice, rules = -done.over, done.choice, done.rules
    if done.facts.excess:
        rules += spare
    else:
        used = Used(choice.room - spare, tokens_of(material.leading, choice.edits) + spare)
        found = choose(material, job.ask.policy, limits, job.counter, used)
        if found is None or found.room < used.summary or not _keeps_more(found, choice):
            return _eased(job, material, limits, done)
        choice = found
    try:
        return (yield from _fitted(job, choice, limits, spent, rules=rules, asks=done.asks))
    except FloorExceeded:
        return None


def _eased(job: Job, material: Material, limits: Limits, done: _Done) -> _Done | None:
    """Give back what was shortened; the summary as it was written stands for the same messages as before."""
    choice = eased(done.choice, material, limits, job.counter, -done.over)
    add(choice.edits, stripped(choice.kept, 0, job.counter, edited_parts(choice.edits)))
    if not _keeps_more(choice, done.choice):
        return None
    fuller = _done(job, choice, done.reply, done.facts)
    return msgspec.structs.replace(fuller, asks=done.asks, rules=done.rules)


def _keeps_more(choice: Choice, before: Choice) -> bool:
    """Whether more of the newest is kept, or less of the same shortened."""
    if choice.cut.index == before.cut.index:
        return _saved(choice) < _saved(before)
    return choice.cut.index < before.cut.index


def _saved(choice: Choice) -> int:
    """Return the tokens that a choice's edits take out of what stays."""
    return sum(edit.saved for found in choice.edits.values() for edit in found)


def _done(job: Job, choice: Choice, reply: SummaryReply, facts: _Facts) -> _Done:
    boundary = _boundary(job, choice, reply, facts.whole)
    after = ViewState([*job.fold.entries(), boundary], counter=job.counter)
    over = job.ask.apart_tokens + after.tokens - job.ask.usable
    return _Done(choice, reply, facts, boundary, after, over)


def _ids(entries: Sequence[Said]) -> frozenset[str]:
    return frozenset(entry.id for entry in entries)


def _previous(fold: ViewState) -> Ledger:
    return msgspec.convert(fold.boundary.ledger, Ledger) if fold.boundary is not None else Ledger()


def _summary(
    job: Job, choice: Choice, ledger: Ledger, room: int, asks: int
) -> Generator[SummaryRequest, SummaryReply | None, tuple[SummaryReply, int]]:
    """Ask for the summary of what is folded; returns it, and how many of the `asks` are left."""
    fold, ask, counter = job.fold, job.ask, job.counter
    previous = fold.boundary.checkpoint.summary if fold.boundary is not None else None
    goal = ask.goal or _next_task(ask.policy, ledger)
    wanted = request(
        ask.policy,
        kind=_kind(goal, previous, split=choice.cut.inside_turn),
        folded=choice.folded,
        previous=previous,
        ledger=ledger,
        tokens=max(room, 1),
        instructions=ask.instructions or goal,
        goal=goal,
        kept=choice.kept,
    )
    wanted = msgspec.structs.replace(wanted, refused=ask.reason == "overflow")
    return (yield from obtain(wanted, counter, asks))


def _next_task(policy: Policy, ledger: Ledger) -> str | None:
    """Return the goal of a hand-off that names none: the newest request, where the policy only hands off."""
    hands_off = policy.summary_prompt == "handoff" and policy.hard is None
    return ledger.requests[-1].text if hands_off and ledger.requests else None


def _kind(goal: str | None, previous: str | None, *, split: bool) -> RequestKind:
    if goal is not None:
        return "handoff"
    if split:
        return "split_turn"
    return "update" if previous is not None else "first"


def _boundary(job: Job, choice: Choice, reply: SummaryReply, ledger: Ledger) -> Compacted:
    fold, ask, counter = job.fold, job.ask, job.counter
    point = checkpoint_of(
        reply.text,
        fold,
        ask,
        counter,
        quoted=choice.quoted,
        kept=choice.kept,
        edited=set(choice.edits),
    )
    carried = msgspec.structs.replace(reply.ledger or bounded(ledger), constraints=ledger.constraints)
    return Compacted(
        id="",
        parent=None,
        checkpoint=point,
        receipt=Receipt(reason=ask.reason),
        first_kept=choice.kept[0].id if choice.kept else None,
        leading=tuple(entry.id for entry in fold.leading),
        quoted=tuple(entry.id for entry in choice.quoted),
        edits=tuple(edit for found in choice.edits.values() for edit in found),
        ledger=msgspec.to_builtins(carried),
    )


def _judged(job: Job, done: _Done, spent: Cost) -> Outcome:
    """Return the boundary with its receipt, if it gains enough."""
    fold, ask, size = job.fold, job.ask, job.size
    choice, boundary, after, reply = done.choice, done.boundary, done.after, spent.on(done.reply)
    total = ask.apart_tokens + after.tokens
    if size - total < (least := least_gain(ask)):
        return no_gain(size - total, least)
    receipt = made_receipt(
        ask,
        before=fold.view(),
        after=after.view(),
        folded=choice.folded,
        edits=boundary.edits,
        sizes=(size, total),
    )
    notes = list(receipt.notes)
    if any(signed(entry.message) for entry in choice.kept[open_loop(choice.kept) :]):
        notes.append("signed thinking of the open tool loop was kept as it is")
    notes += cut_notes(choice.cut, ask.policy.cut_rule)
    notes += balance_notes(fold, ask, (size, total), reply.price)
    shown, lost = standing_in(done.facts.shown, after.view())
    receipt = msgspec.structs.replace(
        receipt,
        first_kept=boundary.first_kept,
        constraints=constraint_figures(shown, [*done.facts.excess, *lost]),
        summarizer=reply.summarizer,
        usage=reply.usage,
        price=reply.price,
        notes=(*notes, *reply.notes),
    )
    return msgspec.structs.replace(boundary, receipt=receipt)
