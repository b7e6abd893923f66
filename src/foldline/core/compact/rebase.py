"""A boundary that was planned a while ago, put onto the path as it is now.

A summary takes long; the session goes on meanwhile. What was chosen stays (the cut, the summary, the edits), what
depends on the newest messages is made anew: the checkpoint with its pins and live state, the thinking that has to
go, the figures of the receipt. No message is read for facts again, so that it takes the time of a fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from foldline.core.checkpoint.checkpoint import make_checkpoint
from foldline.core.checkpoint.live import fitted
from foldline.core.checkpoint.receipt import APART
from foldline.core.compact.job import balance_notes, made_receipt
from foldline.core.compact.trim import edited_parts, least_gain, no_gain, stripped
from foldline.core.cut.choice import Edits, add, open_loop, signed
from foldline.core.cut.legal import legal_cuts
from foldline.core.decide.ask import GIVEN, Ask, Nothing
from foldline.core.decide.price import is_balance
from foldline.core.decide.triggers import thresholds
from foldline.core.log.entries import Checkpoint, Compacted, Entry, Lifted, Pruned, Receipt, Said
from foldline.core.measure.tokens import Counter
from foldline.core.view import ViewState

VOID = Nothing("void", "the path is no longer the one that the draft was made for")


class Draft(msgspec.Struct, frozen=True):
    """A boundary that is not committed, and what it was planned on.

    `boundaries` are the boundaries of the path then, `newest` is the newest message of the view, which had so many
    `items` (None: some of them were not to stay).
    """

    boundary: Compacted | Pruned
    boundaries: tuple[str, ...]
    newest: str | None
    items: int | None = None


class Rebased(msgspec.Struct, frozen=True):
    """A boundary without an id, for the path as it is, and the fold of the path with it."""

    boundary: Compacted | Pruned
    after: ViewState


def drafted(fold: ViewState, boundary: Compacted | Pruned) -> Draft:
    """Return the draft of a boundary that was planned on this fold."""
    items = None if fold.open_calls else len(fold.items())
    newest = fold.kept[-1].id if fold.kept else None
    return Draft(boundary, fold.boundaries, newest, items)


def lifted(path: Sequence[Entry]) -> set[str]:
    """Return the ids of the boundaries of a path that are undone."""
    state = {entry.target: entry.lifted for entry in path if isinstance(entry, Lifted)}
    return {target for target, out in state.items() if out}


def folded_with(fold: ViewState, boundary: Compacted | Pruned, counter: Counter) -> ViewState:
    """Return the fold of a path and a new boundary behind it; it holds what its view needs, as a store hands it out."""
    path: list[Entry] = [*fold.entries(), boundary]
    if isinstance(boundary, Compacted):
        named = {*boundary.leading, *boundary.quoted}
        first = boundary.first_kept or boundary.id
        start = next(index for index, entry in enumerate(path) if entry.id == first)
        path = [*(entry for entry in path[:start] if entry.id in named), *path[start:]]
    return ViewState(path, counter=counter)


def holds(draft: Draft, fold: ViewState) -> bool:
    """Whether a draft can still be committed: its cut is on the path, and no boundary came since."""
    return fold.boundaries == draft.boundaries and _cut(draft, fold) is not None


def rebased(draft: Draft, fold: ViewState, ask: Ask, counter: Counter) -> Rebased | Nothing:
    """Return the boundary of a draft for the path as it is now.

    Nothing where it no longer holds (`void`), where it would gain too little (`no_gain`) or leave too much
    (`too_large`), or where an open tool loop has thinking that is bound to what stands before it.
    """
    cut = _cut(draft, fold)
    if cut is None or fold.boundaries != draft.boundaries:
        return VOID
    size = ask.apart_tokens + fold.tokens
    if ask.automatic and size <= ask.usable and _bound(fold):
        return Nothing(
            "signed_thinking", "inside a tool loop whose thinking is bound to what stands before it"
        )
    ask = msgspec.structs.replace(ask, live=fitted(ask.live, ask.usable, counter))
    boundary = _anew(draft.boundary, fold, ask, counter, cut)
    after = folded_with(fold, boundary, counter)
    total = ask.apart_tokens + after.tokens
    if size - total < (least := least_gain(ask)):
        return no_gain(size - total, least)
    said_since = draft.newest != (fold.kept[-1].id if fold.kept else None)
    if said_since and ask.reason not in GIVEN and total > _most(boundary, ask):
        return Nothing("too_large", f"{total:,} tokens would be left")
    receipt = _receipt(draft, boundary, ask, before=fold, after=after)
    return Rebased(msgspec.structs.replace(boundary, receipt=receipt), after)


def _cut(draft: Draft, fold: ViewState) -> int | None:
    """Return the index of the first message that the draft keeps; None where it cannot be cut there any more."""
    boundary = draft.boundary
    if isinstance(boundary, Pruned):
        here = {entry.id for entry in (*fold.leading, *fold.kept)}
        return 0 if here.issuperset(edit.entry for edit in boundary.edits) else None
    at = boundary.first_kept or draft.newest
    if at is None:
        return 0
    index = next((i for i, entry in enumerate(fold.kept) if entry.id == at), None)
    if index is None:
        return None
    if boundary.first_kept is None:
        index += 1
    return index if index in (0, *legal_cuts(fold.kept, fold.pairing)) else None


def _bound(fold: ViewState) -> bool:
    return any(signed(entry.message) for entry in fold.kept[open_loop(fold.kept) :])


def _most(boundary: Compacted | Pruned, ask: Ask) -> int:
    """Return the tokens that a boundary may leave; a prune alone is enough only below the soft trigger."""
    limits = thresholds(ask.policy, ask.window)
    if isinstance(boundary, Compacted) or not ask.automatic:
        return ask.usable
    return (limits.soft or limits.hard or ask.usable) - 1


def _anew(
    boundary: Compacted | Pruned, fold: ViewState, ask: Ask, counter: Counter, cut: int
) -> Compacted | Pruned:
    known: Edits = {}
    add(known, boundary.edits)
    if isinstance(boundary, Pruned):
        add(known, [edit for found in fold.edits.values() for edit in found])
        edited = {edit.entry for edit in boundary.edits}
        start = next((i for i, entry in enumerate(fold.kept) if entry.id in edited), len(fold.kept))
        new = stripped(fold.kept, start, counter, edited_parts(known) | edited_parts(fold.repairs))
        return msgspec.structs.replace(boundary, edits=(*boundary.edits, *new))
    kept = fold.kept[cut:]
    edits = (*boundary.edits, *stripped(kept, 0, counter, edited_parts(known)))
    by_id = {entry.id: entry for entry in (*fold.leading, *fold.quoted, *fold.kept)}
    quoted = [by_id[entry] for entry in boundary.quoted if entry in by_id]
    point = checkpoint_of(
        boundary.checkpoint.summary,
        fold,
        ask,
        counter,
        quoted=quoted,
        kept=kept,
        edited={edit.entry for edit in edits},
        made=boundary.checkpoint,
    )
    first = kept[0].id if kept else None
    return msgspec.structs.replace(boundary, checkpoint=point, first_kept=first, edits=edits)


def checkpoint_of(
    summary: str,
    fold: ViewState,
    ask: Ask,
    counter: Counter,
    *,
    quoted: Sequence[Said],
    kept: Sequence[Said],
    edited: set[str],
    made: Checkpoint | None = None,
) -> Checkpoint:
    """Return the checkpoint of a fold before what is kept; pins are quoted of which the view does not show the words.

    `made` is one of the same summary, from before.
    """
    follows = kept[0].message.role if kept else None
    behind = ask.policy.summary_position == "before" and bool(quoted)
    return make_checkpoint(
        summary,
        ask.policy,
        counter,
        pins=tuple(fold.pins.values()),
        shown={entry.id for entry in (*fold.leading, *quoted, *kept)} - edited,
        quoted=len(quoted),
        ack=bool(ask.policy.ack) and (behind or follows != "assistant"),
        number=ask.number,
        live=ask.live,
        standing=ask.standing,
        told=any(entry.message.role == "assistant" or entry.message.is_prompt for entry in kept),
        made=made,
    )


def _receipt(
    draft: Draft, boundary: Compacted | Pruned, ask: Ask, *, before: ViewState, after: ViewState
) -> Receipt:
    """Return the receipt with the figures of today, and what the draft's says of what was folded and what it cost.

    What stood in the view when the draft was made still does, so that only what came since is added up.
    """
    old = draft.boundary.receipt
    there = any(entry.id == draft.newest for entry in before.kept)  # not after a rewind to before it
    items, known = before.items(), draft.items if there else None
    new = made_receipt(
        ask,
        before=items if known is None else items[known:],
        after=after.items(),
        folded=(),
        edits=boundary.edits,
        sizes=(ask.apart_tokens + before.tokens, ask.apart_tokens + after.tokens),
    )
    categories = new.by_category
    if known is not None:
        categories = _added(old.by_category, categories)
    notes = [note for note in old.notes if not is_balance(note)]
    if isinstance(boundary, Compacted):
        notes += balance_notes(before, ask, (new.tokens_before, new.tokens_after), old.price)
    return msgspec.structs.replace(
        old,
        reason=new.reason,
        created_at=new.created_at,
        first_kept=boundary.first_kept if isinstance(boundary, Compacted) else None,
        tokens_before=new.tokens_before,
        tokens_after=new.tokens_after,
        messages_before=len(items),
        messages_after=new.messages_after,
        dropped={**old.dropped, **new.dropped},
        by_category=categories,
        notes=tuple(notes),
    )


def _added(
    then: Mapping[str, tuple[int, int]], since: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return tokens by category: before, those of the draft's view and of what came since; after, as it is."""
    names = dict.fromkeys((*then, *since))
    zero = (0, 0)
    made = {
        name: (then.get(name, zero)[0] + since.get(name, zero)[0], since.get(name, zero)[1]) for name in names
    }
    if APART in made:  # stands in both
        made[APART] = since[APART]
    return {name: pair for name, pair in made.items() if any(pair)}
