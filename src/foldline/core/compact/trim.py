"""Boundaries that fold nothing: blanking old results, and shortening what must stay."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.receipt import constraint_figures, made_receipt, no_gain, scrub_secrets
from foldline.core.compact.room import SPARE, floor_of, room_of
from foldline.core.cut.edits import PartAt, edited_parts, flat, merged, saved_by
from foldline.core.cut.elide import elide
from foldline.core.cut.images import REDUCED, reduced
from foldline.core.cut.notes import with_held
from foldline.core.cut.prune import prune
from foldline.core.cut.thinking import stripped
from foldline.core.decide.ask import Nothing
from foldline.core.decide.triggers import thresholds
from foldline.core.ledger.facts.constraints import standing
from foldline.core.ledger.facts.runs import held
from foldline.core.log.entries import Edit, Pruned, Receipt
from foldline.core.log.messages import Text, ToolResult
from foldline.core.measure.tokens import Counter, part_tokens
from foldline.errors import FloorExceeded

NOTES_SHARE = 4  # of what a prune frees, the part that its notes may take again
NOTES_LEAST = 64  # tokens below which notes say nothing


# ---- prune


def pruned(job: CompactionInput) -> list[Edit]:
    """Return the edits of a prune, for a target no more than it needs, and those of old images.

    Pinned entries are left alone. A result whose images were reduced may still be blanked.
    """
    state, ask, counter = job.state, job.ask, job.counter
    already = edited_parts(state.edits) | edited_parts(state.repairs)
    smaller = {(edit.entry, edit.part) for edit in flat(state.edits) if edit.kind == REDUCED}
    date = ask.now[:10] or "earlier"
    found = prune(
        state.kept, ask.policy, ask.window, ask.usable, counter, already=already - smaller, date=date
    )
    chosen = [edit for edit in found.edits if edit.entry not in state.pins]
    images = _images(job, {(edit.entry, edit.part) for edit in chosen}, date)
    if not (chosen or images) or (ask.target is not None and job.size <= ask.target):
        return []
    edited = {edit.entry for edit in (*chosen, *images)}
    first = next(index for index, entry in enumerate(state.kept) if entry.id in edited)
    always = [*images, *stripped(state.kept, first, counter, already)]
    if ask.target is not None:
        chosen = list(_until(job, chosen, job.size - ask.target - _gain(job, always)))
    return [*chosen, *always]


def _images(job: CompactionInput, blanked: Collection[PartAt], date: str) -> list[Edit]:
    """Return the edits of old images, but for those in results that are blanked."""
    state, ask = job.state, job.ask
    edits = merged(state.edits, flat(state.repairs))
    found = reduced(
        state.kept, ask.policy, job.counter, edits=edits, spare=state.pins, scale=job.scale, date=date
    )
    return [edit for edit in found if (edit.entry, edit.part) not in blanked]


def _until(job: CompactionInput, edits: Sequence[Edit], need: int) -> Iterator[Edit]:
    """Yield edits until they save what is needed; of a part larger than that the middle alone goes."""
    for edit in edits:
        if need <= 0:
            return
        spares = edit.saved - need >= job.ask.usable // SPARE
        chosen = (_elided(job, edit, need) if spares else None) or edit
        need -= chosen.saved
        yield chosen


def _elided(job: CompactionInput, edit: Edit, need: int) -> Edit | None:
    """Return an edit that leaves out the middle of a part; None where that does not save what is needed."""
    entry = next(entry for entry in job.state.kept if entry.id == edit.entry)
    original = entry.message.parts[edit.part]
    size = part_tokens(original, job.counter)
    shorter = elide(original, size - need, job.counter, edit.entry if job.ask.recall else "")
    saved = size - part_tokens(shorter, job.counter) if shorter is not None else 0
    return Edit(edit.entry, edit.part, "elided", shorter, saved) if saved >= need else None


def _gain(job: CompactionInput, edits: Sequence[Edit]) -> int:
    """Return the tokens that edits take out beyond those that boundaries made before."""
    return saved_by(merged(job.state.edits, edits)) - saved_by(job.state.edits)


def to_spare(job: CompactionInput, edits: Sequence[Edit]) -> int:
    """Return the tokens by which a prune is more than enough by itself; negative where it is not enough.

    It is where a target is met, or an automatic one ends below the soft trigger.
    """
    ask, gain = job.ask, _gain(job, edits)
    if ask.target is not None:
        return ask.target - (job.size - gain)
    if not edits or not ask.optional:
        return -1
    limits = thresholds(ask.policy, ask.window)
    soft = limits.soft or limits.hard or ask.usable
    return min(soft - 1 - (job.size - gain), gain - job.least_gain)


def noted(job: CompactionInput, edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits of a prune that is enough, with notes of what the results held.

    The notes take what the policy and the room allow.
    """
    ask, counter = job.ask, job.counter
    most = ask.policy.prune_notes.resolve(ask.window, ask.usable)
    budget = min(most, sum(edit.saved for edit in edits) // NOTES_SHARE, to_spare(job, edits))
    blanked = {(edit.entry, edit.part) for edit in edits if edit.kind == "blanked"}
    if budget < NOTES_LEAST or not blanked:
        return list(edits)
    lines = held(job.state.clean(job.state.kept), blanked, budget, counter.count)
    told = [_with_note(edit, lines.get((edit.entry, edit.part)), counter) for edit in edits]
    return told if to_spare(job, told) >= 0 else list(edits)


def _with_note(edit: Edit, line: str | None, counter: Counter) -> Edit:
    """Return an edit whose placeholder says what the result held, unless that makes it no smaller."""
    blank = edit.replacement
    if line is None or not isinstance(blank, ToolResult):
        return edit
    fuller = msgspec.structs.replace(blank, content=(Text(with_held(blank.text, line)),))
    saved = edit.saved + part_tokens(blank, counter) - part_tokens(fuller, counter)
    return msgspec.structs.replace(edit, replacement=fuller, saved=saved) if saved > 0 else edit


def only_pruned(job: CompactionInput, edits: Sequence[Edit]) -> Pruned | Nothing:
    """Return the prune of a policy that does not compact, or why it does nothing."""
    if not edits:
        return Nothing("disabled", "compaction is switched off and nothing can be pruned")
    if job.ask.target is not None:
        return Nothing("disabled", "compaction is switched off and pruning does not suffice")
    return prune_boundary(job, edits)


# ---- shorten


def shortened(job: CompactionInput, edits: Sequence[Edit]) -> Pruned | Nothing:
    """Shorten what is there until it fits, where nothing can be folded; `edits` are those of a prune.

    Raises FloorExceeded where a target is not met.
    """
    state, usable, room = job.state, job.ask.usable, room_of(job, edits)
    before = saved_by(state.edits)
    size = job.size + before  # without any edit
    others = size - saved_by(room.edits) - room.tokens(state.leading)
    all_edits = merged(room.edits, room.lead_edits(usable - others))
    over = size - saved_by(all_edits) - usable
    if over > 0:
        found = room.shrunk(state.kept, over, all_edits)
        lost = _lost_words(job, found)
        if lost:  # they are quoted behind what is elided, which makes it larger
            over += sum(part_tokens(Text(quote), job.counter) for quote in lost.values())
            found = room.shrunk(state.kept, over, all_edits)
            lost = _lost_words(job, found)
        all_edits = merged(all_edits, (_with_quote(job, edit, lost) for edit in found))
    after = size - saved_by(all_edits)
    if job.ask.target is not None and after > job.ask.target:
        raise FloorExceeded(after, job.ask.target, floor_of(job).breakdown)
    older = flat(state.edits)
    new = [edit for edit in flat(all_edits) if edit not in older]
    return prune_boundary(job, new) if new else Nothing("nothing_to_fold")


def _lost_words(job: CompactionInput, edits: Sequence[Edit]) -> dict[PartAt, str]:
    """Return the standing constraints and marks that elisions of the user's words took out, as a quote."""
    marks = {mark.entry: mark.text for mark in job.marks()}
    by_id = {entry.id: entry for entry in job.state.clean(job.state.kept)}
    found: dict[PartAt, str] = {}
    for edit in edits:
        if isinstance(edit.replacement, Text) and by_id[edit.entry].message.is_prompt:
            text = edit.replacement.text
            rules = [fact.text for fact in standing([by_id[edit.entry]])]
            lost = [words for words in (*rules, marks.get(edit.entry, "")) if words not in text]
            if lost:
                quote = "\n".join(f"- {words}" for words in lost)
                found[edit.entry, edit.part] = f"\n[Standing, word for word:]\n{quote}"
    return found


def _with_quote(job: CompactionInput, edit: Edit, lost: dict[PartAt, str]) -> Edit:
    quote = lost.get((edit.entry, edit.part))
    if quote is None or not isinstance(edit.replacement, Text):
        return edit
    text = edit.replacement.text + quote
    more = job.counter.count(text) - job.counter.count(edit.replacement.text)
    return msgspec.structs.replace(edit, replacement=Text(text), saved=edit.saved - more)


# ---- the boundary


def prune_boundary(job: CompactionInput, edits: Sequence[Edit]) -> Pruned | Nothing:
    """Return the boundary of these edits with its receipt, if it gains enough."""
    state = job.state
    gain = _gain(job, edits)
    if gain < job.least_gain:
        return no_gain(gain, job.least_gain)
    boundary = Pruned(id="", parent=None, receipt=Receipt(job.ask.reason), edits=tuple(edits))
    after = state.with_boundary(boundary).view()
    receipt = made_receipt(job, before=state.view(), after=after, edits=edits)
    edited = {edit.entry for edit in edits}
    found = standing(state.clean(entry for entry in state.kept if entry.id in edited))
    if found:
        receipt = msgspec.structs.replace(receipt, constraints=constraint_figures(found))
    return scrub_secrets(msgspec.structs.replace(boundary, receipt=receipt), job)
