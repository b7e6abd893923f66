"""Boundaries that fold nothing: blanking old results, and shortening what must stay."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

import msgspec

from foldline.core.compact.job import Job, floor_of, limits_of, made_receipt, material_of
from foldline.core.cut.choice import Edits, add, lead_edits, open_loop, strip_thinking, tokens_of
from foldline.core.cut.notes import with_held
from foldline.core.cut.prune import prune
from foldline.core.cut.shrink import shrink
from foldline.core.decide.ask import Ask, Nothing
from foldline.core.decide.triggers import thresholds
from foldline.core.ledger.facts.constraints import collect
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.ledger.worth.blank_notes import notes_for
from foldline.core.log.entries import Edit, Pruned, Said
from foldline.core.log.messages import Text, ToolResult
from foldline.core.measure.tokens import Counter, part_tokens
from foldline.core.view import Item, Kept
from foldline.errors import FloorExceeded

NOTES_SHARE = 4  # of what a prune frees, the part that its notes may take again
NOTES_LEAST = 64  # tokens below which notes say nothing


def pruned(job: Job) -> Edits:
    """Return the edits of a prune; pinned entries are left alone."""
    fold, ask, counter = job.fold, job.ask, job.counter
    already = edited_parts(fold.edits) | edited_parts(fold.repairs)
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
        add(edits, stripped(fold.kept, first, counter, already))
    return edits


def stripped(
    kept: Sequence[Said], start: int, counter: Counter, already: AbstractSet[tuple[str, int]]
) -> list[Edit]:
    """Return edits that take signed thinking out of messages from `start` on, an open tool loop left alone."""
    return [
        Edit(entry.id, index, "stripped", None, part_tokens(entry.message.parts[index], counter))
        for entry, index in strip_thinking(kept, start, open_loop(kept))
        if (entry.id, index) not in already
    ]


def edited_parts(edits: Edits) -> set[tuple[str, int]]:
    """Return (entry, part) of every edit."""
    return {(edit.entry, edit.part) for found in edits.values() for edit in found}


def _freed(edits: Edits) -> int:
    return sum(edit.saved for found in edits.values() for edit in found)


def suffices(job: Job, edits: Edits) -> bool:
    """Whether a prune alone is enough: a target is met, or an automatic one ends below the soft trigger."""
    return _to_spare(job, edits) >= 0


def _to_spare(job: Job, edits: Edits) -> int:
    """Return the tokens by which a prune more than suffices; negative where it does not."""
    ask, after = job.ask, job.size - _freed(edits)
    if ask.target is not None:
        return ask.target - after
    if not ask.automatic:
        return -1
    soft = thresholds(ask.policy, ask.window).soft or thresholds(ask.policy, ask.window).hard or ask.usable
    return min(soft - 1 - after, job.size - after - least_gain(ask))


def noted(job: Job, edits: Edits) -> Edits:
    """Return the edits of a prune that suffices with what the results held, as far as the policy and the room allow."""
    ask, counter = job.ask, job.counter
    most = ask.policy.prune_notes.resolve(ask.window, ask.usable)
    budget = min(most, _freed(edits) // NOTES_SHARE, _to_spare(job, edits))
    blanked = {(e.entry, e.part) for found in edits.values() for e in found if e.kind == "blanked"}
    if budget < NOTES_LEAST or not blanked:
        return edits
    lines = notes_for(job.fold.kept, blanked, budget, counter.count)
    done: Edits = {}
    for found in edits.values():
        add(done, [_with_note(edit, lines.get((edit.entry, edit.part)), counter) for edit in found])
    return done if _to_spare(job, done) >= 0 else edits


def _with_note(edit: Edit, line: str | None, counter: Counter) -> Edit:
    """Return an edit whose placeholder says what the result held, unless that makes it no smaller."""
    blank = edit.replacement
    if line is None or not isinstance(blank, ToolResult):
        return edit
    fuller = msgspec.structs.replace(blank, content=(Text(with_held(blank.text, line)),))
    saved = edit.saved + part_tokens(blank, counter) - part_tokens(fuller, counter)
    return msgspec.structs.replace(edit, replacement=fuller, saved=saved) if saved > 0 else edit


def least_gain(ask: Ask) -> int:
    """Return the tokens that a boundary has to gain."""
    return max(ask.policy.min_gain.resolve(ask.window, ask.usable), 1) if ask.automatic else 1


def no_gain(gain: int, least: int) -> Nothing:
    """Say that a boundary would have gained too little."""
    if gain < 0:
        return Nothing("no_gain", f"the checkpoint would be {-gain:,} tokens larger than what it stands for")
    return Nothing("no_gain", f"{gain:,} tokens of the {least:,} that it has to gain")


def only_pruned(job: Job, edits: Edits) -> Pruned | Nothing:
    """Return the prune of a policy that does not compact, or why it does nothing."""
    ask = job.ask
    if not edits:
        return Nothing("disabled", "compaction is switched off and nothing can be pruned")
    if ask.target is not None:
        return Nothing("disabled", "compaction is switched off and pruning does not suffice")
    return prune_boundary(job, edits)


def prune_boundary(job: Job, edits: Edits) -> Pruned | Nothing:
    """Return the boundary of edits that suffice, with its receipt."""
    gain, least = _freed(edits), least_gain(job.ask)
    if gain < least:
        return no_gain(gain, least)
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
    standing = collect([entry for entry in job.fold.kept if entry.id in edits])
    if standing:
        receipt = msgspec.structs.replace(receipt, constraints=constraint_figures(standing))
    return Pruned(id="", parent=None, receipt=receipt, edits=listed)


def constraint_figures(shown: Sequence[ConstraintFact], excess: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a receipt says of standing constraints: those kept word for word, and those left out."""
    figures: dict[str, Any] = {"kept": len(shown), "texts": [fact.text for fact in shown]}
    return {**figures, "excess": list(excess)} if excess else figures


def standing_in(
    facts: Sequence[ConstraintFact], view: Sequence[Item]
) -> tuple[list[ConstraintFact], list[str]]:
    """Return the standing constraints that a view says word for word, and the texts of those that it does not."""
    told = [_squeezed(text) for item in view for text in _read(item)]
    here = [fact for fact in facts if any(_squeezed(fact.text) in text for text in told)]
    return here, [fact.text for fact in facts if fact not in here]


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _read(item: Item) -> list[str]:
    """Return the texts that the model reads in an item."""
    if not isinstance(item, Kept):
        return [part.text for part in item.message.parts if isinstance(part, Text)]
    edited = {edit.part: edit.replacement for edit in item.edits}
    parts = [edited.get(i, part) for i, part in enumerate(item.entry.message.parts)]
    return [part.text for part in parts if isinstance(part, Text)]


def _lost(kept: Sequence[Said], edits: Sequence[Edit]) -> list[tuple[Edit, list[ConstraintFact]]]:
    """Return the elisions that took standing constraints out, with those constraints."""
    by_id = {entry.id: entry for entry in kept}
    found: list[tuple[Edit, list[ConstraintFact]]] = []
    for edit in edits:
        if isinstance(edit.replacement, Text) and by_id[edit.entry].message.is_prompt:
            text = edit.replacement.text
            facts = [fact for fact in collect([by_id[edit.entry]]) if fact.text not in text]
            if facts:
                found.append((edit, facts))
    return found


def _quoted(facts: Sequence[ConstraintFact]) -> str:
    return "\n[Standing, word for word:]\n" + "\n".join(f"- {fact.text}" for fact in facts)


def _with_constraints(kept: Sequence[Said], edits: Sequence[Edit], counter: Counter) -> list[Edit]:
    """Quote behind an elided prompt the standing constraints that stood in what was left out."""
    lost = {(edit.entry, edit.part): facts for edit, facts in _lost(kept, edits)}
    done: list[Edit] = []
    for edit in edits:
        facts = lost.get((edit.entry, edit.part))
        if facts and isinstance(edit.replacement, Text):
            text = edit.replacement.text + _quoted(facts)
            more = counter.count(text) - counter.count(edit.replacement.text)
            edit = msgspec.structs.replace(edit, replacement=Text(text), saved=edit.saved - more)  # noqa: PLW2901
        done.append(edit)
    return done


def shortened(job: Job, edits: Edits) -> Pruned | Nothing:
    """Where nothing can be folded, shorten what is there until it fits."""
    fold, ask, counter, size = job.fold, job.ask, job.counter, job.size
    material, limits = material_of(fold, edits), limits_of(fold, ask, counter)
    others = size - _freed(edits) - tokens_of(material.leading, material.edits)
    add(edits, lead_edits(material, limits, counter, most=ask.usable - others))
    over = size - _freed(edits) - ask.usable
    if over > 0:
        merged: Edits = {entry: tuple(found) for entry, found in material_of(fold, edits).edits.items()}
        for repairs in fold.repairs.values():  # a part that the view leaves out cannot get smaller
            add(merged, [edit for edit in repairs if edit.replacement is None])
        shorter = partial(
            shrink,
            fold.kept,
            usable=ask.usable,
            counter=counter,
            edits=merged,
            spare=frozenset(fold.pins),
            recall=ask.recall,
        )
        more = shorter(over)
        if cost := sum(part_tokens(Text(_quoted(facts)), counter) for _, facts in _lost(fold.kept, more)):
            more = shorter(over + cost)
        add(edits, _with_constraints(fold.kept, more, counter))
    after = size - _freed(edits)
    if ask.target is not None and after > ask.target:
        raise FloorExceeded(after, ask.target, floor_of(fold, ask, counter).breakdown)
    if not edits:
        return Nothing("nothing_to_fold")
    return prune_boundary(job, edits)


def _edited(items: Sequence[Item], edits: Sequence[Edit]) -> list[Item]:
    new: Edits = {}
    add(new, edits)
    changed = edited_parts(new)
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
