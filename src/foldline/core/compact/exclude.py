"""Taking a message, or one part of it, out of the context by hand: what may go, and the boundary of it."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from foldline.core.carried.summaries import is_sealed, text_of
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.receipt import made_receipt
from foldline.core.cut.edits import edited_parts, is_folded, merged
from foldline.core.cut.exclude import exclusion, is_blank, is_excluded, left_of
from foldline.core.cut.pairing import unanswered_from
from foldline.core.cut.thinking import open_loop, signed, stripped
from foldline.core.log.entries import Edit, Pruned, Receipt, Said
from foldline.core.log.messages import ToolCall
from foldline.errors import InputError

_KINDS: Final = {"tool_call": "call", "tool_result": "result", "media": "image or file", "opaque": "block"}


def exclude(job: CompactionInput, at: str, part: int | None = None) -> Pruned:
    """Return the boundary, without an id, that takes a message of the view out, or one part of it, from 0.

    What cannot stand without it goes too. Raises InputError, with why, for what has to stay.
    """
    state, counter = job.state, job.counter
    said = [*state.quoted, *state.kept]
    index = _index(job, said, at)
    chosen = [(index, place) for place in _chosen(said[index], part)]
    edits = exclusion(said, chosen, state.edits, counter)
    _check(job, said, edits)
    first = min(number for number, entry in enumerate(said) if any(edit.entry == entry.id for edit in edits))
    first -= len(state.quoted)
    known = edited_parts({"": tuple(edits)}) | edited_parts(state.edits) | edited_parts(state.repairs)
    edits += stripped(state.kept, max(first, 0), counter, known)
    boundary = Pruned(id="", parent=None, receipt=Receipt("manual"), edits=tuple(edits))
    after = state.with_boundary(boundary).view()
    receipt = made_receipt(job, before=state.view(), after=after, edits=edits)
    notes = (*receipt.notes, _note(said, edits))
    return msgspec.structs.replace(boundary, receipt=msgspec.structs.replace(receipt, notes=notes))


def _index(job: CompactionInput, said: Sequence[Said], at: str) -> int:
    """Return where a message stands; raises InputError for one that is not there, or is the system's."""
    state = job.state
    index = next((number for number, entry in enumerate(said) if entry.id == at), None)
    if any(entry.id == at for entry in state.leading) or (
        index is not None and said[index].message.role in ("system", "developer")
    ):
        raise InputError(f"entry {at} holds for the whole session, as a system prompt does: it has to stay")
    if index is None and is_excluded(at, state.edits):
        raise InputError(f"entry {at} is out of the context already")
    if index is None or is_folded(state.edits.get(at, ())):
        raise InputError(f"entry {at} is not in the view: undo the fold that took it, then take it out")
    return index


def _chosen(entry: Said, part: int | None) -> list[int]:
    """Return the parts to take out; raises InputError where there is none, or none of that number."""
    parts = entry.message.parts
    there = [place for place, one in enumerate(parts) if not is_blank(one)]
    if not there:
        raise InputError(f"entry {entry.id} says nothing: there is nothing to take out")
    if part is not None and part not in there:
        numbers = ", ".join(map(str, there))
        raise InputError(f"entry {entry.id} has no part {part} in the context; it has {numbers}")
    chosen = there if part is None else [part]
    if any(text_of(parts[place]) or is_sealed(parts[place]) for place in chosen):
        raise InputError(f"entry {entry.id} holds a summary by the provider's server: it has to stay")
    return chosen


def _check(job: CompactionInput, said: Sequence[Said], edits: Sequence[Edit]) -> None:
    """Raise InputError for what has to stay: pinned, not answered yet, or bound by signed thinking."""
    state, touched = job.state, {edit.entry for edit in edits}
    if pinned := next((pin for pin in state.pins if pin in touched), None):
        raise InputError(f"entry {pinned} is pinned: unpin it, then take it out")
    by_id = {entry.id: entry for entry in said}
    parts = (by_id[edit.entry].message.parts[edit.part] for edit in edits)
    if any(isinstance(part, ToolCall) and part.id in state.open_calls for part in parts):
        raise InputError("a call of it still waits for its result: take it out when that is there")
    now = merged(state.edits, edits)
    waiting = state.kept[unanswered_from([entry.message for entry in state.kept]) :]
    if waiting and all(left_of(entry, now) is None for entry in waiting):
        raise InputError("nothing would be left for the model to answer: rewind, to say it otherwise")
    first = next((number for number, entry in enumerate(state.kept) if entry.id in touched), 0)
    if any(signed(entry.message) for entry in state.kept[max(first, open_loop(state.kept)) :]):
        raise InputError(
            "the thinking of an unfinished tool loop is signed, with all that comes before it: take it out "
            "when the model has answered"
        )


def _note(said: Sequence[Said], edits: Iterable[Edit]) -> str:
    """Say what was taken out, without its words."""
    roles = {entry.id: entry.message for entry in said}
    lines: list[str] = []
    for entry, message in roles.items():
        tags = [str(message.parts[edit.part].__struct_config__.tag) for edit in edits if edit.entry == entry]
        if tags:
            kinds = Counts(_KINDS.get(tag, tag) for tag in tags)
            what = ", ".join(f"{kind} x{count}" if count > 1 else kind for kind, count in kinds.items())
            lines.append(f"{what} of entry {entry} ({message.role})")
    return f"taken out of the context by the user: {'; '.join(lines)}"
