"""Boundaries that fold nothing: blanking old results, and shortening what must stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from foldline.core.compact.compaction_input import (
    CompactionInput,
    floor_of,
    least_gain,
    limits_of,
    material_of,
)
from foldline.core.compact.receipt import constraint_figures, made_receipt, no_gain, scrub_secrets
from foldline.core.cut.choice import SPARE, lead_edits
from foldline.core.cut.edits import Edits, edited_parts, flat, merged, saved_by
from foldline.core.cut.elide import elide
from foldline.core.cut.notes import with_held
from foldline.core.cut.prune import prune
from foldline.core.cut.shrink import shrink
from foldline.core.cut.thinking import stripped
from foldline.core.decide.ask import Nothing
from foldline.core.decide.triggers import thresholds
from foldline.core.ledger.facts.constraints import standing
from foldline.core.ledger.facts.kinds import ConstraintFact
from foldline.core.ledger.facts.runs import held
from foldline.core.log.entries import Edit, Pruned, Receipt, Said
from foldline.core.log.messages import Text, ToolResult
from foldline.core.measure.tokens import Counter, part_tokens
from foldline.errors import FloorExceeded

NOTES_SHARE = 4  # of what a prune frees, the part that its notes may take again
NOTES_LEAST = 64  # tokens below which notes say nothing


# ---- prune


def pruned(job: CompactionInput) -> Edits:
    """Return the edits of a prune; pinned entries are left alone."""
    state, ask, counter = job.state, job.ask, job.counter
    already = edited_parts(state.edits) | edited_parts(state.repairs)
    pruning = prune(
        state.kept,
        ask.policy,
        ask.window,
        ask.usable,
        counter,
        already=already,
        date=ask.now[:10] or "earlier",
    )
    edits = merged({}, (edit for edit in pruning.edits if edit.entry not in state.pins))
    if not edits:
        return edits
    first = min(i for i, entry in enumerate(state.kept) if entry.id in edits)
    return merged(edits, stripped(state.kept, first, counter, already))


def suffices(job: CompactionInput, edits: Edits) -> bool:
    """Whether a prune alone is enough: a target is met, or an automatic one ends below the soft trigger."""
    return _to_spare(job, edits) >= 0


def _to_spare(job: CompactionInput, edits: Edits) -> int:
    """Return the tokens by which a prune more than suffices; negative where it does not."""
    ask, after = job.ask, job.size - saved_by(edits)
    if ask.target is not None:
        return ask.target - after
    if not ask.optional:
        return -1
    limits = thresholds(ask.policy, ask.window)
    soft = limits.soft or limits.hard or ask.usable
    return min(soft - 1 - after, job.size - after - least_gain(job))


def noted(job: CompactionInput, edits: Edits) -> Edits:
    """Return the edits of a prune that suffices, with notes of what the results held.

    The notes take what the policy and the room allow.
    """
    ask, counter = job.ask, job.counter
    most = ask.policy.prune_notes.resolve(ask.window, ask.usable)
    budget = min(most, saved_by(edits) // NOTES_SHARE, _to_spare(job, edits))
    blanked = {(edit.entry, edit.part) for edit in flat(edits) if edit.kind == "blanked"}
    if budget < NOTES_LEAST or not blanked:
        return edits
    lines = held(job.state.clean(job.state.kept), blanked, budget, counter.count)
    told = [_with_note(edit, lines.get((edit.entry, edit.part)), counter) for edit in flat(edits)]
    done = merged({}, told)
    return done if _to_spare(job, done) >= 0 else edits


def _with_note(edit: Edit, line: str | None, counter: Counter) -> Edit:
    """Return an edit whose placeholder says what the result held, unless that makes it no smaller."""
    blank = edit.replacement
    if line is None or not isinstance(blank, ToolResult):
        return edit
    fuller = msgspec.structs.replace(blank, content=(Text(with_held(blank.text, line)),))
    saved = edit.saved + part_tokens(blank, counter) - part_tokens(fuller, counter)
    return msgspec.structs.replace(edit, replacement=fuller, saved=saved) if saved > 0 else edit


def given_back(job: CompactionInput, edits: Edits) -> Edits:
    """Return the edits of a prune that meets a target, less those it has room for: the newest come first.

    The first result that has no room as a whole is shortened to what there is.
    """
    if job.ask.target is None or _to_spare(job, edits) < job.ask.usable // SPARE:
        return edits
    spare, parts = _to_spare(job, edits), {entry.id: entry.message.parts for entry in job.state.kept}
    left = {(edit.entry, edit.part): edit for edit in flat(edits)}
    newest = {entry.id: at for at, entry in enumerate(job.state.kept)}
    blanked = [edit for edit in left.values() if edit.kind == "blanked"]
    for edit in sorted(blanked, key=lambda edit: (newest[edit.entry], edit.part), reverse=True):
        del left[edit.entry, edit.part]
        spare -= edit.saved
        if spare < 0:
            original = parts[edit.entry][edit.part]
            size = part_tokens(original, job.counter)
            handle = edit.entry if job.ask.recall else ""
            shorter = elide(original, size + spare, job.counter, handle)
            saved = size - part_tokens(shorter, job.counter) if shorter is not None else 0
            if saved >= -spare:
                left[edit.entry, edit.part] = Edit(edit.entry, edit.part, "elided", shorter, saved)
            else:
                left[edit.entry, edit.part] = edit
            break
    return merged({}, left.values())


def only_pruned(job: CompactionInput, edits: Edits) -> Pruned | Nothing:
    """Return the prune of a policy that does not compact, or why it does nothing."""
    if not edits:
        return Nothing("disabled", "compaction is switched off and nothing can be pruned")
    if job.ask.target is not None:
        return Nothing("disabled", "compaction is switched off and pruning does not suffice")
    return prune_boundary(job, edits)


# ---- shorten


def shortened(job: CompactionInput, edits: Edits) -> Pruned | Nothing:
    """Shorten what is there until it fits, where nothing can be folded; `edits` are those of a prune.

    Raises FloorExceeded where a target is not met.
    """
    usable = job.ask.usable
    material = material_of(job, edits)
    others = job.size - saved_by(edits) - material.tokens(material.leading, material.edits)
    leading = lead_edits(material, limits_of(job), job.counter, most=usable - others)
    edits = merged(edits, leading)
    over = job.size - saved_by(edits) - usable
    if over > 0:
        edits = merged(edits, _shrunk(job, edits, over))
    after = job.size - saved_by(edits)
    if job.ask.target is not None and after > job.ask.target:
        raise FloorExceeded(after, job.ask.target, floor_of(job).breakdown)
    return prune_boundary(job, edits) if edits else Nothing("nothing_to_fold")


def _shrunk(job: CompactionInput, edits: Edits, over: int) -> list[Edit]:
    """Return edits that take `over` tokens out of the kept messages; lost standing constraints are quoted."""
    state, counter = job.state, job.counter
    material = material_of(job, edits)
    shorter = partial(
        shrink,
        state.kept,
        usable=job.ask.usable,
        counter=counter,
        edits=material.edits,
        spare=material.pinned,
        out=material.repairs.out,
        recall=job.ask.recall,
    )
    found = shorter(over)
    kept = state.clean(state.kept)
    lost = _lost_constraints(kept, found).values()
    if quotes := sum(part_tokens(Text(_quotes(facts)), counter) for facts in lost):
        found = shorter(over + quotes)
    return _with_constraints(kept, found, counter)


def _lost_constraints(
    kept: Sequence[Said], edits: Sequence[Edit]
) -> Mapping[tuple[str, int], list[ConstraintFact]]:
    """Return the standing constraints that elisions took out, by (entry id, part index)."""
    by_id = {entry.id: entry for entry in kept}
    found: dict[tuple[str, int], list[ConstraintFact]] = {}
    for edit in edits:
        if isinstance(edit.replacement, Text) and by_id[edit.entry].message.is_prompt:
            text = edit.replacement.text
            facts = [fact for fact in standing([by_id[edit.entry]]) if fact.text not in text]
            if facts:
                found[edit.entry, edit.part] = facts
    return found


def _quotes(facts: Sequence[ConstraintFact]) -> str:
    return "\n[Standing, word for word:]\n" + "\n".join(f"- {fact.text}" for fact in facts)


def _with_constraints(kept: Sequence[Said], edits: Sequence[Edit], counter: Counter) -> list[Edit]:
    """Quote behind an elided prompt the standing constraints that stood in what was left out."""
    lost = _lost_constraints(kept, edits)
    return [_with_quotes(edit, lost.get((edit.entry, edit.part), ()), counter) for edit in edits]


def _with_quotes(edit: Edit, facts: Sequence[ConstraintFact], counter: Counter) -> Edit:
    if not facts or not isinstance(edit.replacement, Text):
        return edit
    text = edit.replacement.text + _quotes(facts)
    more = counter.count(text) - counter.count(edit.replacement.text)
    return msgspec.structs.replace(edit, replacement=Text(text), saved=edit.saved - more)


# ---- the boundary


def prune_boundary(job: CompactionInput, edits: Edits) -> Pruned | Nothing:
    """Return the boundary of edits that suffice, with its receipt."""
    gain, least = saved_by(edits), least_gain(job)
    if gain < least:
        return no_gain(gain, least)
    older = {(edit.entry, edit.part): edit.saved for edit in flat(job.state.edits)}
    listed = tuple(
        msgspec.structs.replace(edit, saved=edit.saved + older.get((edit.entry, edit.part), 0))
        for edit in flat(edits)
    )
    boundary = Pruned(id="", parent=None, receipt=Receipt(job.ask.reason), edits=listed)
    receipt = made_receipt(
        job,
        before=job.state.view(),
        after=job.state.with_boundary(boundary).view(),
        folded=(),
        edits=listed,
        sizes=(job.size, job.size - gain),
    )
    found = standing(job.state.clean(entry for entry in job.state.kept if entry.id in edits))
    if found:
        receipt = msgspec.structs.replace(receipt, constraints=constraint_figures(found))
    return scrub_secrets(msgspec.structs.replace(boundary, receipt=receipt), job)
