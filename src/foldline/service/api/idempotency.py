"""Idempotency keys: what was answered to a key is answered again, and nothing is done twice.

They stand in the store, so that any worker knows them. One whose worker has died is taken over.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
from typing import Any, Final

import msgspec

from foldline.errors import StoreError
from foldline.service.presence import Presence

log = logging.getLogger("foldline")

SPACE: Final = "idempotency"
KEYS: Final = 10_000  # of a tenant that are remembered
SECONDS: Final = 86_400.0  # that one is remembered
LONGEST: Final = 255  # characters of a key
LARGEST: Final = 256 * 1024  # bytes of an answer that is remembered
TRIMMED: Final = 64  # keys of a worker after which it forgets the oldest
POLLS: Final = (0.01, 0.02, 0.04, 0.08)  # seconds between the first looks at a key that is open
POLL: Final = 0.16  # and between all later ones
PATIENCE: Final = 60.0  # seconds that another worker's answer is waited for
RETRIES: Final = (0.1, 0.4, 1.6)  # seconds until an answer is stored again after the store has failed

_encoder = msgspec.msgpack.Encoder()


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


class KeyRecord(msgspec.Struct, frozen=True):
    """What is stored of a key: a digest of its request, who answers it, and its answer or its turn.

    `leaf` is that of the request's session before it was answered.
    """

    digest: bytes
    worker: str
    leaf: str | None = None
    given: Given | None = None
    turn: TurnRecord | None = None


class Remembered:
    """A key that is being answered, or was; `again` says that a worker died while it answered it."""

    def __init__(
        self, key: str, record: KeyRecord, stored: bytes | None = None, *, again: bool = False
    ) -> None:
        self.key = key
        self.record = record
        self.stored = _encoder.encode(record) if stored is None else stored
        self.again = again
        self.turn = record.turn

    @property
    def given(self) -> Given | None:
        """The answer, where there is one."""
        return self.record.given


class IdempotencyKeys:
    """The keys of one tenant, the newest of them."""

    def __init__(self, presence: Presence, most: int = KEYS) -> None:
        self._presence = presence
        self._values = presence.values
        self._most = most
        self._count = itertools.count(1)

    async def take(
        self, key: str, request: bytes, *, session: str | None = None, leaf: str | None = None
    ) -> tuple[Remembered, bool]:
        """Return what is known of a key, and whether it is to be answered now; waits for another worker.

        `session` is the one that the request is about, `leaf` that session's. Raises KeyReused where the key
        was another request's, KeyBusy where the other worker takes too long.
        """
        await self._presence.begin()
        mine = Remembered(key, KeyRecord(hashlib.sha256(request).digest(), self._presence.id, leaf))
        for wait in itertools.chain(POLLS, itertools.repeat(POLL, int(PATIENCE / POLL))):
            raw = await self._values.add(SPACE, key, mine.stored, seconds=SECONDS, session=session)
            if raw is None:
                break
            known = Remembered(key, _decoded(raw), raw)
            if known.record.digest != mine.record.digest:
                raise KeyReused(key)
            if known.given is not None or known.turn is not None:
                return known, False
            if not await self._presence.alive(known.record.worker):
                found = msgspec.structs.replace(known.record, worker=self._presence.id)
                taken = Remembered(key, found, again=True)
                if await self._values.replace(SPACE, key, raw, taken.stored, seconds=SECONDS):
                    return taken, True
                continue
            await asyncio.sleep(wait)
        else:
            raise KeyBusy(key)
        if next(self._count) % TRIMMED == 0:
            await self._values.trim(SPACE, self._most)
        return mine, True

    async def settle(self, known: Remembered, given: Given | None) -> None:
        """Keep the answer to a key, or its turn; without one (nothing was done) the key is free again."""
        for wait in RETRIES:
            try:
                return await self._settle(known, given)
            except StoreError as error:
                log.warning("the answer to a key could not be stored: %s", error)
                await asyncio.sleep(wait)
        return await self._settle(known, given)

    async def _settle(self, known: Remembered, given: Given | None) -> None:
        small = given if given is not None and len(given.body) <= LARGEST else None
        record = msgspec.structs.replace(known.record, given=small, turn=known.turn)
        if small is None and known.turn is None:
            await self._values.delete(SPACE, known.key, known.stored)
            return
        stored = _encoder.encode(record)
        if await self._values.replace(SPACE, known.key, known.stored, stored, seconds=SECONDS):
            known.record, known.stored = record, stored


def _decoded(raw: bytes) -> KeyRecord:
    try:
        return msgspec.msgpack.decode(raw, type=KeyRecord)
    except msgspec.DecodeError as error:
        raise StoreError(f"an idempotency key cannot be read: {error}") from error
