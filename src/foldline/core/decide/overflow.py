"""A request that did not fit: was it folded away already, what may the next one and its reply take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from foldline.core.log.entries import Compacted, Entry, Pruned, Said
from foldline.core.measure.overflow import NEXT_TRY, Overflow, fitting_output
from foldline.core.measure.window import Window

MARGIN = 1.01  # of a request's size: what came since the provider counted it is our estimate


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


class Shorter(NamedTuple):
    """A reply's room: `max_tokens` now, `wanted` later; the provider counts `rate` times our tokens."""

    max_tokens: int
    wanted: int
    rate: float

    def fitting(self, size: int, window: Window) -> int | None:
        """Return the `max_tokens` with which a request of `size` of our tokens fits; None: any will do."""
        return fitting_output(math.ceil(MARGIN * self.rate * size), window, self.wanted)


class ReplyLimit:
    """The most tokens that the next reply of a session may take: `max_tokens`, None for no limit."""

    def __init__(self) -> None:
        self.max_tokens: int | None = None
        self._shorter: Shorter | None = None  # the reply that made a request fit
        self._estimated = False  # `max_tokens` was worked out here, it was not the answer to an overflow

    def lift(self) -> None:
        """End the limit: a reply came, or the view is another."""
        self.max_tokens = None

    def forget(self) -> None:
        """End the limit, and forget what an overflow taught: the model is another."""
        self.max_tokens = self._shorter = None

    def mended(self, shorter: Shorter | None) -> None:
        """Take over what an overflow led to: a shorter reply, or none where something else was done."""
        self._shorter = shorter or self._shorter
        self.max_tokens, self._estimated = shorter.max_tokens if shorter else None, False

    def look_ahead(self, size: int, window: Window) -> None:
        """Work out the limit of the next reply, if a shorter one had to mend an overflow before."""
        if self._shorter is not None and (self.max_tokens is None or self._estimated):
            self.max_tokens, self._estimated = self._shorter.fitting(size, window), True
