"""The cost of a session and the savings of its folds, counted from its log and stored next to it.

Every request after a fold is smaller by the tokens that the folds on its path removed: these are saved. Their
price is the average price of the rest of that request's input, by its own usage. Unknown prices are counted
separately, never guessed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from contextvars import Context
from functools import cache, cached_property
from typing import Final

import msgspec

from foldline.catalogue import Catalogue
from foldline.core.cut.edits import folds
from foldline.core.decide.price import Price, cost
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pruned, Receipt, Said, dated
from foldline.core.log.messages import Usage
from foldline.core.measure.window import Window
from foldline.errors import FoldlineError, StoreError
from foldline.loading.restore import AGENTS, KEPT_SECONDS
from foldline.service.tenants import Tenant
from foldline.service.web.shown import line
from foldline.session.branch_summary import BRANCH_NOTE
from foldline.session.kept import MODEL, kept_in
from foldline.session.links import LINK
from foldline.session.tree import first_words
from foldline.stores.base import SessionInfo, Store
from foldline.stores.key_values import pack, unpack

log = logging.getLogger("foldline")

SPACE: Final = "savings"
AT_ONCE: Final = 64  # figures written in one step
PATIENCE: Final = 0.3  # seconds that a page waits for missing figures
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


class _At(msgspec.Struct, frozen=True, omit_defaults=True):
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
    at: _At = _At()
    made: list[str] = []
    folds: dict[str, int] = {}
    days: dict[str, dict[str, Sum]] = {}

    @cached_property
    def whole(self) -> Sum:
        """The sum of all days and models, cached at its first use."""
        return summed(total for models in self.days.values() for total in models.values())

    @property
    def size(self) -> int | None:
        """The tokens of the next request; None if unknown."""
        return self.at.size

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
    savings = None
    if known is not None and known.last == known.leaf and known.entries <= info.entries:
        copy = msgspec.msgpack.decode(msgspec.msgpack.encode(known), type=Savings)
        savings = await _Counter(copy, price_of, straight=True).read(
            store.all(info.id, after=known.entries), info
        )
    if savings is None:
        savings = await _Counter(Savings(), price_of).read(store.all(info.id), info)
    assert savings is not None
    savings.begins = savings.begins or line(await first_words(store, info.id), NAME)
    return savings


class _Counter:
    """Counts entries in the order of the log; with `straight` each must follow the one before."""

    def __init__(self, savings: Savings, price_of: PriceOf, *, straight: bool = False) -> None:
        self._savings = savings
        self._price_of = price_of
        self._straight = straight
        self._places: dict[str | None, _At] = {None: _At(), savings.last: savings.at}

    async def read(self, entries: AsyncIterable[Entry], info: SessionInfo) -> Savings | None:
        """Count entries; None if a straight path does not lead to the leaf."""
        savings = self._savings
        async for entry in entries:
            if self._straight and entry.parent != savings.last:
                return None
            at = self._places[entry.parent]
            if self._straight:
                self._places.clear()
            self._places[entry.id] = self._count(entry, at)
            savings.last = entry.id
            savings.entries += 1
            if savings.entries == info.entries:  # others may be appended meanwhile
                break
        if info.leaf not in self._places:
            if self._straight:
                return None
            self._places[info.leaf] = _At(size=None)
        savings.leaf, savings.at = info.leaf, self._places[info.leaf]
        return savings

    def _count(self, entry: Entry, at: _At) -> _At:
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

    def _count_message(self, entry: Said, at: _At) -> _At:
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
            if sent := _input(usage):
                total.saved_usd += at.out * cost(read, price) / sent
            else:
                total.unpriced_saved += at.out
        if usage is not None and _input(usage):
            size = _input(usage) + usage.output
        return msgspec.structs.replace(at, size=size, said=True)

    def _count_fold(self, entry: Compacted | Pruned, at: _At) -> _At:
        receipt: Receipt = entry.receipt
        if folds(entry):
            self._savings.made.append(entry.id)
            at = msgspec.structs.replace(at, folds=at.folds + 1)
        if receipt.reason == "imported":  # its sizes are those of another agent
            return msgspec.structs.replace(at, size=None)
        if isinstance(entry, Compacted):
            self._count_summary(receipt.price, receipt.summarizer, entry.at)
        less = (
            max(0, receipt.tokens_before - receipt.tokens_after) if at.said else 0
        )  # a hand-off starts with a fold
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


def _input(usage: Usage) -> int:
    return usage.input + usage.cache_read + usage.cache_write


# ---- all sessions


class SavingsBook:
    """The figures of one tenant's sessions, read in the background, the last requested first.

    They are derived data: stored next to the log, and updated when the log has changed.
    """

    def __init__(self, tenant: Tenant, catalogue: Catalogue) -> None:
        self.version = 0  # increases with every change
        self._tenant = tenant
        self._look_up = cache(catalogue.look_up)
        self._known: dict[str, Savings] | None = None
        self._waiting: dict[str, SessionInfo] = {}
        self._reading: asyncio.Task[None] | None = None
        self._scanned = False  # whether all sessions were checked

    async def look(self, sessions: Sequence[SessionInfo]) -> dict[str, Savings]:
        """Return the figures of sessions by id; waits at most `PATIENCE` seconds for changed ones."""
        if self._known is None:
            stored = await self._tenant.values.values(SPACE)
            read = {name: unpack(raw, Savings) for name, raw in stored.items()}
            self._known = {name: savings for name, savings in read.items() if savings is not None}
        known = self._known
        if len(known) > await self._tenant.store.count():
            await self._forget(
                known, known.keys() - {info.id for info in await self._tenant.store.sessions()}
            )
        behind = {info.id: info for info in sessions if not _fresh(known.get(info.id), info)}
        if behind or not self._scanned:
            self._waiting = {**behind, **self._waiting}
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read_safely(known), context=Context())
            await asyncio.wait({self._reading}, timeout=PATIENCE)
        return {info.id: known[info.id] for info in sessions if info.id in known}

    async def names(self, sessions: Sequence[SessionInfo]) -> dict[str, str]:
        """Return the name of each session by its id: its title, else its first words, else its id."""
        names: dict[str, str] = {}
        for info in sessions:
            known = (self._known or {}).get(info.id)
            if known is None or not _fresh(known, info):
                begins = "" if info.title else await first_words(self._tenant.store, info.id)
                known = Savings(begins=line(begins, NAME))
            names[info.id] = known.name_of(info)
        return names

    def window_of(self, model: str, window: int | Window | None) -> int | None:
        """Return the context window of a model in tokens; None if unknown."""
        info = self._look_up(model, window)
        return info.window.context if info.known else None

    @property
    def behind(self) -> int:
        """How many sessions are not read yet."""
        return len(self._waiting)

    @property
    def agents(self) -> list[str]:
        """The agents of all sessions."""
        return sorted({savings.agent for savings in (self._known or {}).values() if savings.agent})

    @property
    def models(self) -> list[str]:
        """The models of all sessions."""
        return list({model for savings in (self._known or {}).values() for model in savings.models})

    async def _read_safely(self, known: dict[str, Savings]) -> None:
        try:
            await self._read(known)
        except StoreError as error:  # retried at the next look
            log.info("the figures of sessions cannot be read: %s", error)

    async def _read(self, known: dict[str, Savings]) -> None:
        """Read the waiting sessions, at first all that changed since their figures were stored."""
        if not self._scanned:
            self._scanned = True
            infos = await self._tenant.store.sessions()
            self._waiting |= {info.id: info for info in infos if not _fresh(known.get(info.id), info)}
        agents = await self._tenant.values.values(AGENTS)
        new: dict[str, bytes] = {}
        while self._waiting:
            info = next(iter(self._waiting.values()))
            savings = await self._count(info, known.get(info.id))
            if (agent := agents.get(info.id)) is not None:
                savings.agent = agent.decode("utf-8", "replace")
            known[info.id], new[info.id] = savings, pack(savings)
            self._waiting.pop(info.id, None)
            self.version += 1
            if len(new) == AT_ONCE or not self._waiting:
                await self._keep(new)
                await self._forget(known, new)
                new = {}

    async def _count(self, info: SessionInfo, known: Savings | None) -> Savings:
        try:
            return await counted(self._tenant.store, info, known, lambda model: self._look_up(model).price)
        except FoldlineError as error:  # damaged or deleted
            log.info("the figures of session %s cannot be read: %s", info.id, error)
        except Exception:  # the other sessions are read anyway
            log.exception("the figures of session %s cannot be read", info.id)
        return Savings(info.entries, info.leaf, at=_At(size=None))

    async def _keep(self, new: dict[str, bytes]) -> None:
        """Store figures, unless the store is read-only."""
        with contextlib.suppress(StoreError):
            await self._tenant.values.put_all(SPACE, new, seconds=KEPT_SECONDS)

    async def _forget(self, known: dict[str, Savings], names: Iterable[str]) -> None:
        """Drop the figures of deleted sessions, here and in the store."""
        for name in names:
            if await self._tenant.store.info(name) is None:
                known.pop(name, None)
                with contextlib.suppress(StoreError):
                    await self._tenant.values.delete(SPACE, name)

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def _fresh(known: Savings | None, info: SessionInfo) -> bool:
    return known is not None and (known.entries, known.leaf) == (info.entries, info.leaf)
