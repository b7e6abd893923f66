"""A compaction from beginning to end, without doing anything: the one place where the rooms are composed.

`plan` is a generator. It tries a prune, measures, chooses a cut, and yields a `SummaryRequest`; whoever runs
it answers with a `SummaryReply`, or None where the summariser failed. It returns a boundary without an id,
ready to be chained and appended, or `Nothing` and why. Nothing here knows time, files or models.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from foldline.core.checkpoint.checkpoint import make_checkpoint
from foldline.core.checkpoint.ground import ground
from foldline.core.checkpoint.redact import redact, redact_facts
from foldline.core.checkpoint.request import RequestKind, SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import Accepted, check, request
from foldline.core.decide.ask import Ask, Nothing
from foldline.core.decide.policy import Policy
from foldline.core.decide.triggers import thresholds
from foldline.core.fold.choice import (
    CHECKPOINT_LEAST,
    Choice,
    Edits,
    Limits,
    Material,
    add,
    choose,
    lead_edits,
    least_kept,
    open_loop,
    signed,
    strip_thinking,
    tokens_of,
)
from foldline.core.fold.prune import prune
from foldline.core.fold.shrink import shrink
from foldline.core.ledger.collect import collect
from foldline.core.ledger.compose import compose
from foldline.core.ledger.current import current, within
from foldline.core.ledger.facts import Ledger
from foldline.core.ledger.merge import merge
from foldline.core.log.entries import Checkpoint, Compacted, Edit, Pruned, Receipt, Said
from foldline.core.measure.tokens import Counter, part_tokens
from foldline.core.measure.window import Floor
from foldline.core.view import Fold, Item, Kept, made_receipt
from foldline.errors import FloorExceeded

ATTEMPTS = 2  # times that a summariser is asked before the offline checkpoint takes its place
PASSES = 6  # times that an offline checkpoint is written again because the whole came out too large
CONSTRAINT_SHARE = 10  # standing constraints take at most usable / CONSTRAINT_SHARE
OFFLINE = "offline"


class Job(msgspec.Struct, frozen=True):
    """One compaction while it is planned; `size` is the view's in tokens before it."""

    fold: Fold
    ask: Ask
    counter: Counter
    size: int


Outcome = Compacted | Pruned | Nothing
Steps = Generator[SummaryRequest, SummaryReply | None, Outcome]


def plan(fold: Fold, ask: Ask, counter: Counter) -> Steps:
    """Plan one compaction of a fold.

    Raises FloorExceeded where what cannot be removed is larger than usable.
    """
    size = ask.apart_tokens + fold.tokens
    if (idle := _idle(fold, ask, size)) is not None:
        return idle
    floor = floor_of(fold, ask, counter)
    if floor.total > ask.usable:
        needed = _needed(fold, ask, floor, counter)
        raise FloorExceeded(needed.total, ask.usable, needed.breakdown)
    job = Job(fold, ask, counter, size)
    edits = _pruned(job)
    if edits and _suffices(job, edits):
        return _prune_boundary(job, edits)
    if not ask.policy.enable_compaction:
        return _only_pruned(job, edits)
    return (yield from _compact(job, edits))


def _idle(fold: Fold, ask: Ask, size: int) -> Nothing | None:
    if ask.target is not None:
        return Nothing("fits", f"{size:,} tokens") if size <= ask.target else None
    said = fold.kept[fold.fresh_from :] if fold.boundary is not None or fold.fresh_from else fold.kept
    if not said and not (ask.instructions and not ask.automatic):
        return Nothing("nothing_new")
    if ask.automatic and any(signed(entry.message) for entry in fold.kept[open_loop(fold.kept) :]):
        return Nothing(
            "signed_thinking", "inside a tool loop whose thinking is bound to what stands before it"
        )
    return None


# ---- what cannot be removed


def floor_of(fold: Fold, ask: Ask, counter: Counter) -> Floor:
    """Return what no compaction of this fold can remove, in tokens."""
    usable = ask.usable
    limits = _limits(fold, ask, counter)
    material = _material(fold, {})
    leading: Edits = {}
    add(leading, lead_edits(material, limits, counter))
    bare = make_checkpoint("", ask.policy, counter, number=ask.number)
    return Floor(
        system=ask.apart.system + tokens_of(fold.leading, leading),
        tools=ask.apart.tools,
        pins=max(0, limits.wrap - bare.tokens),
        unanswered=least_kept(material, usable, counter) + fold.owed,
        checkpoint=bare.tokens + min(CHECKPOINT_LEAST, usable // 10),
    )


def _needed(fold: Fold, ask: Ask, floor: Floor, counter: Counter) -> Floor:
    """Return the floor of the least target that holds its own floor: what is elided may take a share of it."""
    for _ in range(50):
        if ask.target is None or floor.total <= ask.target:
            break
        ask = msgspec.structs.replace(ask, target=floor.total)
        floor = floor_of(fold, ask, counter)
    return floor


def _limits(fold: Fold, ask: Ask, counter: Counter) -> Limits:
    pins = [pin for pin in fold.pins.values() if pin.entry not in {e.id for e in fold.leading}]
    wrapped = make_checkpoint("", ask.policy, counter, pins=pins, ack=bool(ask.policy.ack), number=ask.number)
    return Limits(
        window=ask.window,
        usable=ask.usable,
        apart=ask.apart_tokens + fold.owed,
        wrap=wrapped.tokens + (counter.count(ask.policy.ack) + 8 if ask.policy.ack else 0),
        target=ask.target is not None,
        summary_cap=ask.policy.summary_tokens.resolve(ask.window, ask.usable),
    )


def _material(fold: Fold, edits: Edits) -> Material:
    merged: Edits = dict(fold.edits)
    for new in edits.values():
        add(merged, new)
    return Material(
        leading=fold.leading,
        quoted=fold.quoted,
        kept=fold.kept,
        pairing=fold.pairing,
        fresh_from=fold.fresh_from,
        edits=merged,
        pinned=frozenset(fold.pins),
    )


# ---- prune


def _pruned(job: Job) -> Edits:
    """Return the edits of a prune; pinned entries are left alone."""
    fold, ask, counter = job.fold, job.ask, job.counter
    already = _edited_parts(fold.edits) | _edited_parts(fold.repairs)
    pruning = prune(
        fold.kept,
        ask.policy,
        ask.window,
        ask.usable,
        counter,
        already=already,
        date=ask.now[:10] or "earlier",
    )
    edits: Edits = {}
    add(edits, [edit for edit in pruning.edits if edit.entry not in fold.pins])
    if edits:
        first = min(i for i, entry in enumerate(fold.kept) if entry.id in edits)
        add(edits, _strip(fold.kept, first, counter, already))
    return edits


def _strip(
    kept: Sequence[Said], start: int, counter: Counter, already: AbstractSet[tuple[str, int]]
) -> list[Edit]:
    return [
        Edit(entry.id, index, "stripped", None, part_tokens(entry.message.parts[index], counter))
        for entry, index in strip_thinking(kept, start, open_loop(kept))
        if (entry.id, index) not in already
    ]


def _edited_parts(edits: Edits) -> set[tuple[str, int]]:
    return {(edit.entry, edit.part) for found in edits.values() for edit in found}


def _freed(edits: Edits) -> int:
    return sum(edit.saved for found in edits.values() for edit in found)


def _suffices(job: Job, edits: Edits) -> bool:
    ask, after = job.ask, job.size - _freed(edits)
    if ask.target is not None:
        return after <= ask.target
    if not ask.automatic:
        return False
    soft = thresholds(ask.policy, ask.window).soft or thresholds(ask.policy, ask.window).hard or ask.usable
    return after < soft and job.size - after >= _least_gain(ask)


def _least_gain(ask: Ask) -> int:
    return max(ask.policy.min_gain.resolve(ask.window, ask.usable), 1) if ask.automatic else 1


def _no_gain(gain: int, least: int) -> Nothing:
    return Nothing("no_gain", f"{gain:,} tokens of the {least:,} that it has to gain")


def _only_pruned(job: Job, edits: Edits) -> Outcome:
    ask = job.ask
    if not edits:
        return Nothing("disabled", "compaction is switched off and nothing can be pruned")
    if ask.target is not None and job.size - _freed(edits) > ask.target:
        return Nothing("disabled", "compaction is switched off and pruning does not suffice")
    return _prune_boundary(job, edits)


def _prune_boundary(job: Job, edits: Edits) -> Pruned | Nothing:
    gain, least = _freed(edits), _least_gain(job.ask)
    if gain < least:
        return _no_gain(gain, least)
    older = {(e.entry, e.part): e.saved for found in job.fold.edits.values() for e in found}
    listed = tuple(
        msgspec.structs.replace(edit, saved=edit.saved + older.get((edit.entry, edit.part), 0))
        for found in edits.values()
        for edit in found
    )
    receipt = made_receipt(
        job.ask,
        before=job.fold.view(),
        after=_edited(job.fold.view(), listed),
        folded=(),
        edits=listed,
        sizes=(job.size, job.size - gain),
    )
    return Pruned(id="", parent=None, receipt=receipt, edits=listed)


# ---- compact


def _compact(job: Job, pruned: Edits) -> Steps:
    fold, ask, counter = job.fold, job.ask, job.counter
    limits = _limits(fold, ask, counter)
    choice = choose(_material(fold, pruned), ask.policy, limits, counter)
    if choice is None:
        return _shortened(job, pruned)
    add(choice.edits, _strip(choice.kept, 0, counter, _edited_parts(choice.edits)))
    before = _previous(fold)
    ledger = current(merge(before, collect(choice.folded)), collect(choice.kept), kept=_ids(choice.kept))
    ledger, excess = within(redact_facts(ledger), ask.usable // CONSTRAINT_SHARE, counter.count)
    room = choice.room if limits.target else min(choice.room, limits.summary_cap)
    boundary: Compacted | None = None
    for left in range(PASSES, 0, -1):
        reply = yield from _summary(job, choice, ledger, room)
        boundary = _boundary(job, choice, reply, ledger)
        total = ask.apart_tokens + Fold([*fold.entries(), boundary], counter=counter).tokens
        if total <= ask.usable:
            return _judged(job, boundary, choice, reply, excess)
        room = max(room - (total - ask.usable) - 8, CHECKPOINT_LEAST // left)
    floor = floor_of(fold, ask, counter)
    raise FloorExceeded(max(floor.total, ask.usable + 1), ask.usable, floor.breakdown)


def _ids(entries: Sequence[Said]) -> frozenset[str]:
    return frozenset(entry.id for entry in entries)


def _previous(fold: Fold) -> Ledger:
    return msgspec.convert(fold.boundary.ledger, Ledger) if fold.boundary is not None else Ledger()


def _shortened(job: Job, edits: Edits) -> Outcome:
    """Where nothing can be folded, shorten what is there until it fits."""
    fold, ask, counter, size = job.fold, job.ask, job.counter, job.size
    add(edits, lead_edits(_material(fold, edits), _limits(fold, ask, counter), counter))
    over = size - _freed(edits) - ask.usable
    if over > 0:
        merged = _material(fold, edits).edits
        more = shrink(
            fold.kept, over, usable=ask.usable, counter=counter, edits=merged, spare=frozenset(fold.pins)
        )
        add(edits, more)
    after = size - _freed(edits)
    if ask.target is not None and after > ask.target:
        raise FloorExceeded(after, ask.target, floor_of(fold, ask, counter).breakdown)
    if not edits:
        return Nothing("nothing_to_fold")
    return _prune_boundary(job, edits)


def _summary(
    job: Job, choice: Choice, ledger: Ledger, room: int
) -> Generator[SummaryRequest, SummaryReply | None, SummaryReply]:
    """Ask for a summary until one holds; the offline checkpoint is the last resort."""
    fold, ask, counter = job.fold, job.ask, job.counter
    previous = fold.boundary.checkpoint.summary if fold.boundary is not None else None
    goal = ask.goal or _next_task(ask.policy, ledger)
    wanted = request(
        ask.policy,
        kind=_kind(goal, previous, split=choice.cut.split),
        folded=choice.folded,
        previous=previous,
        ledger=ledger,
        tokens=max(room, 1),
        instructions=ask.instructions or goal,
        goal=goal,
    )
    for _ in range(ATTEMPTS):
        reply = yield wanted
        if reply is None:
            break
        if reply.summarizer == OFFLINE:
            return reply
        checked = check(reply, wanted, counter=counter)
        if isinstance(checked, Accepted):
            texts = [entry.message for entry in choice.folded]
            grounded = ground(checked.text, ledger, texts, previous)
            return msgspec.structs.replace(reply, text=grounded.text)
    done = compose(ledger, max(room, 1), counter.count, previous=previous, instructions=wanted.instructions)
    return SummaryReply(text=redact(done.text), summarizer=OFFLINE, ledger=done.ledger)


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
    follows = choice.kept[0].message.role if choice.kept else None
    behind = ask.policy.summary_position == "before" and bool(choice.quoted)
    ack = bool(ask.policy.ack) and (behind or follows != "assistant")
    shown = _ids([*fold.leading, *choice.quoted, *choice.kept])
    point: Checkpoint = make_checkpoint(
        reply.text,
        ask.policy,
        counter,
        pins=tuple(fold.pins.values()),
        shown=shown,
        quoted=len(choice.quoted),
        ack=ack,
        number=ask.number,
    )
    carried: dict[str, Any] = msgspec.to_builtins(reply.ledger or ledger)
    return Compacted(
        id="",
        parent=None,
        checkpoint=point,
        receipt=Receipt(reason=ask.reason),
        first_kept=choice.kept[0].id if choice.kept else None,
        leading=tuple(entry.id for entry in fold.leading),
        quoted=tuple(entry.id for entry in choice.quoted),
        edits=tuple(edit for found in choice.edits.values() for edit in found),
        ledger=carried,
    )


def _judged(
    job: Job, boundary: Compacted, choice: Choice, reply: SummaryReply, excess: Sequence[str]
) -> Outcome:
    """Return the boundary with its receipt, if it gains enough."""
    fold, ask, size = job.fold, job.ask, job.size
    after = Fold([*fold.entries(), boundary], counter=job.counter)
    total = ask.apart_tokens + after.tokens
    if size - total < (least := _least_gain(ask)):
        return _no_gain(size - total, least)
    receipt = made_receipt(
        ask,
        before=fold.view(),
        after=after.view(),
        folded=choice.folded,
        edits=boundary.edits,
        sizes=(size, total),
    )
    standing = msgspec.convert(boundary.ledger, Ledger).constraints
    notes = list(receipt.notes)
    if any(signed(entry.message) for entry in choice.kept[open_loop(choice.kept) :]):
        notes.append("signed thinking of the open tool loop was kept as it is")
    if not choice.cut.by_rule:
        notes.append(
            f"no cut that the rule {ask.policy.cut_rule!r} allows would fit: another legal one was taken"
        )
    constraints: dict[str, Any] = {"kept": len(standing), "texts": [fact.text for fact in standing]}
    if excess:
        constraints["excess"] = list(excess)
    receipt = msgspec.structs.replace(
        receipt,
        first_kept=boundary.first_kept,
        constraints=constraints,
        summarizer=reply.summarizer,
        usage=reply.usage,
        notes=tuple(notes),
    )
    return msgspec.structs.replace(boundary, receipt=receipt)


def _edited(items: Sequence[Item], edits: Sequence[Edit]) -> list[Item]:
    new: Edits = {}
    add(new, edits)
    changed = _edited_parts(new)
    return [
        Kept(
            item.entry,
            (
                *(edit for edit in item.edits if (edit.entry, edit.part) not in changed),
                *new.get(item.entry.id, ()),
            ),
        )
        if isinstance(item, Kept)
        else item
        for item in items
    ]
