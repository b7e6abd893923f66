"""What the summary of one compaction has cost so far, replies that were rejected included."""

from __future__ import annotations

import msgspec

from foldline.core.checkpoint.request import SummaryReply
from foldline.core.log.messages import Usage
from foldline.core.measure.price import added


class Cost:
    """Sums up usage and price of replies, and what the receipt should note about them."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.price: float | None = None
        self._notes: dict[str, None] = {}

    def take(self, reply: SummaryReply) -> None:
        """Count a reply, whatever becomes of it."""
        self.usage = added(self.usage, reply.usage)
        if reply.price is not None:
            self.price = (self.price or 0.0) + reply.price
        self._notes.update(dict.fromkeys(reply.notes))

    def note(self, words: str) -> None:
        """Note something once."""
        self._notes[words] = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the receipt should say, in the order in which it happened."""
        return tuple(self._notes)

    def on(self, reply: SummaryReply) -> SummaryReply:
        """Return a reply with all that was spent until it came."""
        return msgspec.structs.replace(reply, usage=self.usage, price=self.price, notes=self.notes)
