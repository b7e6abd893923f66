"""Boundaries that fold nothing: blank old results, or shorten what must stay."""

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

NOTES_SHARE = 4  # a prune's notes take at most 1 / NOTES_SHARE of the tokens it frees
NOTES_LEAST = 64  # tokens: with less, notes are useless


# ---- prune


def pruned(job: CompactionInput) -> list[Edit]:
    """Return the edits of a prune, no more than a target needs, and those of old images.

    Pinned entries stay. A result whose images were reduced may still be blanked.
    """
    state, ask, counter = job.state, job.ask, job.counter
    already = edited_parts(state.edits) | edited_parts(state.repairs)
    reduced_before = {(edit.entry, edit.part) for edit in flat(state.edits) if edit.kind == REDUCED}
    date = ask.now[:10] or "earlier"
    pruning = prune(
        state.kept, ask.policy, ask.window, ask.usable, counter, already=already - reduced_before, date=date
    )
    chosen = [edit for edit in pruning.edits if edit.entry not in state.pins]
    images = _images(job, {(edit.entry, edit.part) for edit in chosen}, date)
    if not (chosen or images) or (ask.target is not None and job.size <= ask.target):
        return []
    edited = {edit.entry for edit in (*chosen, *images)}
    first = next(index for index, entry in enumerate(state.kept) if entry.id in edited)
    other_edits = [*images, *stripped(state.kept, first, counter, already)]
    if ask.target is not None:
        chosen = list(_until(job, chosen, job.size - ask.target - _gain(job, other_edits)))
    return [*chosen, *other_edits]


def _images(job: CompactionInput, blanked: Collection[PartAt], date: str) -> list[Edit]:
    """Return the edits of old images, except in blanked results."""
    state, ask = job.state, job.ask
    edits = merged(state.edits, flat(state.repairs))
    image_edits = reduced(
        state.kept, ask.policy, job.counter, edits=edits, spare=state.pins, scale=job.scale, date=date
    )
    return [edit for edit in image_edits if (edit.entry, edit.part) not in blanked]


def _until(job: CompactionInput, edits: Sequence[Edit], need: int) -> Iterator[Edit]:
    """Yield edits until they save `need` tokens; of a much larger part, only the middle is left out."""
    for edit in edits:
        if need <= 0:
            return
        saves_too_much = edit.saved - need >= job.ask.usable // SPARE
        next_edit = (_elided(job, edit, need) if saves_too_much else None) or edit
        need -= next_edit.saved
        yield next_edit


def _elided(job: CompactionInput, edit: Edit, need: int) -> Edit | None:
    """Return an edit that leaves out the middle of a part; None if it saves less than `need` tokens."""
    entry = next(entry for entry in job.state.kept if entry.id == edit.entry)
    original = entry.message.parts[edit.part]
    size = part_tokens(original, job.counter)
    shorter = elide(original, size - need, job.counter, edit.entry if job.ask.recall else "")
    saved = size - part_tokens(shorter, job.counter) if shorter is not None else 0
    return Edit(edit.entry, edit.part, "elided", shorter, saved) if saved >= need else None


def _gain(job: CompactionInput, edits: Sequence[Edit]) -> int:
    """Return the tokens that new edits save."""
    return saved_by(merged(job.state.edits, edits)) - saved_by(job.state.edits)


def to_spare(job: CompactionInput, edits: Sequence[Edit]) -> int:
    """Return the tokens by which a prune is more than enough; negative if it is not enough.

    It is enough if a target is met, or an automatic prune ends below the soft trigger.
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
    """Return the edits of a sufficient prune, with notes on what the results held.

    The policy and the room limit the notes.
    """
    ask, counter = job.ask, job.counter
    most_tokens = ask.policy.prune_notes.resolve(ask.window, ask.usable)
    budget = min(most_tokens, sum(edit.saved for edit in edits) // NOTES_SHARE, to_spare(job, edits))
    blanked = {(edit.entry, edit.part) for edit in edits if edit.kind == "blanked"}
    if budget < NOTES_LEAST or not blanked:
        return list(edits)
    lines = held(job.state.clean(job.state.kept), blanked, budget, counter.count)
    noted_edits = [_with_note(edit, lines.get((edit.entry, edit.part)), counter) for edit in edits]
    return noted_edits if to_spare(job, noted_edits) >= 0 else list(edits)


def _with_note(edit: Edit, line: str | None, counter: Counter) -> Edit:
    """Return an edit whose placeholder says what the result held, if it still saves tokens."""
    placeholder = edit.replacement
    if line is None or not isinstance(placeholder, ToolResult):
        return edit
    noted_result = msgspec.structs.replace(placeholder, content=(Text(with_held(placeholder.text, line)),))
    saved = edit.saved + part_tokens(placeholder, counter) - part_tokens(noted_result, counter)
    return msgspec.structs.replace(edit, replacement=noted_result, saved=saved) if saved > 0 else edit


def only_pruned(job: CompactionInput, edits: Sequence[Edit]) -> Pruned | Nothing:
    """Return the prune of a policy that does not compact, or `Nothing`."""
    if not edits:
        return Nothing("disabled", "compaction is switched off and nothing can be pruned")
    if job.ask.target is not None:
        return Nothing("disabled", "compaction is switched off and pruning is not enough")
    return prune_boundary(job, edits)


# ---- shorten


def shortened(job: CompactionInput, edits: Sequence[Edit]) -> Pruned | Nothing:
    """Shorten the view until it fits, when nothing can be folded; `edits` are those of a prune.

    Raises FloorExceeded if a target is not met.
    """
    state, usable, room = job.state, job.ask.usable, room_of(job, edits)
    before = saved_by(state.edits)
    size = job.size + before  # without any edit
    other_tokens = size - saved_by(room.edits) - room.tokens(state.leading)
    all_edits = merged(room.edits, room.lead_edits(usable - other_tokens))
    over = size - saved_by(all_edits) - usable
    if over > 0:
        elisions = room.shrunk(state.kept, over, all_edits)
        lost = _lost_words(job, elisions)
        if lost:  # their quotes make the elided parts larger
            over += sum(part_tokens(Text(quote), job.counter) for quote in lost.values())
            elisions = room.shrunk(state.kept, over, all_edits)
            lost = _lost_words(job, elisions)
        all_edits = merged(all_edits, (_with_quote(job, edit, lost) for edit in elisions))
    after = size - saved_by(all_edits)
    if job.ask.target is not None and after > job.ask.target:
        raise FloorExceeded(after, job.ask.target, floor_of(job).breakdown)
    earlier = flat(state.edits)
    new_edits = [edit for edit in flat(all_edits) if edit not in earlier]
    return prune_boundary(job, new_edits) if new_edits else Nothing("nothing_to_fold")


def _lost_words(job: CompactionInput, edits: Sequence[Edit]) -> dict[PartAt, str]:
    """Return quotes of the standing constraints and marks that elisions of the user's words removed."""
    marks = {mark.entry: mark.text for mark in job.marks()}
    by_id = {entry.id: entry for entry in job.state.clean(job.state.kept)}
    quotes: dict[PartAt, str] = {}
    for edit in edits:
        if isinstance(edit.replacement, Text) and by_id[edit.entry].message.is_prompt:
            text = edit.replacement.text
            rules = [fact.text for fact in standing([by_id[edit.entry]])]
            lost_words = [words for words in (*rules, marks.get(edit.entry, "")) if words not in text]
            if lost_words:
                quote = "\n".join(f"- {words}" for words in lost_words)
                quotes[edit.entry, edit.part] = f"\n[Standing, word for word:]\n{quote}"
    return quotes


def _with_quote(job: CompactionInput, edit: Edit, quotes: dict[PartAt, str]) -> Edit:
    quote = quotes.get((edit.entry, edit.part))
    if quote is None or not isinstance(edit.replacement, Text):
        return edit
    text = edit.replacement.text + quote
    more = job.counter.count(text) - job.counter.count(edit.replacement.text)
    return msgspec.structs.replace(edit, replacement=Text(text), saved=edit.saved - more)


# ---- the boundary


def prune_boundary(job: CompactionInput, edits: Sequence[Edit]) -> Pruned | Nothing:
    """Return the boundary of these edits with its receipt, or `Nothing` if it gains too little."""
    state = job.state
    gain = _gain(job, edits)
    if gain < job.least_gain:
        return no_gain(gain, job.least_gain)
    boundary = Pruned(id="", parent=None, receipt=Receipt(job.ask.reason), edits=tuple(edits))
    receipt = made_receipt(job, boundary, state.with_boundary(boundary))
    edited = {edit.entry for edit in edits}
    constraints = standing(state.clean(entry for entry in state.kept if entry.id in edited))
    if constraints:
        receipt = msgspec.structs.replace(receipt, constraints=constraint_figures(constraints))
    return scrub_secrets(msgspec.structs.replace(boundary, receipt=receipt), job)
