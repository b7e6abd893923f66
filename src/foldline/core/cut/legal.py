"""Where a cut may fall: one small class per invariant; a cut is legal where all of them agree.

A cut at index i keeps the messages from i on. Legal indices lie between 0 and the number of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, pairwise
from typing import Any, Protocol, cast

from foldline.core.cut.edits import Edits, EditsOf, is_folded, range_summary
from foldline.core.cut.expansions import expansions
from foldline.core.cut.pairing import Pairing, continues, pair, unanswered_from
from foldline.core.decide.policy import CutRule
from foldline.core.log.entries import Said
from foldline.core.log.messages import Opaque

NO_EDITS: Edits = {}


class Invariant(Protocol):
    """Something that a cut must not break."""

    def forbidden(self, kept: Sequence[Said], pairing: Pairing, /) -> Iterable[range]:
        """Return the stretches of indices at which a cut breaks it, within 0 to the number of messages."""
        ...


class WholeBatches:
    """Calls and results live or die together: no cut inside a batch, nor inside what waits for one."""

    def forbidden(self, kept: Sequence[Said], pairing: Pairing, /) -> Iterable[range]:
        """Return the inside of every batch; all that follows the start of an open one is inside."""
        current = pairing.current
        for batch in pairing.batches:
            end = len(kept) if batch is current else batch.end
            yield range(batch.start + 1, end + 1)


class WholeReplies:
    """A reply that its dialect writes as several messages is kept or folded whole."""

    def forbidden(self, kept: Sequence[Said], _pairing: Pairing, /) -> Iterable[range]:
        """Return each index inside of such a reply."""
        replies = [index for index, entry in enumerate(kept) if entry.message.role == "assistant"]
        for before, index in pairwise(replies):
            if index == before + 1 and continues(kept[index].message, kept[before].message):
                yield range(index, index + 1)


class WholeProviderRuns:
    """A call that the provider runs and its result stay together, also where a paused turn parts them.

    Both are opaque blocks; the result holds the id of its call.
    """

    def forbidden(self, kept: Sequence[Said], _pairing: Pairing, /) -> Iterable[range]:
        """Return the indices behind each such call, up to the message with its result."""
        return (range(call + 1, result + 1) for (call, _), (result, _) in provider_runs(kept))


def provider_runs(kept: Sequence[Said]) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the places of each call that a provider ran and of its result: (message index, part index)."""
    asked: dict[str, tuple[int, int]] = {}
    for index, entry in enumerate(kept):
        for place, part in enumerate(entry.message.parts):
            if isinstance(part, Opaque) and isinstance(part.data, dict):
                data = cast("dict[str, Any]", part.data)
                words = {value for key, value in data.items() if key != "id" and isinstance(value, str)}
                yield from ((asked[name], (index, place)) for name in words & asked.keys())
                if isinstance(data.get("id"), str):
                    asked[data["id"]] = (index, place)


class WholeCommands:
    """The text of a command or a skill stays with what names it: alone it reads as the user's own words."""

    def forbidden(self, kept: Sequence[Said], _pairing: Pairing, /) -> Iterable[range]:
        """Return the index of each such text."""
        return (range(at, at + 1) for at in expansions(kept))


class UnansweredStays:
    """Every message not yet answered stays in the view."""

    def forbidden(self, kept: Sequence[Said], _pairing: Pairing, /) -> Iterable[range]:
        """Return what follows the first unanswered message."""
        yield range(unanswered_from([entry.message for entry in kept]) + 1, len(kept) + 1)


class Progress:
    """A cut folds at least one message."""

    def forbidden(self, _kept: Sequence[Said], _pairing: Pairing, /) -> Iterable[range]:
        """Return the first index alone."""
        yield range(1)


class WholeRanges:
    """A range that a summary replaces is kept or folded whole: its first message has the summary."""

    def __init__(self, edits: EditsOf) -> None:
        self._edits = edits

    def forbidden(self, kept: Sequence[Said], _pairing: Pairing, /) -> Iterable[range]:
        """Return the inside of every such range, from its first message to its last."""
        ends: dict[int, int] = {}
        start = -1
        for index, entry in enumerate(kept):
            edits = self._edits.get(entry.id, ())
            if range_summary(edits):
                start = index
            if is_folded(edits):
                ends[start] = index
        yield from (range(start + 1, end + 1) for start, end in ends.items())


INVARIANTS: tuple[Invariant, ...] = (
    WholeBatches(),
    WholeReplies(),
    WholeProviderRuns(),
    WholeCommands(),
    UnansweredStays(),
    Progress(),
)


def legal_cuts(kept: Sequence[Said], pairing: Pairing | None = None, edits: EditsOf = NO_EDITS) -> list[int]:
    """Return the legal cut indices in ascending order; `edits` are those of the view."""
    pairing = pairing or pair([entry.message for entry in kept])
    rules = (*INVARIANTS, WholeRanges(edits))
    return allowed(len(kept), [one for each in rules for one in each.forbidden(kept, pairing)])


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
