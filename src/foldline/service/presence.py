"""Which workers are alive, and what each holds: leases in the store, so that a dead worker blocks nobody."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from typing import Final

from foldline.errors import StoreError
from foldline.stores.key_values import KeyValues

log = logging.getLogger("foldline")

WORKERS: Final = "worker"  # the space of those who are alive
LEASE_SECONDS: Final = 15.0  # that a worker is believed to be alive after its last sign
RENEWAL_SECONDS: Final = 4.0
HELD_SECONDS: Final = 86_400.0  # that a lease stays, if its worker goes on living


class Presence:
    """The sign of life of this worker in one store, given from its first lease on."""

    def __init__(self, values: KeyValues) -> None:
        self.id = secrets.token_hex(8)
        self.values = values
        self._renewing: asyncio.Task[None] | None = None
        self._beginning = asyncio.Lock()

    async def begin(self) -> None:
        """Give the first sign, and go on giving it."""
        async with self._beginning:
            if self._renewing is None:
                await self._sign()
                self._renewing = asyncio.create_task(self._renew())

    async def alive(self, worker: str) -> bool:
        """Return whether a worker is alive."""
        return worker == self.id or await self.values.get(WORKERS, worker) is not None

    async def close(self) -> None:
        """Give no more signs: what this worker still holds is free."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            with contextlib.suppress(StoreError):
                await self.values.delete(WORKERS, self.id)

    async def _sign(self) -> None:
        known = await self.values.add(WORKERS, self.id, b"", seconds=LEASE_SECONDS)
        if known is not None:
            await self.values.replace(WORKERS, self.id, known, known, seconds=LEASE_SECONDS)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                await self._sign()
            except StoreError as error:
                log.warning("a worker could not say that it is alive: %s", error)


class Leases:
    """What one worker at a time may do, such as the turn of a session."""

    def __init__(self, presence: Presence, space: str) -> None:
        self._presence = presence
        self._values = presence.values
        self._space = space

    async def take(self, session: str) -> bool:
        """Take the lease of a session, also that of a dead worker; return whether it was free."""
        await self._presence.begin()
        mine = self._presence.id.encode()
        there = await self._values.add(self._space, session, mine, seconds=HELD_SECONDS, session=session)
        if there is None:
            return True
        if await self._presence.alive(there.decode()):
            return False
        return await self._values.replace(self._space, session, there, mine, seconds=HELD_SECONDS)

    async def release(self, session: str) -> None:
        """Give a lease back."""
        try:
            await self._values.delete(self._space, session, self._presence.id.encode())
        except StoreError as error:
            log.warning("a lease could not be given back: %s", error)

    async def held(self, session: str) -> bool:
        """Return whether a worker that is alive has the lease."""
        there = await self._values.get(self._space, session)
        return there is not None and await self._presence.alive(there.decode())
