"""Apply a boundary that was planned earlier to the path as it is now.

A summary takes long, and the session continues meanwhile. The cut, the summary and the edits stay. What
depends on the newest messages is made again: the checkpoint with its pins and live state, the removal of
signed thinking, the figures of the receipt. Facts are not collected again, so this is quick.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint.checkpoint import fitted, make_checkpoint
from foldline.core.checkpoint.obtain import EDITED
from foldline.core.compact.compaction_input import SIGNED_LOOP, CompactionInput, frame_before
from foldline.core.compact.receipt import balance_notes, balance_of, made_receipt, no_gain, scrub_secrets
from foldline.core.compact.room import most_left
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

VOID = Nothing("void", "the session has changed since the draft was made")


class Draft(msgspec.Struct, frozen=True):
    """A boundary that is not committed, and the state it was planned on.

    `boundaries` are those of the path and `newest` is the newest message of the view at that time.
    """

    boundary: Compacted | Pruned
    boundaries: tuple[str, ...]
    newest: str | None


class Rebased(msgspec.Struct, frozen=True):
    """A boundary without an id for the current path, and the view state with it."""

    boundary: Compacted | Pruned
    after: ViewState


def drafted(state: ViewState, boundary: Compacted | Pruned) -> Draft:
    """Return the draft of a boundary that was planned on this view state."""
    return Draft(boundary, _boundaries(state), _newest(state))


def _boundaries(state: ViewState) -> tuple[str, ...]:
    """Return the boundaries of a path, including a reply with a server's compaction."""
    return (*state.boundaries, *((state.server.id,) if state.server is not None else ()))


def _newest(state: ViewState) -> str | None:
    """Return the id of the newest message of a view, or None."""
    return state.kept[-1].id if state.kept else None


# ---- whether it can be committed


def holds(draft: Draft, state: ViewState) -> bool:
    """Whether a draft can still be committed: its messages are on the path, and no boundary was added."""
    return _cut(draft, state) is not None


def pays(job: CompactionInput, draft: Draft) -> bool:
    """Whether the next request costs less if a draft is committed now, as with a cold cache."""
    economy, receipt = job.ask.economy, draft.boundary.receipt
    if economy is None or not economy.cache.tokens:
        return False
    after = max(job.size - receipt.tokens_before + receipt.tokens_after, 0)
    cost_balance = balance_of(job, job.size, after)
    return cost_balance is not None and cost_balance.requests == 0


def rebased(job: CompactionInput, draft: Draft) -> Rebased | Nothing:
    """Return the boundary of a draft for the current path, or `Nothing`.

    `Nothing` if the draft is void, would gain too little (`no_gain`) or leave too much (`too_large`), or if
    an open tool loop has signed thinking.
    """
    state, ask, size, planned = job.state, job.ask, job.size, draft.boundary
    cut = _cut(draft, state)
    if cut is None:
        return VOID
    if ask.optional and size <= ask.usable and signed_loop(state.kept):
        return SIGNED_LOOP
    job = job.asking(live=fitted(ask.live, ask.usable, job.counter))
    changed = _pruned(job, planned) if isinstance(planned, Pruned) else _compacted(job, planned, cut)
    said_since = draft.newest != _newest(state)
    seen = draft.newest if said_since else None
    boundary = scrub_secrets(msgspec.structs.replace(changed, seen=seen), job)
    after = state.with_boundary(boundary)
    total = ask.overhead_tokens + after.tokens
    if size - total < job.least_gain:
        return no_gain(size - total, job.least_gain)
    if said_since and ask.reason in AUTOMATIC and total > _most(boundary, ask):
        return Nothing("too_large", f"{total:,} tokens would remain")
    receipt = scrub_secrets(_receipt(job, planned.receipt, boundary, after), job)
    return Rebased(msgspec.structs.replace(boundary, receipt=receipt), after)


def _cut(draft: Draft, state: ViewState) -> int | None:
    """Return the index of the first message that the draft keeps; None if no cut is legal there now.

    None too if the newest message at planning is no longer on the path: the checkpoint would cover messages
    of an abandoned branch.
    """
    boundary = draft.boundary
    if _boundaries(state) != draft.boundaries:
        return None
    if draft.newest is not None and all(entry.id != draft.newest for entry in state.kept):
        return None
    if isinstance(boundary, Pruned):
        view_ids = {entry.id for entry in (*state.leading, *state.kept)}
        return 0 if view_ids.issuperset(edit.entry for edit in boundary.edits) else None
    kept_id = boundary.first_kept or draft.newest
    if kept_id is None:
        return 0
    index = next((i for i, entry in enumerate(state.kept) if entry.id == kept_id), None)
    if index is None:
        return None
    if boundary.first_kept is None:
        index += 1
    return index if index in (0, *legal_cuts(state.kept, state.pairing, state.edits)) else None


def _most(boundary: Compacted | Pruned, ask: FoldRequest) -> int:
    """Return the most tokens that a boundary may leave; after a prune, less than the soft trigger."""
    if not ask.optional:
        return ask.usable
    if isinstance(boundary, Compacted):
        return most_left(ask)
    limits = thresholds(ask.policy, ask.window)
    return (limits.soft or limits.hard or ask.usable) - 1


# ---- the boundary


def _pruned(job: CompactionInput, boundary: Pruned) -> Pruned:
    """Return a prune that also removes the signed thinking that came since, after its edits."""
    state = job.state
    already = {(edit.entry, edit.part) for edit in boundary.edits}
    already |= edited_parts(state.edits) | edited_parts(state.repairs)
    edited = {edit.entry for edit in boundary.edits}
    start = next((i for i, entry in enumerate(state.kept) if entry.id in edited), len(state.kept))
    thinking_edits = stripped(state.kept, start, job.counter, already)
    return msgspec.structs.replace(boundary, edits=(*boundary.edits, *thinking_edits))


def _compacted(job: CompactionInput, boundary: Compacted, cut: int) -> Compacted:
    """Return a fold with the checkpoint and edits that the current kept messages need."""
    state, old = job.state, boundary.checkpoint
    kept = state.kept[cut:]
    already = {(edit.entry, edit.part) for edit in boundary.edits}
    edits = (*boundary.edits, *stripped(kept, 0, job.counter, already))
    by_id = {entry.id: entry for entry in (*state.leading, *state.quoted, *state.kept)}
    quoted = [by_id[entry] for entry in boundary.quoted if entry in by_id]
    # a checkpoint without marks had no room for them; kept messages show theirs
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
    """Return the draft's receipt with current figures."""
    new = made_receipt(job, boundary, after)
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


# ---- a summary that the user edited


def with_summary(draft: Draft, text: str) -> Draft:
    """Return a draft with its summary replaced by the user's text.

    Standing constraints that the text no longer contains are dropped and named in the receipt. Raises
    InputError for an empty text, and for a boundary without a summary.
    """
    boundary = draft.boundary
    if isinstance(boundary, Pruned) and range_summary(boundary.edits):
        raise InputError("the summary of a range cannot be edited: leave `summary` out")
    if not isinstance(boundary, Compacted):
        raise InputError("this boundary only prunes old tool results: it has no summary to edit")
    if not text.strip():
        raise InputError("the summary is empty: leave `summary` out to commit the summary as shown")
    ledger, dropped = held_in(text, msgspec.convert(boundary.ledger, Ledger))
    edited = msgspec.structs.replace(
        boundary,
        checkpoint=msgspec.structs.replace(boundary.checkpoint, summary=redact(text)),
        ledger=msgspec.to_builtins(ledger),
        receipt=msgspec.structs.replace(
            boundary.receipt,
            summarizer=EDITED,
            constraints=_without_dropped(boundary.receipt.constraints, dropped),
        ),
    )
    return msgspec.structs.replace(draft, boundary=edited)


def held_in(text: str, ledger: Ledger) -> tuple[Ledger, list[str]]:
    """Return a ledger without the standing constraints that are not in a text, and the dropped ones."""
    normalized = " ".join(text.split())
    kept = tuple(fact for fact in ledger.constraints if " ".join(fact.text.split()) in normalized)
    dropped = [fact.text for fact in ledger.constraints if fact not in kept]
    return msgspec.structs.replace(ledger, constraints=kept), dropped


def _without_dropped(
    standing: StandingConstraints | None, dropped: Sequence[str]
) -> StandingConstraints | None:
    """Return the standing constraints of a receipt after some were dropped from the view."""
    if not dropped:
        return standing
    texts = tuple(text for text in standing.texts if text not in dropped) if standing else ()
    excess = standing.excess if standing else ()
    return StandingConstraints(len(texts), texts, tuple(dict.fromkeys((*excess, *dropped))))
