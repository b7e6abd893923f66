"""What a session has cost, and what its folds have saved: counted from its log, and kept beside it.

A request behind a fold carries that much less, and so does each one after it. The tokens that a reply was
spared are what the folds on its path took out of the view; their price is what the rest of that request's
input cost on average, by its own usage. What is not known is counted apart, never guessed.
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
AT_ONCE: Final = 64  # figures that are written in one step
PATIENCE: Final = 0.3  # seconds that a page waits for figures that are not read yet
UNKNOWN: Final = ""  # a day or a model that nothing tells
NAME: Final = 80  # characters of them
FREE: Final = ("", "offline", "by hand")  # who writes summaries that cost nothing
PriceOf = Callable[[str], Price | None]


class Sum(msgspec.Struct, omit_defaults=True):
    """Replies and what they cost, what they were spared, and what summaries cost.

    `unpriced` counts replies and summaries of unknown price, `unpriced_saved` the tokens that were saved at
    an unknown price. The price of what was saved has that of the summaries still in it.
    """

    replies: int = 0
    usd: float = 0.0
    unpriced: int = 0
    saved: int = 0
    saved_usd: float = 0.0
    unpriced_saved: int = 0
    summaries_usd: float = 0.0

    def add(self, other: Sum) -> None:
        """Add another one."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def spent(self) -> float | None:
        """USD for replies and summaries; None where none of it is known."""
        known = self.usd + self.summaries_usd
        return None if self.unpriced and not known else known

    @property
    def gain(self) -> float | None:
        """USD that were saved, less those for the summaries; None where no price of it is known."""
        if self.unpriced_saved and not self.saved_usd:
            return None
        return self.saved_usd - self.summaries_usd


class _At(msgspec.Struct, frozen=True, omit_defaults=True):
    """What holds behind an entry: folds, tokens that are out, the next request's size, what was said."""

    folds: int = 0
    out: int = 0
    size: int | None = 0  # None: not known
    said: bool = False


class Savings(msgspec.Struct, omit_defaults=True, dict=True):
    """The figures of a session: of all branches by day and model, and what holds at its leaf.

    `entries` were read, the newest of them `last`, when the leaf was `leaf`. `begins` are the user's first
    words, `agent` is the program that speaks, where it has said so. `made` are all folds.
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
        """The sum of all days and models, as they were when it was first asked for."""
        return summed(one for models in self.days.values() for one in models.values())

    @property
    def size(self) -> int | None:
        """The tokens of the next request; None where they are not known."""
        return self.at.size

    @property
    def models(self) -> set[str]:
        """The models that have answered in it, and the one that it goes on with."""
        return {self.model, *(model for models in self.days.values() for model in models)} - {UNKNOWN}

    def name_of(self, info: SessionInfo) -> str:
        """Return what its session is called: its title, else how it began, else its id."""
        return info.title.strip() or self.begins or info.id


def summed(sums: Iterable[Sum]) -> Sum:
    """Return the sum of sums."""
    found = Sum()
    for one in sums:
        found.add(one)
    return found


async def counted(store: Store, info: SessionInfo, known: Savings | None, price_of: PriceOf) -> Savings:
    """Return the figures of a session as it is stored; where it has only grown, its new entries are read."""
    found = None
    if known is not None and known.last == known.leaf and known.entries <= info.entries:
        copy = msgspec.msgpack.decode(msgspec.msgpack.encode(known), type=Savings)
        found = await _Count(copy, price_of, straight=True).read(
            store.all(info.id, after=known.entries), info
        )
    if found is None:
        found = await _Count(Savings(), price_of).read(store.all(info.id), info)
    assert found is not None
    found.begins = found.begins or line(await first_words(store, info.id), NAME)
    return found


class _Count:
    """Counts entries as they were appended; `straight`: only ones of which each follows the last."""

    def __init__(self, found: Savings, price_of: PriceOf, *, straight: bool = False) -> None:
        self._found = found
        self._price_of = price_of
        self._straight = straight
        self._places: dict[str | None, _At] = {None: _At(), found.last: found.at}

    async def read(self, entries: AsyncIterable[Entry], info: SessionInfo) -> Savings | None:
        """Return the figures with these entries; None where they do not follow each other to the leaf."""
        found = self._found
        async for entry in entries:
            if self._straight and entry.parent != found.last:
                return None
            at = self._places[entry.parent]
            if self._straight:
                self._places.clear()
            self._places[entry.id] = self._taken(entry, at)
            found.last = entry.id
            found.entries += 1
            if found.entries == info.entries:  # more may come meanwhile
                break
        if info.leaf not in self._places:
            if self._straight:
                return None
            self._places[info.leaf] = _At(size=None)
        found.leaf, found.at = info.leaf, self._places[info.leaf]
        return found

    def _taken(self, entry: Entry, at: _At) -> _At:
        """Count an entry, and return what holds behind it."""
        match entry:
            case Said():
                return self._said(entry, at)
            case Compacted() | Pruned():
                return self._folded(entry, at)
            case Lifted(target=target, lifted=lifted):
                change = -self._found.folds.get(target, 0) if lifted else self._found.folds.get(target, 0)
                size = None if at.size is None else at.size - change
                held = at.folds + (-1 if lifted else 1) * (target in self._found.made)
                return msgspec.structs.replace(at, folds=held, out=at.out + change, size=size)
            case Noted(kind=kind, data=data):
                if kind == MODEL and (kept := kept_in([entry])) is not None:
                    self._found.model, self._found.window = kept.model, kept.window
                elif kind == LINK and data.get("how") == "fork" and data.get("way") == "from":
                    self._found.days = {}  # what came before is counted in the session that it is of
                elif kind == BRANCH_NOTE:
                    self._summary(data.get("price"), data.get("summarizer", ""), entry.at)
            case _:
                pass
        return at

    def _said(self, entry: Said, at: _At) -> _At:
        message, usage = entry.message, entry.message.usage
        size = None if at.size is None else at.size + entry.tokens
        if message.role != "assistant":
            return msgspec.structs.replace(at, size=size, said=True)
        self._found.model = message.model or self._found.model
        one = self._sum(entry.at)
        one.replies += 1
        one.saved += at.out
        price = self._price_of(self._found.model) if usage is not None else None
        if usage is None or price is None:
            one.unpriced += 1
            one.unpriced_saved += at.out
        else:
            one.usd += cost(usage, price)
            read = msgspec.structs.replace(usage, output=0)
            if sent := _input(usage):
                one.saved_usd += at.out * cost(read, price) / sent
            else:
                one.unpriced_saved += at.out
        if usage is not None and _input(usage):
            size = _input(usage) + usage.output
        return msgspec.structs.replace(at, size=size, said=True)

    def _folded(self, entry: Compacted | Pruned, at: _At) -> _At:
        receipt: Receipt = entry.receipt
        if folds(entry):
            self._found.made.append(entry.id)
            at = msgspec.structs.replace(at, folds=at.folds + 1)
        if receipt.reason == "imported":  # its sizes are another agent's
            return msgspec.structs.replace(at, size=None)
        if isinstance(entry, Compacted):
            self._summary(receipt.price, receipt.summarizer, entry.at)
        less = max(0, receipt.tokens_before - receipt.tokens_after) if at.said else 0  # a hand-off begins so
        self._found.folds[entry.id] = less
        return msgspec.structs.replace(at, out=at.out + less, size=receipt.tokens_after)

    def _summary(self, price: float | None, summarizer: str, at: float | None) -> None:
        one = self._sum(at)
        one.summaries_usd += price or 0.0
        one.unpriced += price is None and summarizer not in FREE

    def _sum(self, at: float | None) -> Sum:
        at = dated(at)
        day = UNKNOWN if at is None else time.strftime("%Y-%m-%d", time.gmtime(at))
        models = self._found.days.setdefault(day, {})
        return models.setdefault(self._found.model, Sum())


def _input(usage: Usage) -> int:
    return usage.input + usage.cache_read + usage.cache_write


# ---- of all sessions


class SavingsBook:
    """The figures of the sessions of one tenant, read in the background, the last asked for first.

    They are derived: kept in the store beside the log, and read anew where the log has changed.
    """

    def __init__(self, tenant: Tenant, catalogue: Catalogue) -> None:
        self.version = 0  # changes with what is known
        self._tenant = tenant
        self._look_up = cache(catalogue.look_up)
        self._known: dict[str, Savings] | None = None
        self._waiting: dict[str, SessionInfo] = {}
        self._reading: asyncio.Task[None] | None = None
        self._looked = False  # through all sessions

    async def look(self, sessions: Sequence[SessionInfo]) -> dict[str, Savings]:
        """Return what is known of sessions by their ids; what has changed is read, with some patience."""
        if self._known is None:
            stored = await self._tenant.values.values(SPACE)
            read = {name: unpack(raw, Savings) for name, raw in stored.items()}
            self._known = {name: one for name, one in read.items() if one is not None}
        known = self._known
        if len(known) > await self._tenant.store.count():
            await self._forget(known, known.keys() - {one.id for one in await self._tenant.store.sessions()})
        behind = {one.id: one for one in sessions if not _fresh(known.get(one.id), one)}
        if behind or not self._looked:
            self._waiting = {**behind, **self._waiting}
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._tried(known), context=Context())
            await asyncio.wait({self._reading}, timeout=PATIENCE)
        return {one.id: known[one.id] for one in sessions if one.id in known}

    async def names(self, sessions: Sequence[SessionInfo]) -> dict[str, str]:
        """Return what each session is called, by its id: its title, else how it began, else its id."""
        found: dict[str, str] = {}
        for info in sessions:
            known = (self._known or {}).get(info.id)
            if known is None or not _fresh(known, info):
                begins = "" if info.title else await first_words(self._tenant.store, info.id)
                known = Savings(begins=line(begins, NAME))
            found[info.id] = known.name_of(info)
        return found

    def _price_of(self, model: str) -> Price | None:
        return self._look_up(model).price

    def window_of(self, model: str, given: int | Window | None) -> int | None:
        """Return the context of a model, in tokens; None where it is not known."""
        info = self._look_up(model, given)
        return info.window.context if info.known else None

    @property
    def behind(self) -> int:
        """How many sessions are still to be read."""
        return len(self._waiting)

    @property
    def agents(self) -> list[str]:
        """The agents that are known."""
        return sorted({one.agent for one in (self._known or {}).values() if one.agent})

    @property
    def models(self) -> list[str]:
        """The models that are known."""
        return list({model for one in (self._known or {}).values() for model in one.models})

    async def _tried(self, known: dict[str, Savings]) -> None:
        try:
            await self._read(known)
        except StoreError as error:  # what waits is read at the next look
            log.info("the figures of sessions cannot be read: %s", error)

    async def _read(self, known: dict[str, Savings]) -> None:
        """Read what waits, and at first whatever has changed since this was kept."""
        if not self._looked:
            self._looked = True
            every = await self._tenant.store.sessions()
            self._waiting |= {one.id: one for one in every if not _fresh(known.get(one.id), one)}
        agents = await self._tenant.values.values(AGENTS)
        new: dict[str, bytes] = {}
        while self._waiting:
            info = next(iter(self._waiting.values()))
            found = await self._counted(info, known.get(info.id))
            if (agent := agents.get(info.id)) is not None:
                found.agent = agent.decode("utf-8", "replace")
            known[info.id], new[info.id] = found, pack(found)
            self._waiting.pop(info.id, None)
            self.version += 1
            if len(new) == AT_ONCE or not self._waiting:
                await self._keep(new)
                await self._forget(known, new)
                new = {}

    async def _counted(self, info: SessionInfo, known: Savings | None) -> Savings:
        try:
            return await counted(self._tenant.store, info, known, self._price_of)
        except FoldlineError as error:  # it is damaged, or was deleted
            log.info("the figures of session %s cannot be read: %s", info.id, error)
        except Exception:  # those of the others are read all the same
            log.exception("the figures of session %s cannot be read", info.id)
        return Savings(info.entries, info.leaf, at=_At(size=None))

    async def _keep(self, new: dict[str, bytes]) -> None:
        """Keep figures in the store; one that can only be read keeps none."""
        with contextlib.suppress(StoreError):
            await self._tenant.values.put_all(SPACE, new, seconds=KEPT_SECONDS)

    async def _forget(self, known: dict[str, Savings], names: Iterable[str]) -> None:
        """Forget the figures of those of the sessions that were deleted, also where they were kept since."""
        for name in names:
            if await self._tenant.store.info(name) is None:
                known.pop(name, None)
                with contextlib.suppress(StoreError):
                    await self._tenant.values.delete(SPACE, name)

    async def close(self) -> None:
        """Read no more."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def _fresh(known: Savings | None, info: SessionInfo) -> bool:
    return known is not None and (known.entries, known.leaf) == (info.entries, info.leaf)
