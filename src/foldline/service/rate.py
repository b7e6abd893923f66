"""How often something may be done a minute, by all workers over one store together."""

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
SECONDS: Final = 120.0  # after which a bucket that nobody took from is full
AWAY_SECONDS: Final = 5.0  # that nothing is counted after the store has failed
TRIES: Final = 8  # times that a share is tried for while other workers take theirs


class Bucket(msgspec.Struct, frozen=True):
    """A token bucket: how much was left in it, and when, Unix time."""

    left: float
    at: float


class RateLimit:
    """A token bucket in the store; each worker takes what it needs in a second ahead, in one step.

    What is left is `told` in the answer to a request, as draft-ietf-httpapi-ratelimit-headers-10 has it: what
    this worker knows, for others may have taken more.
    """

    def __init__(self, values: KeyValues, name: str, per_minute: int, *, told: bool = False) -> None:
        self._values = values
        self._name = name
        self._most = float(per_minute)
        self._share = max(1.0, per_minute // 60)
        self._ahead = 0.0
        self._left = self._most  # in the bucket, when this worker looked last
        self._told = told
        self._taking = asyncio.Lock()  # those of one worker are not each other's rivals
        self._away_until = 0.0  # monotonic

    async def wait(self) -> float:
        """Count one; return how many seconds too early it is, 0 where it may be done."""
        if not self._most:
            return 0.0
        async with self._taking:
            wait = await self._counted()
        if self._told:
            left = int(self._left + self._ahead)
            full = math.ceil((self._most - left) * 60.0 / self._most)
            at_hand().headers |= {
                "ratelimit-policy": f'"{self._name}";q={self._most:.0f};w=60',
                "ratelimit": f'"{self._name}";r={left};t={full}',
            }
        return wait

    async def _counted(self) -> float:
        if time.monotonic() < self._away_until:
            return 0.0
        if self._ahead < 1.0:
            try:
                left = await self._take()
            except StoreError as error:
                log.warning("a rate is not counted for a while: %s", error)
                self._away_until = time.monotonic() + AWAY_SECONDS
                return 0.0
            if self._ahead < 1.0:
                return max(0.1, (1.0 - left) * 60.0 / self._most)
        self._ahead -= 1.0
        return 0.0

    async def _take(self) -> float:
        """Take a share ahead; return what was there, less than 1 where nothing could be taken."""
        for _ in range(TRIES):
            now = time.time()
            raw = await self._values.get(SPACE, self._name)
            known = Bucket(self._most, now) if raw is None else msgspec.msgpack.decode(raw, type=Bucket)
            now = max(now, known.at)  # another machine's clock may be ahead
            left = min(self._most, known.left + (now - known.at) * self._most / 60.0)
            if left < 1.0:
                self._left = left
                return left
            taken = min(self._share, left // 1)
            new = msgspec.msgpack.encode(Bucket(left - taken, now))
            if raw is None:
                done = await self._values.add(SPACE, self._name, new, seconds=SECONDS) is None
            else:
                done = await self._values.replace(SPACE, self._name, raw, new, seconds=SECONDS)
            if done:
                self._ahead += taken
                self._left = left - taken
                return left
        return 0.0  # other workers were faster each time
