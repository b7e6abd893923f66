"""Where a cut is legal: one function per invariant, and every one must allow it.

A cut at index i keeps the messages from i on. Legal indices lie between 0 and the number of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, compress, pairwise
from typing import Any, cast

from foldline.core.cut.edits import Edits, EditsOf, is_folded, range_summary
from foldline.core.cut.notes import expansions
from foldline.core.cut.pairing import Pairing, Place, continues, pair, unanswered_from
from foldline.core.decide.policy import CutRule
from foldline.core.log.entries import Said
from foldline.core.log.messages import Opaque, Text, ToolCall
from foldline.core.log.opaque import is_provider_call

NO_EDITS: Edits = {}


Invariant = Callable[[Sequence[Said], Pairing, EditsOf], Iterable[range]]
"""Yields the ranges of cut indices that would break the invariant, from 0 to the number of messages."""


def whole_batches(kept: Sequence[Said], pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """Calls and results stay together: no cut inside a batch, nor after the start of an open one."""
    current = pairing.current
    for batch in pairing.batches:
        end = len(kept) if batch is current else batch.end
        yield range(batch.start + 1, end + 1)


def whole_replies(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """A reply that its dialect splits into several messages is kept or folded whole."""
    replies = [index for index, entry in enumerate(kept) if entry.message.role == "assistant"]
    for before, index in pairwise(replies):
        if index == before + 1 and continues(kept[index].message, kept[before].message):
            yield range(index, index + 1)


def whole_provider_runs(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """A call that the provider runs stays with its result, even if a paused turn separates them.

    Both are opaque blocks; the result holds the id of its call. What follows a call that still runs stays
    with it.
    """
    ended: set[Place] = set()
    for call, result in provider_runs(kept):
        ended.add(call)
        yield range(call[0] + 1, result[0] + 1)
    for index, entry in enumerate(kept):
        for place, part in enumerate(entry.message.parts):
            if isinstance(part, Opaque) and is_provider_call(part) and (index, place) not in ended:
                yield range(index + 1, _run_end(kept, index, _names(part)) + 1)


def _run_end(kept: Sequence[Said], start: int, names: Collection[str]) -> int:
    """Return the last index inside a provider's call without a result, the calls of its program included.

    The call is abandoned when the user speaks or the model continues without it.
    """
    end = start
    for index in range(start + 1, len(kept)):
        message = kept[index].message
        if message.is_prompt:
            return end
        if message.role == "assistant":
            raw = message.native.raw if message.native is not None else b""
            if any(f'"{name}"'.encode() in raw for name in names):
                end = index
            elif any(isinstance(part, Text | ToolCall) for part in message.parts):
                return end
    return len(kept)


def provider_runs(kept: Sequence[Said]) -> Iterator[tuple[Place, Place]]:
    """Yield the places of each call that a provider ran and its result: (message index, part index)."""
    named: dict[str, Place] = {}
    for index, entry in enumerate(kept):
        for place, part in enumerate(entry.message.parts):
            if isinstance(part, Opaque) and isinstance(part.data, dict):
                data = cast("dict[str, Any]", part.data)
                values = {value for key, value in data.items() if key != "id" and isinstance(value, str)}
                yield from ((named[name], (index, place)) for name in values & named.keys())
                named.update(dict.fromkeys(_names(part), (index, place)))


def _names(part: Opaque) -> list[str]:
    """Return the ids by which later blocks refer to an opaque one."""
    data = cast("dict[str, Any]", part.data) if isinstance(part.data, dict) else {}
    return [value for key in ("id", "call_id") if isinstance(value := data.get(key), str)]


def whole_commands(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """The text of a command or skill stays with the message that names it: alone it looks like a prompt."""
    return (range(at, at + 1) for at in expansions(kept))


def unanswered_stays(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """Unanswered messages stay in the view."""
    yield range(unanswered_from([entry.message for entry in kept]) + 1, len(kept) + 1)


def progress(_kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """A cut folds at least one message."""
    yield range(1)


def whole_ranges(kept: Sequence[Said], _pairing: Pairing, edits: EditsOf) -> Iterator[range]:
    """A range that a summary replaces is kept or folded whole: its first message holds the summary."""
    ends: dict[int, int] = {}
    start = -1
    for index, entry in enumerate(kept if edits else ()):
        entry_edits = edits.get(entry.id, ())
        if range_summary(entry_edits):
            start = index
        if is_folded(entry_edits):
            ends[start] = index
    yield from (range(start + 1, end + 1) for start, end in ends.items())


INVARIANTS: tuple[Invariant, ...] = (
    whole_batches,
    whole_replies,
    whole_provider_runs,
    whole_commands,
    unanswered_stays,
    progress,
    whole_ranges,
)


def legal_cuts(kept: Sequence[Said], pairing: Pairing | None = None, edits: EditsOf = NO_EDITS) -> list[int]:
    """Return the legal cut indices in ascending order; `edits` are those of the view."""
    pairing = pairing or pair([entry.message for entry in kept])
    return allowed(
        len(kept), chain.from_iterable(invariant(kept, pairing, edits) for invariant in INVARIANTS)
    )


def allowed(messages: int, forbidden: Iterable[range]) -> list[int]:
    """Return the cut indices of a list of `messages` that are in no `forbidden` range, ascending."""
    legal = bytearray(b"\1") * (messages + 1)
    for stretch in forbidden:
        legal[stretch.start : stretch.stop] = bytes(len(stretch))
    return list(compress(range(messages + 1), legal))


def fits_rule(rule: CutRule, kept: Sequence[Said], index: int) -> bool:
    """Whether a cut rule allows `index` as the first kept message; every rule allows the end."""
    if index >= len(kept) or rule == "any":
        return True
    message = kept[index].message
    match rule:
        case "turn" | "user":
            return message.is_prompt
        case "user_or_plain_assistant":
            return message.is_prompt or (message.role == "assistant" and not message.calls)
        case "not_result":
            return not message.results
