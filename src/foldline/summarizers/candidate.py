"""A model that may write summaries: its provider, its window, its price."""

from __future__ import annotations

from typing import Final

import msgspec

from foldline.catalogue import Catalogue
from foldline.core.checkpoint.request import SummaryRequest
from foldline.core.decide.price import Price
from foldline.core.measure.overflow import NEXT_TRY, Overflow
from foldline.core.measure.window import Window, share
from foldline.providers.base import Provider

# Only this share of a window is filled, because our count and the provider's differ.
FILLED: Final = 0.9
# A summary may take at most this share of a summariser's window, and its output limit.
SUMMARY_SHARE: Final = 0.25
# A reply may take more of the provider's tokens than of ours, and models that reason first need room.
SLACK, MORE = 1.25, 256
LEAST_ROOM: Final = 512  # tokens: no smaller prompt is tried


class Candidate(msgspec.Struct, frozen=True):
    """A model to ask for summaries; `price` is None if unknown."""

    provider: Provider
    window: Window
    price: Price | None = None

    @property
    def name(self) -> str:
        """Name the model as `provider:model`."""
        return self.provider.name

    def tokens(self, request: SummaryRequest) -> int:
        """Return the most that the summary may take, in Foldline's tokens."""
        return max(1, min(request.tokens, share(self.window.context, SUMMARY_SHARE), self.window.output))

    def max_tokens(self, request: SummaryRequest, size: int | None = None) -> int:
        """Return the cap of the reply to a prompt of `size` tokens.

        After a rejected reply, which may have been cut off, it doubles if there is room.
        """
        window = self.window
        wanted = int(self.tokens(request) * SLACK) + MORE
        cap = max(1, min(wanted, window.output, window.context // 2))
        if not request.attempt or size is None:
            return cap
        free = window.context - int(size / FILLED)
        return max(cap, min(wanted * (1 + request.attempt), window.output, free))

    def room(self, request: SummaryRequest) -> int:
        """Return the tokens that a prompt may take, by our count, next to the reply."""
        window = self.window
        free = window.context - self.max_tokens(request)
        return max(1, share(min(window.input_limit, free), FILLED))


def candidate(provider: Provider, *, window: Window | None = None, price: Price | None = None) -> Candidate:
    """Return a model as a candidate; window and price default to the catalogue's."""
    info = Catalogue().look_up(provider.name)
    return Candidate(provider, window or info.window, price or info.price)


def smaller(sent: int, overflow: Overflow | None) -> int:
    """Return the room for the next attempt after a prompt of `sent` tokens did not fit: always less."""
    share_left = NEXT_TRY
    if overflow is not None and overflow.limit and overflow.asked:
        share_left = min(FILLED, FILLED * (overflow.limit - (overflow.max_tokens or 0)) / overflow.asked)
    return max(0, int(sent * max(share_left, 0.05)))
