"""Shortening what must stay: elisions in kept messages, until they fit.

Results of tools may be shortened freely; any other message only where it is larger than a tenth of what is
usable. The largest parts give first: every part is cut down to one common size. Where a message holds a turn
of several steps, all that it did before the last one may be shortened as results are.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import msgspec

from foldline.core.cut.edits import EditsOf, PartAt
from foldline.core.cut.elide import elide
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.log.steps import last_step
from foldline.core.measure.tokens import Counter, part_tokens

RESULT_FLOOR = 60  # tokens that a shortened result keeps at least
LARGE = 10  # a message larger than usable / LARGE may be elided


class _Candidate(msgspec.Struct):
    """A part that may be shortened, as it is after the edits made before, which `saved` some tokens of it."""

    entry: str
    index: int
    part: Part
    tokens: int
    floor: int
    result: bool
    saved: int


def most_saved(
    entry: Said,
    usable: int,
    counter: Counter,
    *,
    edits: EditsOf,
    out: AbstractSet[PartAt],
) -> int:
    """Return by how many tokens a message gets smaller when it is elided as far as it may be."""
    return _saving(_candidates([entry], usable, counter, edits, frozenset(), out=out), 0)


def shrink(
    entries: Sequence[Said],
    need: int,
    *,
    usable: int,
    counter: Counter,
    edits: EditsOf,
    spare: frozenset[str] = frozenset(),
    out: AbstractSet[PartAt] = frozenset(),
    least: int | None = None,
    recall: bool = True,
) -> tuple[Edit, ...]:
    """Return elisions that make the entries at least `need` tokens smaller, as far as they may be elided.

    `edits` are those made before: a part that has one is taken as it is then. `spare` are entries that no
    edit may touch (pinned ones), `out` the parts that the view leaves out: they cannot get smaller. What is
    no result keeps `least` (default: usable / LARGE); `recall`: whether markers say how to get back what is
    left out.
    """
    found = _candidates(entries, usable, counter, edits, spare, out=out, least=least)
    results = [candidate for candidate in found if candidate.result]
    chosen = results if _saving(results, 0) >= need else found
    level = _level(chosen, need)
    made: list[Edit] = []
    for one in chosen:
        limit = max(level, one.floor)
        if one.tokens <= limit:
            continue
        shorter = elide(one.part, limit, counter, one.entry if recall else "")
        if shorter is not None:
            saved = one.tokens - part_tokens(shorter, counter)
            if saved > 0:
                made.append(Edit(one.entry, one.index, "elided", shorter, one.saved + saved))
    return tuple(made)


def _saving(candidates: Sequence[_Candidate], level: int) -> int:
    return sum(max(0, one.tokens - max(level, one.floor)) for one in candidates)


def _level(candidates: Sequence[_Candidate], need: int) -> int:
    """Return the largest common size at which enough is saved."""
    low, high = 0, max((one.tokens for one in candidates), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if _saving(candidates, middle) >= need:
            low = middle
        else:
            high = middle - 1
    return low


def _candidates(
    entries: Sequence[Said],
    usable: int,
    counter: Counter,
    edits: EditsOf,
    spare: frozenset[str],
    *,
    out: AbstractSet[PartAt],
    least: int | None = None,
) -> list[_Candidate]:
    found: list[_Candidate] = []
    for entry in entries:
        if entry.id in spare:
            continue
        edited = {edit.part: edit for edit in edits.get(entry.id, ())}
        large = entry.tokens > usable // LARGE
        done = last_step(entry.message) if large and entry.message.results else 0
        for index, original in enumerate(entry.message.parts):
            part = edited[index].replacement if index in edited else original
            result = isinstance(part, ToolResult)
            elidable = result or (large and _may_elide(part))
            if part is None or not elidable or (entry.id, index) in out:
                continue
            kept = usable // LARGE if least is None else least
            floor = RESULT_FLOOR if result or index < done else max(kept, RESULT_FLOOR)
            tokens = part_tokens(part, counter)
            if tokens > floor:
                saved = edited[index].saved if index in edited else 0
                found.append(_Candidate(entry.id, index, part, tokens, floor, result, saved))
    return found


def _may_elide(part: Part | None) -> bool:
    return isinstance(part, Text | ToolCall) or (isinstance(part, Thinking) and part.signature is None)
