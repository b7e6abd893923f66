"""Fold a range that the user chose: everything up to an entry, or everything since one.

    view            [leading]  checkpoint  s1  s2  s3  s4  s5  s6
    up to s3        [leading]  checkpoint              s4  s5  s6     a fold with a given cut
    since s4        [leading]  checkpoint  s1  s2  s3  summary  s6    s6 is unanswered: it stays

Everything else is kept word for word, whatever the policy keeps. A fold since an entry has no checkpoint: it
is a boundary of edits that show the messages of the range as their summary. No cut falls between them, and a
later fold that reaches them folds the original messages.

A range begins and ends at a legal cut. If the request does not, less is folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.carried.select import carry, newest_messages, without_carried
from foldline.core.carried.summaries import sealed_place
from foldline.core.checkpoint.checkpoint import as_message, range_text
from foldline.core.checkpoint.obtain import SummarySteps, obtain
from foldline.core.checkpoint.request import SummaryReply
from foldline.core.checkpoint.summary import request
from foldline.core.compact.attempt import CONSTRAINT_SHARE
from foldline.core.compact.compaction_input import CompactionInput, frame, of_summaries
from foldline.core.compact.receipt import (
    constraint_figures,
    made_receipt,
    no_gain,
    scrub_secrets,
    standing_in,
)
from foldline.core.compact.room import SUMMARY_FLOOR, room_of
from foldline.core.cut.cut import Cut, is_split
from foldline.core.cut.edits import EditsOf, edited_parts
from foldline.core.cut.thinking import stripped
from foldline.core.decide.ask import Nothing
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.table import collect, current, merge, within
from foldline.core.log.entries import EXCLUDED, Edit, Pruned, Receipt, Said
from foldline.core.log.messages import Text
from foldline.core.measure.tokens import message_tokens
from foldline.core.secrets.derived import redact_facts
from foldline.errors import InputError


def cut_up_to(job: CompactionInput, entry: str) -> CompactionInput:
    """Return the job with the cut after an entry and its exchange; raises InputError if none is legal.

    The exchange of a prompt ends before the next prompt, that of a call after its results.
    """
    kept, requested_end = job.state.kept, _exchange_end(job, _index_of(job, entry))
    index = max((legal for legal in job.legal if legal <= requested_end), default=None)
    if index is None:
        raise InputError(f"nothing can be folded up to entry {entry}: there is no legal cut before its end")
    notes = job.ask.notes
    if index != requested_end:
        notes = (*notes, f"less was folded than requested: the nearest legal cut is before {kept[index].id}")
    return job.asking(notes=notes, least_usable=job.size).changed(cut=Cut(index, is_split(kept, index)))


def _index_of(job: CompactionInput, entry: str) -> int:
    """Return the index of an entry in the kept messages; raises InputError if it is not there."""
    for index, kept_entry in enumerate(job.state.kept):
        if kept_entry.id == entry:
            return index
    raise InputError(
        f"entry {entry!r} cannot be folded: it was folded before, always stays, or is not on this path"
    )


def _exchange_end(job: CompactionInput, at: int) -> int:
    """Return the index after the exchange of the message at an index."""
    kept = job.state.kept
    if kept[at].message.is_prompt:
        return next((i for i in range(at + 1, len(kept)) if kept[i].message.is_prompt), len(kept))
    batches = (batch for batch in job.state.pairing.batches if batch.start <= at <= batch.end)
    return max((batch.end for batch in batches), default=at) + 1


# ---- since an entry


class _Stretch(msgspec.Struct, frozen=True):
    """The messages of a range to fold, those after it, and a note for the receipt."""

    folded: list[Said]
    behind: list[Said]
    note: str


def folded_since(job: CompactionInput, entry: str) -> SummarySteps[Pruned | Nothing]:
    """Plan the fold of everything since an entry; raises InputError if there is nothing to fold."""
    state, ask, counter = job.state, job.ask, job.counter
    if not ask.policy.enable_compaction:
        return Nothing("disabled")
    stretch, room = _stretch_since(job, entry), room_of(job)
    messages, behind = state.clean(stretch.folded), state.clean(stretch.behind)
    size = room.tokens(stretch.folded)
    texts = carry((), messages, (), size // 2, counter.count).texts
    instructions = tuple(one for one in texts if one.kind == "instructions")
    folded_ids = {one.id for one in stretch.folded}
    # newer pins are quoted in the view
    checkpoint_pins = state.boundary.checkpoint.pins if state.boundary is not None else ()
    pins = [pin for pin in checkpoint_pins if pin.entry in folded_ids and pin.entry in state.pins]
    marks = [mark for mark in job.marks(state.marks.keys() - folded_ids) if mark.entry in folded_ids]
    range_frame = frame(job, pins=pins, marks=marks, carried=instructions)
    empty = as_message(range_text("", range_frame), "user")
    most_summary = size - message_tokens(empty, counter) - job.least_gain
    if most_summary < SUMMARY_FLOOR:
        return no_gain(most_summary - SUMMARY_FLOOR, job.least_gain)
    tokens = min(room.most_summary(stretch.folded), most_summary)
    messages = without_carried(messages, instructions)
    ledger = redact_facts(current(merge(Ledger(), collect(messages)), behind))
    shown, _ = within(ledger, ask.usable // CONSTRAINT_SHARE + tokens // 3, counter.count)
    summary_request = request(
        ask.policy,
        kind="first",
        folded=messages,
        previous=None,
        ledger=shown,
        tokens=tokens,
        instructions=ask.instructions,
        kept=behind,
        project=of_summaries(job),
    )
    summary_request = msgspec.structs.replace(summary_request, secrets=bool(state.clean.secrets))
    reply = (yield from obtain(summary_request, counter)).reply
    text = range_text(reply.text, range_frame)
    unsigned = stripped(stretch.behind, 0, counter, edited_parts(state.edits) | edited_parts(state.repairs))
    summary_tokens = message_tokens(as_message(text, "user"), counter)
    edits = (*_replaced_by(text, stretch.folded, summary_tokens, state.edits), *unsigned)
    boundary = scrub_secrets(Pruned("", None, Receipt(ask.reason), edits=edits), job)
    return _with_receipt(job, boundary, stretch, ledger, reply)


def _stretch_since(job: CompactionInput, entry: str) -> _Stretch:
    """Return what is folded since an entry, without instructions, which always stay.

    A sealed server compaction cannot be summarised, so the range begins after it.
    """
    kept, requested_start = job.state.kept, _index_of(job, entry)
    sealed = [index for index, one in enumerate(kept) if sealed_place(one.message) is not None]
    first = max([requested_start, *(index + 1 for index in sealed), int(job.state.server is not None)])
    end = job.legal[-1] if job.legal else 0
    start = next((index for index in (0, *job.legal) if index >= first), end)
    instructions = {instruction.id for instruction in newest_messages(kept[start:end]).values()}
    folded = [one for one in kept[start:end] if one.id not in instructions and one.message.parts]
    if not folded:
        raise InputError(f"nothing can be folded since entry {entry}: unanswered messages stay")
    note = f"folded since {kept[start].id}"
    if start != requested_start:
        note += f", less than requested: the nearest legal cut since {entry}"
    return _Stretch(folded, kept[end:], note)


def _replaced_by(text: str, folded: Sequence[Said], tokens: int, edits: EditsOf) -> Iterator[Edit]:
    """Yield the edits that replace messages by a text of `tokens` tokens.

    Parts that the user took out keep their edits. If only their notes are left of a message, the edit names
    an index after its last part.
    """
    for entry in folded:
        first = entry is folded[0]
        excluded = {edit.part: edit.saved for edit in edits.get(entry.id, ()) if edit.kind == EXCLUDED}
        parts = range(len(entry.message.parts))
        at, *others = [part for part in parts if part not in excluded] or [len(parts)]
        saved = entry.tokens - sum(excluded.values()) - (tokens if first else 0)
        yield Edit(entry.id, at, "folded", Text(text) if first else None, saved)
        yield from (Edit(entry.id, part, "folded") for part in others)


def _with_receipt(
    job: CompactionInput, boundary: Pruned, stretch: _Stretch, ledger: Ledger, reply: SummaryReply
) -> Pruned | Nothing:
    """Return the boundary with its receipt, if it gains enough."""
    after = job.state.with_boundary(boundary)
    gain = job.state.tokens - after.tokens
    if gain < job.least_gain:
        return no_gain(gain, job.least_gain)
    receipt = made_receipt(job, boundary, after, stretch.folded)
    receipt = msgspec.structs.replace(
        receipt,
        constraints=constraint_figures(*standing_in(ledger.constraints, after.items())),
        summarizer=reply.summarizer,
        usage=reply.usage,
        price=reply.price,
        notes=(*receipt.notes, stretch.note, *reply.notes),
    )
    return scrub_secrets(msgspec.structs.replace(boundary, receipt=receipt), job)
