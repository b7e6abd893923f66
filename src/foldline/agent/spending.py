"""What a session has cost so far: its replies, those of left branches included, and its summaries."""

from __future__ import annotations

import msgspec

from foldline.catalogue import cost
from foldline.core.log.entries import Compacted, Said
from foldline.core.log.messages import Usage
from foldline.core.measure.price import added
from foldline.session.session import Session


class Spending(msgspec.Struct, frozen=True):
    """Usage and dollars of replies and of summaries; `unpriced` counts replies without a known price."""

    replies: int = 0
    usage: Usage | None = None
    usd: float = 0.0
    summaries: int = 0
    summaries_usd: float = 0.0
    unpriced: int = 0

    @property
    def words(self) -> str:
        """The figures in two lines."""
        usage = self.usage or Usage()
        read = f"{usage.input:,} new, {usage.cache_read:,} cached and {usage.cache_write:,} newly cached"
        unknown = f"; the price of {self.unpriced} replies is not known" if self.unpriced else ""
        return (
            f"${self.usd + self.summaries_usd:.4f} in all: {self.replies} replies ${self.usd:.4f}, "
            f"{self.summaries} summaries ${self.summaries_usd:.4f}{unknown}.\n\n"
            f"Tokens read: {read}; written: {usage.output:,}."
        )


async def spent(session: Session) -> Spending:
    """Add up what a session has cost; reads all of its entries."""
    total = Spending()
    catalogue = session.setup.catalogue
    async for entry in session.store.all(session.id):
        if isinstance(entry, Said) and (usage := entry.message.usage) is not None:
            model = entry.message.model
            price = session.setup.info.price or (catalogue.look_up(model).price if model else None)
            total = msgspec.structs.replace(
                total,
                replies=total.replies + 1,
                usage=added(total.usage, usage),
                usd=total.usd + (cost(usage, price) if price is not None else 0.0),
                unpriced=total.unpriced + (price is None),
            )
        elif isinstance(entry, Compacted):
            total = msgspec.structs.replace(
                total,
                summaries=total.summaries + 1,
                summaries_usd=total.summaries_usd + (entry.receipt.price or 0.0),
            )
    return total
