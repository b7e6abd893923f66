"""Edits by the entry that they change: put together, counted, and those that strip signed thinking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from foldline.core.carried.summaries import sealed_place, text_of
from foldline.core.cut.choice import Edits, add
from foldline.core.cut.thinking import open_loop, signed, strip_thinking
from foldline.core.log.entries import Edit, Said
from foldline.core.measure.tokens import Counter, part_tokens

EditsOf = Mapping[str, Sequence[Edit]]  # entry id -> its edits


def merged(edits: EditsOf, new: Iterable[Edit]) -> Edits:
    """Return edits with new ones put in, each in the place of an older one of the same part."""
    result: Edits = {entry: tuple(found) for entry, found in edits.items()}
    add(result, list(new))
    return result


def flat(edits: EditsOf) -> list[Edit]:
    """Return all edits in one list."""
    return [edit for found in edits.values() for edit in found]


def saved_by(edits: EditsOf) -> int:
    """Return the tokens that edits take out."""
    return sum(edit.saved for edit in flat(edits))


def edited_parts(edits: EditsOf) -> set[tuple[str, int]]:
    """Return the parts that edits change, as (entry id, part index)."""
    return {(edit.entry, edit.part) for edit in flat(edits)}


def stripped(
    kept: Sequence[Said], start: int, counter: Counter, already: AbstractSet[tuple[str, int]]
) -> list[Edit]:
    """Return the edits that take signed thinking out of messages from `start` on.

    An open tool loop is left alone, and so are the parts that are edited `already`.
    """
    return [
        Edit(entry.id, index, "stripped", None, part_tokens(entry.message.parts[index], counter))
        for entry, index in strip_thinking(kept, start, open_loop(kept))
        if (entry.id, index) not in already
    ]


def server_edits(kept: Sequence[Said], joined: Sequence[Said], counter: Counter) -> list[Edit]:
    """Return the edits of a server's compactions: readable ones that are kept go, sealed ones stay alone."""
    out = [(entry, i) for entry in kept for i, part in enumerate(entry.message.parts) if text_of(part)]
    out += [
        (entry, i)
        for entry in joined
        if (place := sealed_place(entry.message)) is not None
        for i in range(len(entry.message.parts))
        if i != place
    ]
    return [
        Edit(entry.id, i, "stripped", None, part_tokens(entry.message.parts[i], counter)) for entry, i in out
    ]


def signed_loop(kept: Sequence[Said]) -> bool:
    """Whether an open tool loop holds thinking that is bound by a signature to what stands before it."""
    return any(signed(entry.message) for entry in kept[open_loop(kept) :])
