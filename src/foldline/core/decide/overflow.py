"""A request that did not fit: whether a fold followed, and the limits of the next request and reply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from foldline.core.log.entries import Compacted, Entry, Pruned, Said
from foldline.core.measure.overflow import NEXT_TRY, Overflow, fitting_output
from foldline.core.measure.window import Window

MARGIN = 1.01  # of a request's size, since part of it is our estimate


def mended_already(path: Sequence[Entry]) -> bool:
    """Whether a fold followed an overflow since the newest prompt, with no reply after it."""
    for entry in reversed(path):
        if isinstance(entry, Compacted | Pruned) and entry.receipt.reason == "overflow":
            return True
        if isinstance(entry, Said) and (entry.message.role == "assistant" or entry.message.is_prompt):
            return False
    return False


def share_left(overflow: Overflow, size: int, usable: int, max_tokens: int | None = None) -> float:
    """Return the fraction of the window, in our tokens, that the provider accepts.

    Computed from the provider's count of the request if it gives one, with room for a reply of `max_tokens`.
    Otherwise a view that fits by our count but was refused is allowed 70% of its size.
    """
    if overflow.asked:
        ratio, reply_tokens = size / overflow.asked, max_tokens or overflow.max_tokens
        if not (overflow.limit and reply_tokens and usable):
            return min(1.0, ratio)
        return min(1.0, ratio, ratio * max(overflow.limit - reply_tokens, overflow.limit // 2) / usable)
    return min(1.0, NEXT_TRY * size / usable) if usable else 1.0


class Shorter(NamedTuple):
    """A shorter reply: `max_tokens` now, `wanted` later; the provider counts `rate` times our tokens."""

    max_tokens: int
    wanted: int
    rate: float

    def fitting(self, size: int, window: Window) -> int | None:
        """Return the `max_tokens` with which a request of `size` of our tokens fits; None if any fits."""
        return fitting_output(math.ceil(MARGIN * self.rate * size), window, self.wanted)


class ReplyLimit:
    """The limit of the next reply of a session: `max_tokens`, or None."""

    def __init__(self) -> None:
        self.max_tokens: int | None = None
        self._shorter: Shorter | None = None  # the reply that made a request fit
        self._estimated = False  # `max_tokens` was computed here and not set by an overflow

    def lift(self) -> None:
        """Remove the limit: a reply came, or the view changed."""
        self.max_tokens = None

    def forget(self) -> None:
        """Remove the limit and what overflows taught, because the model changed."""
        self.max_tokens = self._shorter = None

    def mended(self, shorter: Shorter | None) -> None:
        """Set the shorter reply that an overflow led to; None if something else was done."""
        self._shorter = shorter or self._shorter
        self.max_tokens, self._estimated = shorter.max_tokens if shorter else None, False

    def look_ahead(self, size: int, window: Window) -> None:
        """Compute the limit of the next reply if an earlier overflow needed a shorter one."""
        if self._shorter is not None and (self.max_tokens is None or self._estimated):
            self.max_tokens, self._estimated = self._shorter.fitting(size, window), True
