"""What the summary of one compaction has cost so far, replies that were rejected included."""

from __future__ import annotations

import msgspec

from foldline.core.checkpoint.request import SummaryReply
from foldline.core.log.messages import Usage
from foldline.core.measure.price import added


class Cost(msgspec.Struct, frozen=True):
    """Usage and price (USD) of replies added up, and what the receipt should say of them, each thing once."""

    usage: Usage | None = None
    price: float | None = None
    notes: tuple[str, ...] = ()

    def plus(self, reply: SummaryReply) -> Cost:
        """Return the cost with that of a reply, whatever becomes of it."""
        price = self.price if reply.price is None else (self.price or 0.0) + reply.price
        return Cost(added(self.usage, reply.usage), price, _once(*self.notes, *reply.notes))

    def noting(self, words: str) -> Cost:
        """Return the cost with one more note."""
        return Cost(self.usage, self.price, _once(*self.notes, words))

    def on(self, reply: SummaryReply) -> SummaryReply:
        """Return a reply with all that was spent until it came."""
        return msgspec.structs.replace(reply, usage=self.usage, price=self.price, notes=self.notes)


FREE = Cost()


def _once(*notes: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(notes))
