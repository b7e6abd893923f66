"""A boundary that was planned a while ago, put onto the path as it is now.

A summary takes long, and the session goes on meanwhile. What was chosen stays: the cut, the summary, the
edits. What depends on the newest messages is made anew: the checkpoint with its pins and live state, the
thinking that has to go, the figures of the receipt. No message is read for facts again, so this is quick.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.checkpoint import fitted, make_checkpoint
from foldline.core.checkpoint.obtain import EDITED
from foldline.core.compact.compaction_input import SIGNED_LOOP, CompactionInput, frame_before
from foldline.core.compact.receipt import balance_notes, balance_of, made_receipt, no_gain, scrub_secrets
from foldline.core.cut.edits import edited_parts, range_summary
from foldline.core.cut.legal import legal_cuts
from foldline.core.cut.thinking import signed_loop, stripped
from foldline.core.decide.ask import AUTOMATIC, FoldRequest, Nothing
from foldline.core.decide.price import is_balance
from foldline.core.decide.triggers import thresholds
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted, Pruned, Receipt, StandingConstraints
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState
from foldline.errors import InputError

VOID = Nothing("void", "the path is no longer the one that the draft was made for")


class Draft(msgspec.Struct, frozen=True):
    """A boundary that is not committed, and what it was planned on.

    `boundaries` are those of the path then, `newest` is the newest message of the view then.
    """

    boundary: Compacted | Pruned
    boundaries: tuple[str, ...]
    newest: str | None


class Rebased(msgspec.Struct, frozen=True):
    """A boundary without an id, for the path as it is, and the view state of the path with it."""

    boundary: Compacted | Pruned
    after: ViewState


def drafted(state: ViewState, boundary: Compacted | Pruned) -> Draft:
    """Return the draft of a boundary that was planned on this view state."""
    return Draft(boundary, _boundaries(state), _newest(state))


def _boundaries(state: ViewState) -> tuple[str, ...]:
    """Return the boundaries of a path, with the reply in which a server folded it."""
    return (*state.boundaries, *((state.server.id,) if state.server is not None else ()))


def _newest(state: ViewState) -> str | None:
    """Return the id of the newest message of a view; None where nothing is kept."""
    return state.kept[-1].id if state.kept else None


# ---- whether it can be committed


def holds(draft: Draft, state: ViewState) -> bool:
    """Whether a draft can still be committed: what it was made of stands, and no boundary came since."""
    return _cut(draft, state) is not None


def pays(job: CompactionInput, draft: Draft) -> bool:
    """Whether the very next request costs less if a draft is committed now, as where the cache is cold."""
    economy, made = job.ask.economy, draft.boundary.receipt
    if economy is None or not economy.cache.tokens:
        return False
    after = max(job.size - made.tokens_before + made.tokens_after, 0)
    found = balance_of(job, job.size, after)
    return found is not None and found.requests == 0


def rebased(job: CompactionInput, draft: Draft) -> Rebased | Nothing:
    """Return the boundary of a draft for the path as it is now.

    Nothing where it no longer holds (`void`), where it would gain too little (`no_gain`) or leave too much
    (`too_large`), or where an open tool loop has thinking that is bound to what stands before it.
    """
    state, ask, size, old = job.state, job.ask, job.size, draft.boundary
    cut = _cut(draft, state)
    if cut is None:
        return VOID
    if ask.optional and size <= ask.usable and signed_loop(state.kept):
        return SIGNED_LOOP
    job = job.asking(live=fitted(ask.live, ask.usable, job.counter))
    made = _pruned(job, old) if isinstance(old, Pruned) else _compacted(job, old, cut)
    said_since = draft.newest != _newest(state)
    seen = draft.newest if said_since else None
    boundary = scrub_secrets(msgspec.structs.replace(made, seen=seen), job)
    after = state.with_boundary(boundary)
    total = ask.overhead_tokens + after.tokens
    if size - total < job.least_gain:
        return no_gain(size - total, job.least_gain)
    if said_since and ask.reason in AUTOMATIC and total > _most(boundary, ask):
        return Nothing("too_large", f"{total:,} tokens would be left")
    receipt = scrub_secrets(_receipt(job, old.receipt, boundary, after), job)
    return Rebased(msgspec.structs.replace(boundary, receipt=receipt), after)


def _cut(draft: Draft, state: ViewState) -> int | None:
    """Return the index of the first message that the draft keeps; None where no cut is legal there now.

    None too where the newest message that it was planned with is not on the path any more: its checkpoint
    tells what was said on a branch that was left.
    """
    boundary = draft.boundary
    if _boundaries(state) != draft.boundaries:
        return None
    if draft.newest is not None and all(entry.id != draft.newest for entry in state.kept):
        return None
    if isinstance(boundary, Pruned):
        here = {entry.id for entry in (*state.leading, *state.kept)}
        return 0 if here.issuperset(edit.entry for edit in boundary.edits) else None
    at = boundary.first_kept or draft.newest
    if at is None:
        return 0
    index = next((i for i, entry in enumerate(state.kept) if entry.id == at), None)
    if index is None:
        return None
    if boundary.first_kept is None:
        index += 1
    return index if index in (0, *legal_cuts(state.kept, state.pairing, state.edits)) else None


def _most(boundary: Compacted | Pruned, ask: FoldRequest) -> int:
    """Return the tokens that a boundary may leave; a prune alone is enough only below the soft trigger."""
    limits = thresholds(ask.policy, ask.window)
    if isinstance(boundary, Compacted) or not ask.optional:
        return ask.usable
    return (limits.soft or limits.hard or ask.usable) - 1


# ---- the boundary


def _pruned(job: CompactionInput, boundary: Pruned) -> Pruned:
    """Return a prune with the thinking taken out that was said since behind what it edits."""
    state = job.state
    known = {(edit.entry, edit.part) for edit in boundary.edits}
    known |= edited_parts(state.edits) | edited_parts(state.repairs)
    edited = {edit.entry for edit in boundary.edits}
    start = next((i for i, entry in enumerate(state.kept) if entry.id in edited), len(state.kept))
    new = stripped(state.kept, start, job.counter, known)
    return msgspec.structs.replace(boundary, edits=(*boundary.edits, *new))


def _compacted(job: CompactionInput, boundary: Compacted, cut: int) -> Compacted:
    """Return a fold with the checkpoint and the edits that what is kept now needs."""
    state, old = job.state, boundary.checkpoint
    kept = state.kept[cut:]
    known = {(edit.entry, edit.part) for edit in boundary.edits}
    edits = (*boundary.edits, *stripped(kept, 0, job.counter, known))
    by_id = {entry.id: entry for entry in (*state.leading, *state.quoted, *state.kept)}
    quoted = [by_id[entry] for entry in boundary.quoted if entry in by_id]
    # a checkpoint without any had no room for what was marked; what is kept shows its own
    job = job.changed(marks_room=bool(old.marks))
    frame = frame_before(job, kept, quoted, {edit.entry for edit in edits})
    frame = msgspec.structs.replace(frame, carried=old.carried)
    return msgspec.structs.replace(
        boundary,
        checkpoint=make_checkpoint(old.summary, frame, job.counter, like=old),
        first_kept=kept[0].id if kept else None,
        edits=edits,
    )


def _receipt(job: CompactionInput, old: Receipt, boundary: Compacted | Pruned, after: ViewState) -> Receipt:
    """Return the draft's receipt with the figures of now."""
    new = made_receipt(job, before=job.state.items(), after=after.items(), edits=boundary.edits)
    notes = [note for note in old.notes if not is_balance(note)]
    if isinstance(boundary, Compacted):
        notes += balance_notes(job, new.tokens_before, new.tokens_after, old.price)
    return msgspec.structs.replace(
        old,
        reason=new.reason,
        created_at=new.created_at,
        first_kept=boundary.first_kept if isinstance(boundary, Compacted) else None,
        tokens_before=new.tokens_before,
        tokens_after=new.tokens_after,
        messages_before=new.messages_before,
        messages_after=new.messages_after,
        dropped={**old.dropped, **new.dropped},
        by_category=new.by_category,
        notes=tuple(notes),
    )


# ---- a summary as the user wrote or edited it


def with_summary(draft: Draft, text: str) -> Draft:
    """Return a draft with the summary that the user made of its own.

    Standing constraints that the text no longer holds are dropped, and the receipt names them. Raises
    InputError for an empty text, and for a boundary that has no summary.
    """
    boundary = draft.boundary
    if isinstance(boundary, Pruned) and range_summary(boundary.edits):
        raise InputError("the summary of a range is committed as it was shown: leave `summary` out")
    if not isinstance(boundary, Compacted):
        raise InputError("only old tool results are taken out here: there is no summary to edit")
    if not text.strip():
        raise InputError("the summary is empty: leave `summary` out to commit it as it was shown")
    ledger, gone = held_in(text, msgspec.convert(boundary.ledger, Ledger))
    edited = msgspec.structs.replace(
        boundary,
        checkpoint=msgspec.structs.replace(boundary.checkpoint, summary=redact(text)),
        ledger=msgspec.to_builtins(ledger),
        receipt=msgspec.structs.replace(
            boundary.receipt, summarizer=EDITED, constraints=_less(boundary.receipt.constraints, gone)
        ),
    )
    return msgspec.structs.replace(draft, boundary=edited)


def held_in(text: str, ledger: Ledger) -> tuple[Ledger, list[str]]:
    """Return a ledger without the standing constraints that the user took out of a text, and those."""
    there = " ".join(text.split())
    held = tuple(fact for fact in ledger.constraints if " ".join(fact.text.split()) in there)
    gone = [fact.text for fact in ledger.constraints if fact not in held]
    return msgspec.structs.replace(ledger, constraints=held), gone


def _less(standing: StandingConstraints | None, gone: Sequence[str]) -> StandingConstraints | None:
    """Return what a receipt says of standing constraints when some are gone from the view."""
    if not gone:
        return standing
    texts = tuple(text for text in standing.texts if text not in gone) if standing else ()
    excess = standing.excess if standing else ()
    return StandingConstraints(len(texts), texts, tuple(dict.fromkeys((*excess, *gone))))
