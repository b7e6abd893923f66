"""What a session has cost so far: its replies, those of left branches included, and its summaries."""

from __future__ import annotations

import msgspec

from foldline.catalogue import cost
from foldline.core.log.entries import Compacted, Noted, Said
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.price import Price, added
from foldline.session.model import Setup
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
    """Add up what a session has cost, each reply at the price of its own model; reads all of its entries."""
    total = Spending()
    earlier, present = list[Message](), list[Message]()
    async for entry in session.store.all(session.id):
        if isinstance(entry, Said) and entry.message.usage is not None:
            present.append(entry.message)
        elif isinstance(entry, Noted) and entry.kind == "model":  # from here on another model replies
            earlier, present = [*earlier, *present], []
        elif isinstance(entry, Compacted):
            total = msgspec.structs.replace(
                total,
                summaries=total.summaries + 1,
                summaries_usd=total.summaries_usd + (entry.receipt.price or 0.0),
            )
    for reply in earlier:
        total = _with_reply(total, reply, _price(reply, session.setup))
    for reply in present:
        total = _with_reply(total, reply, _price(reply, session.setup, usual=session.setup.info.price))
    return total


def _with_reply(total: Spending, reply: Message, price: Price | None) -> Spending:
    usage = reply.usage or Usage()
    return msgspec.structs.replace(
        total,
        replies=total.replies + 1,
        usage=added(total.usage, usage),
        usd=total.usd + (cost(usage, price) if price is not None else 0.0),
        unpriced=total.unpriced + (price is None),
    )


def _price(reply: Message, setup: Setup, usual: Price | None = None) -> Price | None:
    """Return the price of the model that a reply names; `usual` where nothing is known of that name."""
    found = setup.catalogue.look_up(reply.model)
    if found.entry and found.entry == setup.info.entry:  # its name may say more: the user's own price
        return setup.info.price
    return found.price or usual
