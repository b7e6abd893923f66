"""Which workers are alive, and what each holds: leases in the store, so that a dead worker blocks nobody."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Final

from foldline.errors import StoreError
from foldline.stores.key_values import KeyValues

log = logging.getLogger("foldline")

WORKERS: Final = "worker"  # the space of those who are alive
SIGN: Final = b"alive"
LEASE_SECONDS: Final = 15.0  # that a worker is believed to be alive after its last sign
RENEWAL_SECONDS: Final = 4.0
HELD_SECONDS: Final = 86_400.0  # that a lease stays, if its worker goes on living


class Presence:
    """The sign of life of this worker in one store, given from its first lease on; a dead one's expires."""

    def __init__(self, values: KeyValues) -> None:
        self.id = secrets.token_hex(8)
        self.values = values
        self._signed: float | None = None
        self._owed: dict[str, Callable[[], Awaitable[object]]] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()

    @property
    def lapsed(self) -> bool:
        """Whether others take this worker for dead, since the store had no sign of it for too long."""
        return self._signed is not None and time.monotonic() - self._signed > LEASE_SECONDS

    async def begin(self) -> None:
        """Give the first sign, and go on giving it."""
        async with self._beginning:
            if self._renewing is None:
                await self._sign()
                self._renewing = asyncio.create_task(self._renew(), context=Context())

    async def alive(self, worker: str) -> bool:
        """Return whether a worker is alive."""
        if worker == self.id:
            return True
        return bool(worker) and await self.values.get(WORKERS, worker) is not None

    def owe(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        """Have work that the store refused done when it takes signs of life again."""
        self._owed[name] = work

    async def close(self) -> None:
        """Give no more signs: what this worker still holds is free."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            with contextlib.suppress(StoreError):
                await self.values.delete(WORKERS, self.id)

    async def _settle(self) -> None:
        """Do what is owed, each by itself: what fails is done the next time."""
        for name, work in list(self._owed.items()):
            with contextlib.suppress(StoreError):
                await work()
                if self._owed.get(name) is work:
                    del self._owed[name]

    async def _sign(self) -> None:
        now = time.monotonic()
        known = await self.values.add(WORKERS, self.id, SIGN, seconds=LEASE_SECONDS)
        if known is not None:
            await self.values.replace(WORKERS, self.id, known, SIGN, seconds=LEASE_SECONDS)
        self._signed = now

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                await self._sign()
                await self._settle()
            except StoreError as error:
                log.warning("a worker could not say that it is alive: %s", error)


class Leases:
    """What one worker at a time may do, such as the turn of a session; a row of its own for each time."""

    def __init__(self, presence: Presence, space: str) -> None:
        self._presence = presence
        self._values = presence.values
        self._space = space
        self._held: dict[str, bytes] = {}  # the rows of this worker that count

    async def take(self, session: str) -> bool:
        """Take the lease of a session, also that of a dead worker; return whether it was free."""
        if session in self._held:
            return False
        mine = self._held[session] = f"{self._presence.id} {secrets.token_hex(8)}".encode()
        taken = False
        try:
            taken = await self._take(session, mine)
        finally:
            if not taken:
                del self._held[session]
        return taken

    async def _take(self, session: str, mine: bytes) -> bool:
        await self._presence.begin()
        try:
            there = await self._values.add(self._space, session, mine, seconds=HELD_SECONDS, session=session)
            if there is None or there == mine:  # the answer was lost, and it was asked again
                return True
            worker = _worker(there)
            # one of ours that does not count: it could not be given back
            if worker != self._presence.id and await self._presence.alive(worker):
                return False
            return await self._values.replace(self._space, session, there, mine, seconds=HELD_SECONDS)
        except BaseException:  # it may be there all the same: the store failed, or nobody waits any more
            self._owe(session, mine)
            raise

    def _owe(self, session: str, mine: bytes) -> None:
        name = f"{self._space} {mine.decode()}"
        self._presence.owe(name, lambda: self._values.delete(self._space, session, mine))

    async def release(self, session: str) -> None:
        """Give a lease back; where the store is away, when it is back."""
        mine = self._held.pop(session, None)
        if mine is None:
            return
        try:
            await self._values.delete(self._space, session, mine)
        except StoreError as error:
            log.warning("a lease is given back later: %s", error)
            self._owe(session, mine)

    async def held(self, session: str) -> bool:
        """Return whether a worker that is alive has the lease."""
        if session in self._held:
            return True
        there = await self._values.get(self._space, session)
        if there is None or _worker(there) == self._presence.id:
            return False
        return await self._presence.alive(_worker(there))


def _worker(lease: bytes) -> str:
    return lease.decode().partition(" ")[0]
