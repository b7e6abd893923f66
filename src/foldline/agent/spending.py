"""What a session has cost so far: its replies, including those of other branches, and its summaries."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import msgspec

from foldline.catalogue import cost
from foldline.core.cut.edits import folds
from foldline.core.decide.price import Price, added
from foldline.core.log.entries import Entry, Noted, Said
from foldline.core.log.messages import Usage
from foldline.session.branch_summary import BRANCH_NOTE
from foldline.session.session import Session
from foldline.session.setup import Setup


class Spending(msgspec.Struct, frozen=True):
    """Usage and dollars of replies and of summaries.

    `unpriced` counts replies without a known price, `summaries_unpriced` summaries of other agents or of
    models without one.
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
        """The figures as text."""
        usage = self.usage or Usage()
        read = f"{usage.input:,} new, {usage.cache_read:,} cached and {usage.cache_write:,} newly cached"
        counted = ((self.unpriced, "replies"), (self.summaries_unpriced, "summaries"))
        unknown = "".join(f"; the price of {n} {what} is unknown" for n, what in counted if n)
        return (
            f"${self.usd + self.summaries_usd:.4f} in total: {self.replies} replies ${self.usd:.4f}, "
            f"{self.summaries} summaries ${self.summaries_usd:.4f}{unknown}.\n\n"
            f"Tokens read: {read}; written: {usage.output:,}."
        )


class _Counted:
    """The counted entries of a session: its replies by model, and its summaries.

    `models` counts the changes of the model. A reply without a known model of its own has the price of the
    session's model, until that changes.
    """

    def __init__(self) -> None:
        self.entries = 0
        self.models = 0
        self.replies: dict[tuple[str | None, int], tuple[int, Usage | None]] = {}
        self.summaries = Spending()

    def take(self, entry: Entry) -> None:
        self.entries += 1
        if isinstance(entry, Said) and entry.message.usage is not None:
            key = (entry.message.model, self.models)
            count, usage = self.replies.get(key, (0, None))
            self.replies[key] = (count + 1, added(usage, entry.message.usage))
        elif isinstance(entry, Noted) and entry.kind == "model":
            self.models += 1
        elif isinstance(entry, Noted) and entry.kind == BRANCH_NOTE:
            self._summary(entry.data.get("price"), entry.data.get("summarizer", ""))
        elif folds(entry):
            receipt = entry.receipt
            self._summary(receipt.price, receipt.summarizer, imported=receipt.reason == "imported")

    def _summary(self, price: float | None, summarizer: str, *, imported: bool = False) -> None:
        before, free = self.summaries, not imported and summarizer in ("", "offline", "by hand")
        self.summaries = Spending(
            summaries=before.summaries + 1,
            summaries_usd=before.summaries_usd + (price or 0.0),
            summaries_unpriced=before.summaries_unpriced + (price is None and not free),
        )

    def priced(self, setup: Setup) -> Spending:
        """Return the total, each reply at the price of its own model."""
        replies = unpriced = 0
        total, usd = None, 0.0
        for (model, models), (count, usage) in self.replies.items():
            replies, total = replies + count, added(total, usage)
            price = _price(model, setup) or (setup.info.price if models == self.models else None)
            if price is None or usage is None:
                unpriced += count
            else:
                usd += cost(usage, price)
        return msgspec.structs.replace(
            self.summaries, replies=replies, usage=total, usd=usd, unpriced=unpriced
        )


_counted: WeakKeyDictionary[Session, _Counted] = WeakKeyDictionary()


async def spent(session: Session) -> Spending:
    """Return what a session has cost; reads all entries the first time, then only new ones."""
    info = await session.store.info(session.id)
    entries = info.entries if info else 0
    counted = _counted.get(session)
    if counted is None or counted.entries > entries:  # purged and started again
        counted = _counted[session] = _Counted()
    start = counted.entries
    new = [entry async for entry in session.store.all(session.id, after=start)]
    for entry in new if counted.entries == start else ():  # another call may have counted them meanwhile
        counted.take(entry)
    return counted.priced(session.setup)


def _price(model: str | None, setup: Setup) -> Price | None:
    info = setup.catalogue.look_up(model)
    if info.entry and info.entry == setup.info.entry:  # the session's name may have the user's own price
        return setup.info.price
    return info.price
