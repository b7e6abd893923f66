"""Where a cut may fall: one small function per invariant; a cut is legal where all of them agree.

A cut at index i keeps the messages from i on. Legal indices lie between 0 and the number of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, compress, pairwise
from typing import Any, cast

from foldline.core.cut.edits import Edits, EditsOf, is_folded, range_summary
from foldline.core.cut.expansions import expansions
from foldline.core.cut.pairing import Pairing, Place, continues, pair, unanswered_from
from foldline.core.decide.policy import CutRule
from foldline.core.log.entries import Said
from foldline.core.log.messages import Opaque, Text, ToolCall
from foldline.core.log.opaque import is_provider_call

NO_EDITS: Edits = {}


Invariant = Callable[[Sequence[Said], Pairing, EditsOf], Iterable[range]]
"""Something that a cut must not break: the stretches of indices at which it does, 0 to all messages."""


def whole_batches(kept: Sequence[Said], pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """Calls and results live or die together: no cut inside a batch, nor behind the start of an open one."""
    current = pairing.current
    for batch in pairing.batches:
        end = len(kept) if batch is current else batch.end
        yield range(batch.start + 1, end + 1)


def whole_replies(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """A reply that its dialect writes as several messages is kept or folded whole."""
    replies = [index for index, entry in enumerate(kept) if entry.message.role == "assistant"]
    for before, index in pairwise(replies):
        if index == before + 1 and continues(kept[index].message, kept[before].message):
            yield range(index, index + 1)


def whole_provider_runs(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """A call that the provider runs and its result stay together, also where a paused turn parts them.

    Both are opaque blocks; the result holds the id of its call. A call that still runs takes what follows it.
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
    """Return the last index inside a provider's call without a result; the calls of a program are inside.

    It is given up where the user speaks, or where the model goes on without it.
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
    """Yield the places of each call that a provider ran and of its result: (message index, part index)."""
    asked: dict[str, Place] = {}
    for index, entry in enumerate(kept):
        for place, part in enumerate(entry.message.parts):
            if isinstance(part, Opaque) and isinstance(part.data, dict):
                data = cast("dict[str, Any]", part.data)
                words = {value for key, value in data.items() if key != "id" and isinstance(value, str)}
                yield from ((asked[name], (index, place)) for name in words & asked.keys())
                asked.update(dict.fromkeys(_names(part), (index, place)))


def _names(part: Opaque) -> list[str]:
    """Return the ids by which later blocks name an opaque one."""
    data = cast("dict[str, Any]", part.data) if isinstance(part.data, dict) else {}
    return [value for key in ("id", "call_id") if isinstance(value := data.get(key), str)]


def whole_commands(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """The text of a command or a skill stays with what names it: alone it reads as the user's own words."""
    return (range(at, at + 1) for at in expansions(kept))


def unanswered_stays(kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """Every message not yet answered stays in the view."""
    yield range(unanswered_from([entry.message for entry in kept]) + 1, len(kept) + 1)


def progress(_kept: Sequence[Said], _pairing: Pairing, _edits: EditsOf) -> Iterator[range]:
    """A cut folds at least one message."""
    yield range(1)


def whole_ranges(kept: Sequence[Said], _pairing: Pairing, edits: EditsOf) -> Iterator[range]:
    """A range that a summary replaces is kept or folded whole: its first message has the summary."""
    ends: dict[int, int] = {}
    start = -1
    for index, entry in enumerate(kept if edits else ()):
        own = edits.get(entry.id, ())
        if range_summary(own):
            start = index
        if is_folded(own):
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
    return allowed(len(kept), chain.from_iterable(each(kept, pairing, edits) for each in INVARIANTS))


def allowed(messages: int, forbidden: Iterable[range]) -> list[int]:
    """Return the cut indices of a list of so many messages that lie in none of the stretches, ascending."""
    legal = bytearray(b"\1") * (messages + 1)
    for stretch in forbidden:
        legal[stretch.start : stretch.stop] = bytes(len(stretch))
    return list(compress(range(messages + 1), legal))


def fits_rule(rule: CutRule, kept: Sequence[Said], index: int) -> bool:
    """Whether a policy's cut rule allows the first kept message; past the end every rule does."""
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
