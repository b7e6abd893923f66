"""Idempotency keys: what was answered to a key is answered again, and nothing is done twice."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import Any, Final

import msgspec

KEYS: Final = 1_000  # of a tenant that are remembered
LONGEST: Final = 255  # characters of a key
LARGEST: Final = 256 * 1024  # bytes of an answer that is remembered


class KeyReused(Exception):
    """The key was used for another request."""


class KeyBusy(Exception):
    """The request with this key is still under way."""


class Given(msgspec.Struct, frozen=True):
    """An answer, to be given again."""

    status: int
    body: bytes
    headers: dict[str, str]


class TurnRecord(msgspec.Struct):
    """What a turn has told so far: the leaf behind its prompt, and its events but for deltas."""

    leaf: str | None
    events: list[tuple[str, Any]] = []
    ended: bool = False


class Remembered(msgspec.Struct):
    """What is known of a key: a digest of its request, and its answer, or its turn."""

    digest: bytes
    ready: asyncio.Event
    given: Given | None = None
    turn: TurnRecord | None = None


class IdempotencyKeys:
    """The keys of one tenant, the newest of them."""

    def __init__(self, most: int = KEYS) -> None:
        self._most = most
        self._known: OrderedDict[str, Remembered] = OrderedDict()

    async def take(self, key: str, request: bytes) -> tuple[Remembered, bool]:
        """Return what is known of a key, and whether it is new; waits for the first answer to it.

        Raises KeyReused where it was another request's.
        """
        digest = hashlib.sha256(request).digest()
        while (known := self._known.get(key)) is not None:
            if known.digest != digest:
                raise KeyReused(key)
            await known.ready.wait()
            if self._known.get(key) is known:
                return known, False
        known = self._known[key] = Remembered(digest, asyncio.Event())
        return known, True

    def settle(self, key: str, known: Remembered, given: Given | None) -> None:
        """Keep the answer to a key; without one (nothing was done) the key is free again."""
        small = given is not None and len(given.body) <= LARGEST
        known.given = given if small else None
        if known.given is None and known.turn is None and self._known.get(key) is known:
            del self._known[key]
        known.ready.set()
        for name in [n for n, one in self._known.items() if one.ready.is_set()]:
            if len(self._known) <= self._most:
                break
            del self._known[name]
