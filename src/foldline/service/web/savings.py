"""The cost of a session and the savings of its folds, counted from its log.

Every request after a fold is smaller by the tokens that the folds on its path removed: these are saved. Their
price is the average price of the rest of that request's input, by its own usage. Unknown prices are counted
separately, never guessed.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Callable, Iterable
from functools import cached_property
from typing import Final

import msgspec

from foldline.core.cut.edits import folds
from foldline.core.decide.price import Price, cost
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pruned, Receipt, Said, dated
from foldline.core.measure.window import Window
from foldline.errors import StoreError
from foldline.service.web.shown import line
from foldline.session.branch_summary import BRANCH_NOTE
from foldline.session.kept import MODEL, kept_in
from foldline.session.links import LINK
from foldline.session.tree import first_words
from foldline.stores.base import SessionInfo, Store

UNKNOWN: Final = ""  # an unknown day or model
NAME: Final = 80  # characters of a name
FREE: Final = ("", "offline", "by hand")  # writers of summaries that cost nothing
PriceOf = Callable[[str], Price | None]


class Sum(msgspec.Struct, omit_defaults=True):
    """Replies and their cost, the tokens they saved, and the cost of summaries.

    `unpriced` counts replies and summaries of unknown price, `unpriced_saved` the tokens saved at an unknown
    price. `saved_usd` does not subtract the cost of summaries yet.
    """

    replies: int = 0
    usd: float = 0.0
    unpriced: int = 0
    saved: int = 0
    saved_usd: float = 0.0
    unpriced_saved: int = 0
    summaries_usd: float = 0.0

    def add(self, other: Sum) -> None:
        """Add another sum to this one."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def spent(self) -> float | None:
        """USD for replies and summaries; None if no price is known."""
        known = self.usd + self.summaries_usd
        return None if self.unpriced and not known else known

    @property
    def gain(self) -> float | None:
        """USD saved, less those for summaries; None if no price is known."""
        if self.unpriced_saved and not self.saved_usd:
            return None
        return self.saved_usd - self.summaries_usd


class At(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state after an entry: folds in effect, tokens removed, the next request's size."""

    folds: int = 0
    out: int = 0
    size: int | None = 0  # None: not known
    said: bool = False  # whether a message came before


class Savings(msgspec.Struct, omit_defaults=True, dict=True):
    """The figures of a session: of all branches by day and model, and the state at its leaf.

    `entries` is how many entries were read, up to `last`, when the leaf was `leaf`. `begins` are the user's
    first words, `agent` is the client program if known. `made` lists all folds.
    """

    entries: int = 0
    leaf: str | None = None
    last: str | None = None
    agent: str = ""
    begins: str = ""
    model: str = ""
    window: int | Window | None = None
    at: At = At()
    made: list[str] = []
    folds: dict[str, int] = {}
    days: dict[str, dict[str, Sum]] = {}

    @cached_property
    def whole(self) -> Sum:
        """The sum of all days and models, cached at its first use."""
        return summed(total for models in self.days.values() for total in models.values())

    @property
    def models(self) -> set[str]:
        """The models that answered in the session, and its current one."""
        return {self.model, *(model for models in self.days.values() for model in models)} - {UNKNOWN}

    def name_of(self, info: SessionInfo) -> str:
        """Return the session's title, else its first words, else its id."""
        return info.title.strip() or self.begins or info.id


def summed(sums: Iterable[Sum]) -> Sum:
    """Add sums up."""
    total = Sum()
    for item in sums:
        total.add(item)
    return total


async def counted(store: Store, info: SessionInfo, known: Savings | None, price_of: PriceOf) -> Savings:
    """Return the figures of a stored session; if it has only grown, read its new entries alone."""
    begun = [Savings()]
    if known is not None and known.last == known.leaf and known.entries <= info.entries:
        begun.insert(0, msgspec.msgpack.decode(msgspec.msgpack.encode(known), type=Savings))
    for savings in begun:
        entries = store.all(info.id, after=savings.entries)
        if await _Counter(savings, price_of).read(entries, info):
            savings.begins = savings.begins or line(await first_words(store, info.id), NAME)
            return savings
    raise StoreError(f"the log of session {info.id} does not lead to its newest entry")


class _Counter:
    """Counts entries in the order of the log, from those on that were counted before."""

    def __init__(self, savings: Savings, price_of: PriceOf) -> None:
        self._savings = savings
        self._price_of = price_of
        self._places: dict[str | None, At] = {None: At(), savings.last: savings.at}

    async def read(self, entries: AsyncIterable[Entry], info: SessionInfo) -> bool:
        """Count entries; return False if they do not all go on from counted ones, up to the leaf."""
        savings = self._savings
        async for entry in entries:
            if entry.parent not in self._places:
                return False
            self._places[entry.id] = self._count(entry, self._places[entry.parent])
            savings.last = entry.id
            savings.entries += 1
            if savings.entries == info.entries:  # others may be appended meanwhile
                break
        if info.leaf not in self._places:
            return False
        savings.leaf, savings.at = info.leaf, self._places[info.leaf]
        return True

    def _count(self, entry: Entry, at: At) -> At:
        """Count an entry, and return the state after it."""
        match entry:
            case Said():
                return self._count_message(entry, at)
            case Compacted() | Pruned():
                return self._count_fold(entry, at)
            case Lifted(target=target, lifted=lifted):
                change = -self._savings.folds.get(target, 0) if lifted else self._savings.folds.get(target, 0)
                size = None if at.size is None else at.size - change
                count = at.folds + (-1 if lifted else 1) * (target in self._savings.made)
                return msgspec.structs.replace(at, folds=count, out=at.out + change, size=size)
            case Noted(kind=kind, data=data):
                if kind == MODEL and (kept := kept_in([entry])) is not None:
                    self._savings.model, self._savings.window = kept.model, kept.window
                elif kind == LINK and data.get("how") == "fork" and data.get("way") == "from":
                    self._savings.days = {}  # the entries before are counted in the original session
                elif kind == BRANCH_NOTE:
                    self._count_summary(data.get("price"), data.get("summarizer", ""), entry.at)
            case _:
                pass
        return at

    def _count_message(self, entry: Said, at: At) -> At:
        message, usage = entry.message, entry.message.usage
        size = None if at.size is None else at.size + entry.tokens
        if message.role != "assistant":
            return msgspec.structs.replace(at, size=size, said=True)
        self._savings.model = message.model or self._savings.model
        total = self._sum(entry.at)
        total.replies += 1
        total.saved += at.out
        price = self._price_of(self._savings.model) if usage is not None else None
        if usage is None or price is None:
            total.unpriced += 1
            total.unpriced_saved += at.out
        else:
            total.usd += cost(usage, price)
            read = msgspec.structs.replace(usage, output=0)
            if read.total:
                total.saved_usd += at.out * cost(read, price) / read.total
            else:
                total.unpriced_saved += at.out
        if usage is not None and usage.total > usage.output:
            size = usage.total
        return msgspec.structs.replace(at, size=size, said=True)

    def _count_fold(self, entry: Compacted | Pruned, at: At) -> At:
        receipt: Receipt = entry.receipt
        if folds(entry):
            self._savings.made.append(entry.id)
            at = msgspec.structs.replace(at, folds=at.folds + 1)
        if receipt.reason == "imported":  # its sizes are those of another agent
            return msgspec.structs.replace(at, size=None)
        if isinstance(entry, Compacted):
            self._count_summary(receipt.price, receipt.summarizer, entry.at)
        # a hand-off starts with a fold
        less = max(0, receipt.tokens_before - receipt.tokens_after) if at.said else 0
        self._savings.folds[entry.id] = less
        return msgspec.structs.replace(at, out=at.out + less, size=receipt.tokens_after)

    def _count_summary(self, price: float | None, summarizer: str, at: float | None) -> None:
        total = self._sum(at)
        total.summaries_usd += price or 0.0
        total.unpriced += price is None and summarizer not in FREE

    def _sum(self, at: float | None) -> Sum:
        at = dated(at)
        day = UNKNOWN if at is None else time.strftime("%Y-%m-%d", time.gmtime(at))
        models = self._savings.days.setdefault(day, {})
        return models.setdefault(self._savings.model, Sum())
