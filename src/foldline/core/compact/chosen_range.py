"""A range that somebody chose to fold: all up to an entry, or what stands since one.

    view            [leading]  checkpoint  s1  s2  s3  s4  s5  s6
    up to s3        [leading]  checkpoint              s4  s5  s6     a fold whose cut is given
    since s4        [leading]  checkpoint  s1  s2  s3  summary  s6    s6 is not answered: it stays

What is not chosen is kept word for word, whatever the policy keeps. A fold since an entry needs no checkpoint
of its own: it is a boundary of edits, by which the messages of the range are shown as their summary. They are
kept like others: no cut falls between them, and a later fold that reaches them folds what was said.

A range begins and ends where a cut is legal; where that is not what was asked for, less is folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from foldline.core.carried.select import carry, newest_messages, without_carried
from foldline.core.carried.summaries import sealed_place
from foldline.core.checkpoint.checkpoint import as_message, range_text
from foldline.core.checkpoint.obtain import SummarySteps, obtain
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import request
from foldline.core.compact.attempt import CONSTRAINT_SHARE, of_summaries
from foldline.core.compact.compaction_input import CompactionInput, frame
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
    """Return the job with the cut behind an entry and its exchange; raises InputError where none is legal.

    The exchange of a user's message is all up to the next one, that of a call its results.
    """
    kept, asked = job.state.kept, _exchange_end(job, _place(job, entry))
    index = max((legal for legal in job.legal if legal <= asked), default=None)
    if index is None:
        raise InputError(f"nothing can be folded up to entry {entry}: no cut is legal before its end")
    notes = job.ask.notes
    if index != asked:
        notes = (*notes, f"less than asked for was folded: the nearest legal cut is before {kept[index].id}")
    return job.asking(notes=notes, least_usable=job.size).changed(cut=Cut(index, is_split(kept, index)))


def _place(job: CompactionInput, entry: str) -> int:
    """Return the index of an entry among the kept messages; raises InputError where it is none of them."""
    for index, one in enumerate(job.state.kept):
        if one.id == entry:
            return index
    raise InputError(
        f"entry {entry!r} is none of the messages that can be folded: it was folded before, always stays, "
        "or is not on this path"
    )


def _exchange_end(job: CompactionInput, at: int) -> int:
    """Return the index behind the exchange of the message at an index."""
    kept = job.state.kept
    if kept[at].message.is_prompt:
        return next((i for i in range(at + 1, len(kept)) if kept[i].message.is_prompt), len(kept))
    batches = (batch for batch in job.state.pairing.batches if batch.start <= at <= batch.end)
    return max((batch.end for batch in batches), default=at) + 1


# ---- since an entry


class _Stretch(msgspec.Struct, frozen=True):
    """The messages of a range that are folded, those behind it, and a note for the receipt."""

    folded: list[Said]
    behind: list[Said]
    note: str


def folded_since(job: CompactionInput, entry: str) -> SummarySteps[Pruned | Nothing]:
    """Plan the fold of what stands since an entry; raises InputError where there is nothing to fold."""
    state, ask, counter = job.state, job.ask, job.counter
    if not ask.policy.enable_compaction:
        return Nothing("disabled")
    found, room = _since(job, entry), room_of(job)
    said, behind = state.clean(found.folded), state.clean(found.behind)
    size = room.tokens(found.folded)
    texts = carry((), said, (), size // 2, counter.count).texts
    instructions = tuple(one for one in texts if one.kind == "instructions")
    ids = {one.id for one in found.folded}
    older = (
        state.boundary.checkpoint.pins if state.boundary is not None else ()
    )  # newer ones quote themselves
    pins = [pin for pin in older if pin.entry in ids and pin.entry in state.pins]
    marks = [mark for mark in job.marks(state.marks.keys() - ids) if mark.entry in ids]
    around = frame(job, pins=pins, marks=marks, carried=instructions)
    most = size - message_tokens(as_message(range_text("", around), "user"), counter) - job.least_gain
    if most < SUMMARY_FLOOR:
        return no_gain(most - SUMMARY_FLOOR, job.least_gain)
    tokens = min(room.most_summary(found.folded), most)
    said = without_carried(said, instructions)
    known = redact_facts(current(merge(Ledger(), collect(said)), behind))
    shown, _ = within(known, ask.usable // CONSTRAINT_SHARE + tokens // 3, counter.count)
    wanted = request(
        ask.policy,
        kind="first",
        folded=said,
        previous=None,
        ledger=shown,
        tokens=tokens,
        instructions=ask.instructions,
        kept=behind,
        project=of_summaries(job),
    )
    reply = (yield from obtain(_without_secrets(job, wanted), counter)).reply
    text = range_text(reply.text, around)
    gone = stripped(found.behind, 0, counter, edited_parts(state.edits) | edited_parts(state.repairs))
    taken = message_tokens(as_message(text, "user"), counter)
    edits = (*_shown_as(text, found.folded, taken, state.edits), *gone)
    boundary = scrub_secrets(Pruned("", None, Receipt(ask.reason), edits=edits), job)
    return _with_receipt(job, boundary, found, known, reply)


def _since(job: CompactionInput, entry: str) -> _Stretch:
    """Return what is folded since an entry; what always stays where it is (instructions) is left out.

    A compaction that its server sealed can be told by nobody: a range begins behind it.
    """
    kept, asked = job.state.kept, _place(job, entry)
    sealed = [index for index, one in enumerate(kept) if sealed_place(one.message) is not None]
    first = max([asked, *(index + 1 for index in sealed), int(job.state.server is not None)])
    end = job.legal[-1] if job.legal else 0
    start = next((index for index in (0, *job.legal) if index >= first), end)
    stays = {one.id for one in newest_messages(kept[start:end]).values()}
    folded = [one for one in kept[start:end] if one.id not in stays and one.message.parts]
    if not folded:
        raise InputError(f"nothing can be folded since entry {entry}: what is not answered stays")
    less = "" if start == asked else f", less than asked for: the nearest legal place since {entry}"
    return _Stretch(folded, kept[end:], f"folded since {kept[start].id}{less}")


def _without_secrets(job: CompactionInput, wanted: SummaryRequest) -> SummaryRequest:
    return msgspec.structs.replace(wanted, secrets=bool(job.state.clean.secrets))


def _shown_as(text: str, folded: Sequence[Said], tokens: int, edits: EditsOf) -> Iterator[Edit]:
    """Yield the edits that have a text of so many tokens stand in the place of messages.

    The parts that the user took out keep the edits that say so. Where nothing but their notes is left of a
    message, the edit names a part behind all of them.
    """
    for entry in folded:
        first = entry is folded[0]
        out = {edit.part: edit.saved for edit in edits.get(entry.id, ()) if edit.kind == EXCLUDED}
        parts = range(len(entry.message.parts))
        at, *others = [part for part in parts if part not in out] or [len(parts)]
        saved = entry.tokens - sum(out.values()) - (tokens if first else 0)
        yield Edit(entry.id, at, "folded", Text(text) if first else None, saved)
        yield from (Edit(entry.id, part, "folded") for part in others)


def _with_receipt(
    job: CompactionInput, boundary: Pruned, found: _Stretch, known: Ledger, reply: SummaryReply
) -> Pruned | Nothing:
    """Return the boundary with its receipt, if it gains enough."""
    state, after = job.state, job.state.with_boundary(boundary)
    gain = state.tokens - after.tokens
    if gain < job.least_gain:
        return no_gain(gain, job.least_gain)
    receipt = made_receipt(
        job, before=state.view(), after=after.view(), edits=boundary.edits, folded=found.folded
    )
    receipt = msgspec.structs.replace(
        receipt,
        constraints=constraint_figures(*standing_in(known.constraints, after.view())),
        summarizer=reply.summarizer,
        usage=reply.usage,
        price=reply.price,
        notes=(*receipt.notes, found.note, *reply.notes),
    )
    return scrub_secrets(msgspec.structs.replace(boundary, receipt=receipt), job)
