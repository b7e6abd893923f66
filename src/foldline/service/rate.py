"""Rate limits per minute, shared by all workers of a store."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import Final

import msgspec

from foldline.errors import StoreError
from foldline.service.at_hand import at_hand
from foldline.stores.key_values import KeyValues

log = logging.getLogger("foldline")

SPACE: Final = "rate"
SECONDS: Final = 120.0  # after which an unused bucket is full
AWAY_SECONDS: Final = 5.0  # without counting after the store has failed
TRIES: Final = 8  # attempts to take a share while other workers take theirs


class Bucket(msgspec.Struct, frozen=True):
    """A token bucket: what was left in it, and when (Unix time)."""

    left: float
    at: float


class RateLimit:
    """A token bucket in the store; each worker takes a second's share of it in advance.

    With `told`, responses have the headers of draft-ietf-httpapi-ratelimit-headers-10. They say what this
    worker knows: others may have taken more.
    """

    def __init__(self, values: KeyValues, name: str, per_minute: int, *, told: bool = False) -> None:
        self._values = values
        self._name = name
        self._capacity = float(per_minute)
        self._share = max(1.0, per_minute // 60)
        self._ahead = 0.0
        self._left = self._capacity  # in the bucket when this worker last read it
        self._sends_headers = told
        self._taking = asyncio.Lock()  # tasks of one worker do not compete for the row
        self._away_until = 0.0  # monotonic

    async def wait(self) -> float:
        """Count one use; return how many seconds it is too early, 0 if it is allowed."""
        if not self._capacity:
            return 0.0
        async with self._taking:
            wait = await self._count()
        if self._sends_headers:
            left = int(self._left + self._ahead)
            reset = math.ceil((self._capacity - left) * 60.0 / self._capacity)
            at_hand().headers |= {
                "ratelimit-policy": f'"{self._name}";q={self._capacity:.0f};w=60',
                "ratelimit": f'"{self._name}";r={left};t={reset}',
            }
        return wait

    async def _count(self) -> float:
        if time.monotonic() < self._away_until:
            return 0.0
        if self._ahead < 1.0:
            try:
                left = await self._take()
            except StoreError as error:
                log.warning("a rate limit is off for %g s: %s", AWAY_SECONDS, error)
                self._away_until = time.monotonic() + AWAY_SECONDS
                return 0.0
            if self._ahead < 1.0:
                return max(0.1, (1.0 - left) * 60.0 / self._capacity)
        self._ahead -= 1.0
        return 0.0

    async def _take(self) -> float:
        """Take a share in advance; return what was left, less than 1 if nothing could be taken."""
        for _ in range(TRIES):
            now = time.time()
            raw = await self._values.get(SPACE, self._name)
            bucket = Bucket(self._capacity, now) if raw is None else msgspec.msgpack.decode(raw, type=Bucket)
            now = max(now, bucket.at)  # another machine's clock may be ahead
            left = min(self._capacity, bucket.left + (now - bucket.at) * self._capacity / 60.0)
            if left < 1.0:
                self._left = left
                return left
            taken = min(self._share, left // 1)
            updated = msgspec.msgpack.encode(Bucket(left - taken, now))
            if raw is None:
                stored = await self._values.add(SPACE, self._name, updated, seconds=SECONDS) is None
            else:
                stored = await self._values.replace(SPACE, self._name, raw, updated, seconds=SECONDS)
            if stored:
                self._ahead += taken
                self._left = left - taken
                return left
        return 0.0  # other workers were faster each time
