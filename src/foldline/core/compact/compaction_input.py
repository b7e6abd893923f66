"""One compaction while it is planned: what it is made from, its limits, and the floor below them."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from foldline.core.carried.select import Carry, carry
from foldline.core.checkpoint.checkpoint import Frame, make_checkpoint
from foldline.core.cut.choice import CHECKPOINT_LEAST, CutInput, Limits, lead_edits, least_kept
from foldline.core.cut.edits import flat, merged
from foldline.core.cut.legal import legal_cuts
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.decide.policy import summary_cap
from foldline.core.log.entries import Edit, Pin, Said
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Floor, share
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState, sized

SUMMARY_FLOOR = 12  # tokens of the shortest summary: inside its frame a text counts a few more than alone
SUMMARY_SHARE = 0.25  # of usable, at most: a preset's cap for large windows would fill a small one
_FLOOR_PARTS = {"system": "system", "checkpoint": "checkpoint", "ack": "checkpoint", "pin": "pins"}
SIGNED_LOOP = Nothing(
    "signed_thinking", "inside a tool loop whose thinking is bound to what stands before it"
)


class CompactionInput(msgspec.Struct, frozen=True):
    """One compaction: the view as it is, what is asked of it, and the counter of its tokens.

    `carry` is what goes over the fold whatever the summary says: instructions and earlier summaries.
    """

    state: ViewState
    ask: FoldRequest
    counter: Counter
    carry: Carry = Carry()

    @property
    def size(self) -> int:
        """The tokens of the view as it is, with a system prompt and tools given apart."""
        return self.ask.overhead_tokens + self.state.tokens

    def asking(self, **changes: Any) -> CompactionInput:
        """Return the job with some fields of what is asked changed."""
        return msgspec.structs.replace(self, ask=msgspec.structs.replace(self.ask, **changes))


# ---- what stands around a summary


def empty_frame(job: CompactionInput) -> Frame:
    """Return the smallest frame of a checkpoint: no pins, no quotes, no acknowledgement."""
    ask = job.ask
    now = ask.continuation
    if now is not None and now.question:
        now = msgspec.structs.replace(now, question=redact(now.question))
    return Frame(ask.policy, number=ask.number, live=ask.live, standing=now)


def pinned_frame(job: CompactionInput, pins: Iterable[Pin]) -> Frame:
    """Return the frame of a checkpoint that quotes these pins, with its acknowledgement."""
    return msgspec.structs.replace(empty_frame(job), pins=_clean(pins), ack=bool(job.ask.policy.ack))


def _clean(pins: Iterable[Pin]) -> tuple[Pin, ...]:
    """Return pins without secrets: a checkpoint quotes the words, and is stored."""
    return tuple(Pin(pin.entry, redact(pin.text)) for pin in pins)


def frame_of(
    job: CompactionInput, *, quoted: Sequence[Said], kept: Sequence[Said], edited: Iterable[str]
) -> Frame:
    """Return the frame of a checkpoint that stands before what is kept.

    A pin is quoted unless the view shows its entry, and unedited. `edited` are the ids of entries with edits.
    """
    policy, state = job.ask.policy, job.state
    follows = kept[0].message.role if kept else None
    quotes_follow = policy.summary_position == "before" and bool(quoted)
    shown = frozenset(entry.id for entry in (*state.leading, *quoted, *kept)) - set(edited)
    return msgspec.structs.replace(
        empty_frame(job),
        pins=_clean(state.pins.values()),
        carried=tuple(one for one in job.carry.texts if one.entry not in shown),
        shown=shown,
        quoted=len(quoted),
        ack=bool(policy.ack) and (quotes_follow or follows != "assistant"),
        told=any(entry.message.role == "assistant" or entry.message.is_prompt for entry in kept),
    )


# ---- limits


def floor_of(job: CompactionInput) -> Floor:
    """Return what no compaction of this view can remove, in tokens."""
    state, ask, counter = job.state, job.ask, job.counter
    limits, material = limits_of(job), material_of(job)
    leading = merged({}, lead_edits(material, limits, counter))
    bare = make_checkpoint("", empty_frame(job), counter)
    return Floor(
        system=ask.overhead.system + material.tokens(state.leading, leading),
        tools=ask.overhead.tools,
        pins=max(0, limits.wrap - bare.tokens),
        unanswered=least_kept(material, ask.usable, counter) + state.open_call_tokens,
        checkpoint=bare.tokens + min(CHECKPOINT_LEAST, max(ask.usable // 10, SUMMARY_FLOOR)),
    )


def least_floor(job: CompactionInput, floor: Floor) -> Floor:
    """Return the floor of the least target that holds its own floor, or the view as it is where that is less.

    A floor grows with its target: what is elided may take a share of it.
    """
    target, view = job.ask.target, _unfolded(job)
    for _ in range(50):
        if target is None or floor.total <= target:
            break
        target = floor.total
        floor = floor_of(job.asking(target=target))
    return floor if target is None or floor.total <= view.total else view


def _unfolded(job: CompactionInput) -> Floor:
    """Return the parts of the view as it is; what is neither of the others counts as unanswered."""
    sizes = Counts[str]()
    for name, tokens in sized(job.state.view()):
        sizes[_FLOOR_PARTS.get(name, "unanswered")] += tokens
    sizes.update(system=job.ask.overhead.system, tools=job.ask.overhead.tools)
    return Floor(**sizes)


def limits_of(job: CompactionInput) -> Limits:
    """Return the budgets of a compaction; pins count unless an entry that has to stay shows them."""
    state, ask, counter = job.state, job.ask, job.counter
    legal = legal_cuts(state.kept, state.pairing)
    stay = {entry.id for entry in (*state.leading, *state.kept[legal[-1] if legal else 0 :])}
    stay -= set(state.edits)
    pins = [pin for pin in state.pins.values() if pin.entry not in stay]
    wrapped = make_checkpoint("", pinned_frame(job, pins), counter)
    return Limits(
        window=ask.window,
        usable=ask.usable,
        nominal=ask.usable,
        overhead=ask.overhead_tokens + state.open_call_tokens,
        wrap=wrapped.tokens + (counter.count(ask.policy.ack) + 8 if ask.policy.ack else 0),
        target=ask.target is not None,
        summary_cap=_summary_cap(ask),
        summary_share=ask.policy.summary_share,
        summary_before=_summary_before(job),
        recall=ask.recall,
    )


def _summary_before(job: CompactionInput) -> int:
    """Return the room that the earlier summary may take: what it takes, or its share of all that it tells."""
    boundary, policy = job.state.boundary, job.ask.policy
    if boundary is None:
        return 0
    taken = job.counter.count(boundary.checkpoint.summary)
    return max(taken, share(boundary.ledger.get("tokens", 0), policy.summary_share or 0.0))


def carried(job: CompactionInput, limits: Limits) -> tuple[CompactionInput, Limits]:
    """Return the job with what its fold carries over, and the limits of what is left beside that.

    It takes at most half of what a view has beside all that must stay.
    """
    state, counter = job.state, job.counter
    legal = legal_cuts(state.kept, state.pairing)
    last = legal[-1] if legal else 0
    material = material_of(job)
    stays = material.tokens(state.leading, material.edits) + least_kept(material, limits.usable, counter)
    free = limits.usable - limits.overhead - limits.wrap - stays - CHECKPOINT_LEAST
    found = carry(
        state.leading,
        state.clean((*state.past, *state.quoted, *state.kept)),
        state.boundary.checkpoint.carried if state.boundary is not None else (),
        max(free // 2, 0),
        counter.count,
        whole={entry.id for entry in state.kept[last:]},
    )
    wrap = limits.wrap + found.tokens
    return msgspec.structs.replace(job, carry=found), msgspec.structs.replace(limits, wrap=wrap)


def _summary_cap(ask: FoldRequest) -> int:
    """Return the most tokens of a summary: one that fills a live view would be folded again at once."""
    cap = summary_cap(ask.policy, ask.window, ask.usable)
    return cap if ask.target is not None else min(cap, share(ask.usable, SUMMARY_SHARE))


def least_gain(job: CompactionInput) -> int:
    """Return the tokens that a boundary has to gain."""
    ask = job.ask
    return max(ask.policy.min_gain.resolve(ask.window, ask.usable), 1) if ask.optional else 1


def material_of(job: CompactionInput, edits: Mapping[str, Sequence[Edit]] | None = None) -> CutInput:
    """Return what a choice is made from, with the edits that were made on the way to it."""
    state = job.state
    return CutInput(
        leading=state.leading,
        quoted=state.quoted,
        kept=state.kept,
        pairing=state.pairing,
        fresh_from=state.fresh_from,
        edits=merged(state.edits, flat(edits or {})),
        pinned=frozenset(state.pins),
        repairs=state.view_repairs(),
        joining=frozenset(job.carry.messages),
    )
