"""What a session has cost so far: its replies, those of left branches included, and its summaries."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import msgspec

from foldline.catalogue import cost
from foldline.core.log.entries import Compacted, Entry, Noted, Said
from foldline.core.log.messages import Usage
from foldline.core.measure.price import Price, added
from foldline.session.model import Setup
from foldline.session.session import Session


class Spending(msgspec.Struct, frozen=True):
    """Usage and dollars of replies and of summaries.

    `unpriced` counts replies without a known price, `summaries_unpriced` such summaries: those of another
    agent, and those of a model without one.
    """

    replies: int = 0
    usage: Usage | None = None
    usd: float = 0.0
    summaries: int = 0
    summaries_usd: float = 0.0
    unpriced: int = 0
    summaries_unpriced: int = 0

    @property
    def words(self) -> str:
        """The figures in two lines."""
        usage = self.usage or Usage()
        read = f"{usage.input:,} new, {usage.cache_read:,} cached and {usage.cache_write:,} newly cached"
        counted = ((self.unpriced, "replies"), (self.summaries_unpriced, "summaries"))
        unknown = "".join(f"; the price of {n} {what} is not known" for n, what in counted if n)
        return (
            f"${self.usd + self.summaries_usd:.4f} in all: {self.replies} replies ${self.usd:.4f}, "
            f"{self.summaries} summaries ${self.summaries_usd:.4f}{unknown}.\n\n"
            f"Tokens read: {read}; written: {usage.output:,}."
        )


class _Counted:
    """What was counted of a session: how many entries, the replies priced for good, and those since.

    A reply that does not name its model has the price of the session's, which a later note may change: such
    replies are priced anew each time.
    """

    def __init__(self) -> None:
        self.entries = 0
        self.total = Spending()
        self.present: list[tuple[str | None, Usage]] = []

    def take(self, entry: Entry, session: Session) -> None:
        self.entries += 1
        if isinstance(entry, Said) and entry.message.usage is not None:
            self.present.append((entry.message.model, entry.message.usage))
        elif isinstance(entry, Noted) and entry.kind == "model":  # from here on another model replies
            self.total = _priced(self.total, self.present, session.setup)
            self.present = []
        elif isinstance(entry, Compacted):
            receipt = entry.receipt
            free = receipt.reason != "imported" and receipt.summarizer in ("", "offline", "by hand")
            self.total = msgspec.structs.replace(
                self.total,
                summaries=self.total.summaries + 1,
                summaries_usd=self.total.summaries_usd + (receipt.price or 0.0),
                summaries_unpriced=self.total.summaries_unpriced + (receipt.price is None and not free),
            )


_known: WeakKeyDictionary[Session, _Counted] = WeakKeyDictionary()


async def spent(session: Session) -> Spending:
    """Add up what a session has cost, each reply at the price of its own model.

    Reads all of its entries at first, and later only those that are new.
    """
    info = await session.store.info(session.id)
    entries = info.entries if info else 0
    read = _known.get(session)
    if read is None or read.entries > entries:  # purged, and begun anew
        read = _Counted()
    start = read.entries
    new = [entry async for entry in session.store.all(session.id, after=start)]
    for entry in new if read.entries == start else ():  # another call may have read them meanwhile
        read.take(entry, session)
    _known[session] = read
    return _priced(read.total, read.present, session.setup, usual=session.setup.info.price)


def _priced(
    total: Spending, replies: Sequence[tuple[str | None, Usage]], setup: Setup, usual: Price | None = None
) -> Spending:
    """Return a total with replies in it: each the model that it names, and its usage."""
    prices = {model: _price(model, setup, usual) for model, _ in replies}
    usage = total.usage
    for _, one in replies:
        usage = added(usage, one)
    known = [(price, one) for model, one in replies if (price := prices[model]) is not None]
    return msgspec.structs.replace(
        total,
        replies=total.replies + len(replies),
        usage=usage,
        usd=total.usd + sum(cost(one, price) for price, one in known),
        unpriced=total.unpriced + len(replies) - len(known),
    )


def _price(model: str | None, setup: Setup, usual: Price | None = None) -> Price | None:
    """Return the price of the model that a reply names; `usual` where nothing is known of that name."""
    found = setup.catalogue.look_up(model)
    if found.entry and found.entry == setup.info.entry:  # its name may say more: the user's own price
        return setup.info.price
    return found.price or usual
