"""Take a message, or one part of it, out of the context by hand."""

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
    """Return the boundary, without an id, that takes out a message of the view, or its part number `part`.

    Parts that need it go too. Raises InputError, with the reason, for what must stay.
    """
    state, counter = job.state, job.counter
    messages = [*state.quoted, *state.kept]
    index = _find(job, messages, at)
    chosen = [(index, place) for place in _choose_parts(messages[index], part)]
    edits = exclusion(messages, chosen, state.edits, counter)
    _check_removable(job, messages, edits)
    first = min(
        number for number, entry in enumerate(messages) if any(edit.entry == entry.id for edit in edits)
    )
    first -= len(state.quoted)
    edited = edited_parts({"": tuple(edits)}) | edited_parts(state.edits) | edited_parts(state.repairs)
    edits += stripped(state.kept, max(first, 0), counter, edited)
    boundary = Pruned(id="", parent=None, receipt=Receipt("manual"), edits=tuple(edits))
    receipt = made_receipt(job, boundary, state.with_boundary(boundary))
    notes = (*receipt.notes, _note(messages, edits))
    return msgspec.structs.replace(boundary, receipt=msgspec.structs.replace(receipt, notes=notes))


def _find(job: CompactionInput, messages: Sequence[Said], at: str) -> int:
    """Return the index of a message; raises InputError if it is not there or is a system message."""
    state = job.state
    index = next((number for number, entry in enumerate(messages) if entry.id == at), None)
    if any(entry.id == at for entry in state.leading) or (
        index is not None and messages[index].message.role in ("system", "developer")
    ):
        raise InputError(f"entry {at} applies to the whole session, like a system prompt: it must stay")
    if index is None and is_excluded(at, state.edits):
        raise InputError(f"entry {at} was already taken out of the context")
    if index is None or is_folded(state.edits.get(at, ())):
        raise InputError(f"entry {at} is not in the view: undo the fold that removed it, then take it out")
    return index


def _choose_parts(entry: Said, part: int | None) -> list[int]:
    """Return the parts to take out; raises InputError if there is none, or no part of that number."""
    parts = entry.message.parts
    shown = [place for place, item in enumerate(parts) if not is_blank(item)]
    if not shown:
        raise InputError(f"entry {entry.id} is empty: there is nothing to take out")
    if part is not None and part not in shown:
        numbers = ", ".join(map(str, shown))
        raise InputError(f"entry {entry.id} has no part {part} in the context; it has {numbers}")
    chosen = shown if part is None else [part]
    if any(text_of(parts[place]) or is_sealed(parts[place]) for place in chosen):
        raise InputError(f"entry {entry.id} holds a summary by the provider's server: it must stay")
    return chosen


def _check_removable(job: CompactionInput, messages: Sequence[Said], edits: Sequence[Edit]) -> None:
    """Raise InputError for what must stay: pinned, unanswered, or bound by signed thinking."""
    state, touched = job.state, {edit.entry for edit in edits}
    if pinned := next((pin for pin in state.pins if pin in touched), None):
        raise InputError(f"entry {pinned} is pinned: unpin it, then take it out")
    by_id = {entry.id: entry for entry in messages}
    parts = (by_id[edit.entry].message.parts[edit.part] for edit in edits)
    if any(isinstance(part, ToolCall) and part.id in state.open_calls for part in parts):
        raise InputError("one of its calls still waits for its result: take it out when the result is there")
    merged_edits = merged(state.edits, edits)
    waiting = state.kept[unanswered_from([entry.message for entry in state.kept]) :]
    if waiting and all(left_of(entry, merged_edits) is None for entry in waiting):
        raise InputError("nothing would be left for the model to answer: to say it differently, rewind")
    first = next((index for index, entry in enumerate(state.kept) if entry.id in touched), 0)
    if any(signed(entry.message) for entry in state.kept[max(first, open_loop(state.kept)) :]):
        raise InputError(
            "an unfinished tool loop has signed thinking, which is bound to what comes before it: "
            "take this out when the model has answered"
        )


def _note(entries: Sequence[Said], edits: Iterable[Edit]) -> str:
    """Return the note on what was taken out, without its words."""
    messages = {entry.id: entry.message for entry in entries}
    lines: list[str] = []
    for entry, message in messages.items():
        tags = [str(message.parts[edit.part].__struct_config__.tag) for edit in edits if edit.entry == entry]
        if tags:
            kinds = Counts(_KINDS.get(tag, tag) for tag in tags)
            counted = ", ".join(f"{kind} x{count}" if count > 1 else kind for kind, count in kinds.items())
            lines.append(f"{counted} of entry {entry} ({message.role})")
    return f"taken out of the context by the user: {'; '.join(lines)}"
