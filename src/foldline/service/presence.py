"""Which workers are alive, and what each holds: leases in the store expire with a dead worker."""

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

WORKERS: Final = "worker"  # the key space of live workers
SIGN: Final = b"alive"
LEASE_SECONDS: Final = 15.0  # a worker counts as alive after its last sign of life
RENEWAL_SECONDS: Final = 4.0
HELD_SECONDS: Final = 86_400.0  # a lease is kept while its worker is alive


class Presence:
    """The sign of life of this worker in one store, renewed from its first lease on."""

    def __init__(self, values: KeyValues) -> None:
        self.id = secrets.token_hex(8)
        self.values = values
        self._signed: float | None = None
        self._postponed: dict[object, Callable[[], Awaitable[object]]] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._begin_lock = asyncio.Lock()

    @property
    def lapsed(self) -> bool:
        """Whether other workers consider this one dead, because it could not renew its sign of life."""
        return self._signed is not None and time.monotonic() - self._signed > LEASE_SECONDS

    async def begin(self) -> None:
        """Store the first sign of life and keep renewing it."""
        async with self._begin_lock:
            if self._renewing is None:
                await self._sign()
                self._renewing = asyncio.create_task(self._renew(), context=Context())

    async def alive(self, worker: str) -> bool:
        """Return whether a worker is alive."""
        if worker == self.id:
            return True
        return bool(worker) and await self.values.get(WORKERS, worker) is not None

    def owe(self, name: object, work: Callable[[], Awaitable[object]]) -> None:
        """Postpone work that the store refused until the store answers again."""
        self._postponed[name] = work

    async def free(self, space: str, key: str, value: bytes) -> None:
        """Delete a value of this worker, later if the store does not answer now."""
        try:
            await self.values.delete(space, key, value)
        except StoreError as error:
            log.warning("the %s of %s will be freed later: %s", space, key, error)
            self.free_later(space, key, value)

    def free_later(self, space: str, key: str, value: bytes) -> None:
        """Delete a value of this worker that may have been stored, once the store answers again."""
        self.owe((space, key, value), lambda: self.values.delete(space, key, value))

    async def close(self) -> None:
        """Remove the sign of life: leases of this worker become free."""
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            with contextlib.suppress(StoreError):
                await self.values.delete(WORKERS, self.id)

    async def _run_postponed(self) -> None:
        """Run postponed work; whatever fails is tried again next time."""
        for name, work in list(self._postponed.items()):
            with contextlib.suppress(StoreError):
                await work()
                if self._postponed.get(name) is work:
                    del self._postponed[name]

    async def _sign(self) -> None:
        now = time.monotonic()
        stored = await self.values.add(WORKERS, self.id, SIGN, seconds=LEASE_SECONDS)
        if stored is not None:
            await self.values.replace(WORKERS, self.id, stored, SIGN, seconds=LEASE_SECONDS)
        self._signed = now

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                await self._sign()
                await self._run_postponed()
            except StoreError as error:
                log.warning("a worker could not renew its sign of life: %s", error)


class Leases:
    """Locks for work that one worker at a time may do, such as a session's turn; each is a row."""

    def __init__(self, presence: Presence, space: str) -> None:
        self._presence = presence
        self._values = presence.values
        self._space = space
        self._held: dict[str, bytes] = {}  # the rows that this worker holds

    async def take(self, session: str) -> bool:
        """Take the lease of a session, also from a dead worker; return whether it was free."""
        if session in self._held:
            return False
        lease = self._held[session] = f"{self._presence.id} {secrets.token_hex(8)}".encode()
        taken = False
        try:
            taken = await self._take(session, lease)
        except BaseException:  # a failed or cancelled write may still have been stored
            self._presence.free_later(self._space, session, lease)
            raise
        finally:
            if not taken:
                del self._held[session]
        return taken

    async def _take(self, session: str, lease: bytes) -> bool:
        await self._presence.begin()
        held = await self._values.add(self._space, session, lease, seconds=HELD_SECONDS, session=session)
        if held is None or held == lease:  # retried after a lost answer
            return True
        worker = _worker(held)
        # a stale lease of this worker could not be deleted earlier
        if worker != self._presence.id and await self._presence.alive(worker):
            return False
        return await self._values.replace(self._space, session, held, lease, seconds=HELD_SECONDS)

    async def release(self, session: str) -> None:
        """Release a lease, later if the store does not answer now."""
        lease = self._held.pop(session, None)
        if lease is not None:
            await self._presence.free(self._space, session, lease)

    async def held(self, session: str) -> bool:
        """Return whether a live worker has the lease."""
        if session in self._held:
            return True
        stored = await self._values.get(self._space, session)
        if stored is None or _worker(stored) == self._presence.id:
            return False
        return await self._presence.alive(_worker(stored))


def _worker(lease: bytes) -> str:
    return lease.decode().partition(" ")[0]
