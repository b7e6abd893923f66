"""The figures of a tenant's sessions: counted in the background, stored next to the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from contextvars import Context
from functools import cache
from typing import Final

from foldline.catalogue import Catalogue
from foldline.core.measure.window import Window
from foldline.errors import FoldlineError, StoreError
from foldline.loading.restore import AGENTS, KEPT_SECONDS
from foldline.service.tenants import Tenant
from foldline.service.web.savings import NAME, At, Savings, counted
from foldline.service.web.shown import line
from foldline.session.tree import first_words
from foldline.stores.base import SessionInfo
from foldline.stores.key_values import pack, unpack

log = logging.getLogger("foldline")

SPACE: Final = "savings"
AT_ONCE: Final = 64  # figures written in one step
PATIENCE: Final = 0.3  # seconds that a page waits for missing figures


class SavingsBook:
    """The figures of one tenant's sessions, read in the background, the last requested first.

    They are derived data: stored next to the log, and updated when the log has changed.
    """

    def __init__(self, tenant: Tenant, catalogue: Catalogue) -> None:
        self.version = 0  # increases with every change
        self._tenant = tenant
        self._look_up = cache(catalogue.look_up)
        self._known: dict[str, Savings] = {}
        self._loaded = False  # whether stored figures were read
        self._waiting: dict[str, SessionInfo] = {}
        self._reading: asyncio.Task[None] | None = None
        self._scanned = False  # whether all sessions were checked

    async def look(self, sessions: Sequence[SessionInfo]) -> dict[str, Savings]:
        """Return the figures of sessions by id; waits at most `PATIENCE` seconds for changed ones."""
        if not self._loaded:
            stored = await self._tenant.values.values(SPACE)
            read = {name: unpack(raw, Savings) for name, raw in stored.items()}
            self._known |= {name: savings for name, savings in read.items() if savings is not None}
            self._loaded = True
        known = self._known
        if len(known) > await self._tenant.store.count():
            await self._forget(known.keys() - {info.id for info in await self._tenant.store.sessions()})
        behind = {info.id: info for info in sessions if not _fresh(known.get(info.id), info)}
        if behind or not self._scanned:
            self._waiting = {**behind, **self._waiting}
            if self._reading is None or self._reading.done():
                self._reading = asyncio.create_task(self._read(), context=Context())
            await asyncio.wait({self._reading}, timeout=PATIENCE)
        return {info.id: known[info.id] for info in sessions if info.id in known}

    async def names(self, sessions: Sequence[SessionInfo]) -> dict[str, str]:
        """Return the name of each session by its id: its title, else its first words, else its id."""
        names: dict[str, str] = {}
        for info in sessions:
            known = self._known.get(info.id)
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
        return sorted({savings.agent for savings in self._known.values() if savings.agent})

    @property
    def models(self) -> list[str]:
        """The models of all sessions."""
        return list({model for savings in self._known.values() for model in savings.models})

    async def _read(self) -> None:
        try:
            await self._read_waiting()
        except StoreError as error:  # retried at the next look
            log.info("the figures of sessions cannot be read: %s", error)

    async def _read_waiting(self) -> None:
        """Read the waiting sessions, at first all that changed since their figures were stored."""
        known, values = self._known, self._tenant.values
        if not self._scanned:
            self._scanned = True
            infos = await self._tenant.store.sessions()
            self._waiting |= {info.id: info for info in infos if not _fresh(known.get(info.id), info)}
        agents = await values.values(AGENTS)
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
                with contextlib.suppress(StoreError):  # the store may be read-only
                    await values.put_all(SPACE, new, seconds=KEPT_SECONDS)
                await self._forget(new)
                new = {}

    async def _count(self, info: SessionInfo, known: Savings | None) -> Savings:
        try:
            return await counted(self._tenant.store, info, known, lambda model: self._look_up(model).price)
        except FoldlineError as error:  # damaged or deleted
            log.info("the figures of session %s cannot be read: %s", info.id, error)
        except Exception:  # the other sessions are read anyway
            log.exception("the figures of session %s cannot be read", info.id)
        return Savings(info.entries, info.leaf, at=At(size=None))

    async def _forget(self, names: Iterable[str]) -> None:
        """Drop the figures of those sessions that were deleted, here and in the store."""
        for name in names:
            if await self._tenant.store.info(name) is None:
                self._known.pop(name, None)
                with contextlib.suppress(StoreError):
                    await self._tenant.values.delete(SPACE, name)

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])


def _fresh(known: Savings | None, info: SessionInfo) -> bool:
    return known is not None and (known.entries, known.leaf) == (info.entries, info.leaf)
