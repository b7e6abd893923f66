"""A request that did not fit: whether it was folded away already, and what the next one may take."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.core.log.entries import Compacted, Entry, Pruned, Said
from foldline.core.measure.overflow import Overflow

NEXT_TRY = 0.7  # of a view that fits by our count and did not: what is tried where the provider names no size


def mended_already(path: Sequence[Entry]) -> bool:
    """Whether an overflow was folded away since the newest user message, and no reply has come since."""
    for entry in reversed(path):
        if isinstance(entry, Compacted | Pruned) and entry.receipt.reason == "overflow":
            return True
        if isinstance(entry, Said) and (entry.message.role == "assistant" or entry.message.is_prompt):
            return False
    return False


def share_left(found: Overflow, size: int, usable: int, max_tokens: int | None = None) -> float:
    """Return the part of the window, in our tokens, that is as much as the provider takes.

    By its own count of the request where it gives one, and so that the reply that was asked for, of
    `max_tokens`, has room beside it; else a view that fits by our count, and did not, is taken to be allowed
    70% of itself.
    """
    if found.asked:
        rate, reply = size / found.asked, max_tokens or found.max_tokens
        if not (found.limit and reply and usable):
            return min(1.0, rate)
        return min(1.0, rate, rate * max(found.limit - reply, found.limit // 2) / usable)
    return min(1.0, NEXT_TRY * size / usable) if usable else 1.0
