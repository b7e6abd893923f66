"""Where a cut may fall: one small class per invariant; a cut is legal where all of them agree.

A cut at index i keeps the messages from i on. Legal indices lie between 0 and the number of messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from foldline.core.decide.policy import CutRule
from foldline.core.fold.pairing import Pairing, pair, unanswered_from
from foldline.core.log.entries import Said


class Invariant(Protocol):
    """Something that a cut must not break."""

    def legal(self, kept: Sequence[Said], pairing: Pairing, /) -> set[int]:
        """Return the indices at which a cut does not break it."""
        ...


class WholeBatches:
    """Calls and results live or die together: no cut inside a batch, nor inside what waits for one."""

    def legal(self, kept: Sequence[Said], pairing: Pairing, /) -> set[int]:
        """Return the indices that split no batch."""
        inside: set[int] = set()
        for batch in pairing.batches:
            end = len(kept) if batch is pairing.current else batch.end
            inside.update(range(batch.start + 1, end + 1))
        return set(range(len(kept) + 1)) - inside


class UnansweredStays:
    """Every message not yet answered stays in the view."""

    def legal(self, kept: Sequence[Said], _pairing: Pairing, /) -> set[int]:
        """Return the indices up to the first unanswered message."""
        return set(range(unanswered_from([entry.message for entry in kept]) + 1))


class Progress:
    """A cut folds at least one message."""

    def legal(self, kept: Sequence[Said], _pairing: Pairing, /) -> set[int]:
        """Return every index but the first."""
        return set(range(1, len(kept) + 1))


INVARIANTS: tuple[Invariant, ...] = (WholeBatches(), UnansweredStays(), Progress())


def legal_cuts(kept: Sequence[Said], pairing: Pairing | None = None) -> list[int]:
    """Return the legal cut indices in ascending order."""
    pairing = pairing or pair([entry.message for entry in kept])
    first, *rest = (invariant.legal(kept, pairing) for invariant in INVARIANTS)
    return sorted(first.intersection(*rest))


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
