"""Idempotency keys: a repeated request gets the first response, and nothing is done twice.

Keys live in the store, so every worker sees them. A key whose worker died is taken over.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message
from foldline.errors import StoreError
from foldline.service.presence import Presence
from foldline.service.problems import Refused, problem
from foldline.session.session import Session
from foldline.stores import key_values
from foldline.stores.key_values import pack, unpack

log = logging.getLogger("foldline")

SPACE: Final = "idempotency"
KEYS: Final = 10_000  # stored for each tenant
SECONDS: Final = 86_400.0  # that a key is stored
LONGEST: Final = 255  # characters of a key
TRIMMED: Final = 64  # keys taken by a worker between two deletions of the oldest
POLLS: Final = (0.01, 0.02, 0.04, 0.08)  # seconds between the first polls of an open key
POLL: Final = 0.16  # and between all later ones
PATIENCE: Final = 60.0  # seconds to wait for another worker's response
BEHIND: Final = 256  # entries after a leaf in which messages are searched


class KeyReused(Refused):
    """The key was used for another request."""

    def __init__(self) -> None:
        super().__init__(422, "the idempotency key is taken", "it was sent with another request")


class KeyBusy(Refused):
    """The request with this key is still under way."""

    def __init__(self) -> None:
        super().__init__(
            409,
            "still under way",
            "the first request with this idempotency key has not finished: try again later",
        )


class StoredResponse(msgspec.Struct, frozen=True):
    """A response, stored to be sent again."""

    status: int
    body: bytes
    headers: dict[str, str]


class TurnRecord(msgspec.Struct):
    """The events of a turn so far, without deltas, and the leaf after its prompt."""

    leaf: str | None
    events: list[tuple[str, Any]] = []
    ended: bool = False


class KeyRecord(msgspec.Struct):
    """What is stored for a key: a digest of its request, the worker, and the response or the turn.

    `worker` is empty if the outcome of the request is unknown. `leaf` is the session's leaf before the
    request; `token` makes the ids of what the request creates, the same ones on a retry.
    """

    digest: bytes
    worker: str
    token: str
    leaf: str | None = None
    response: StoredResponse | None = msgspec.field(default=None, name="given")
    turn: TurnRecord | None = None


class KeyEntry(msgspec.Struct):
    """A key and its record, with the bytes that are stored.

    With `is_retry` an earlier attempt at its request may have succeeded.
    """

    key: str
    record: KeyRecord
    stored: bytes
    is_retry: bool = False


class IdempotencyKeys:
    """The newest keys of one tenant."""

    def __init__(self, presence: Presence, most: int = KEYS) -> None:
        self._presence = presence
        self._values = presence.values
        self._most = most
        self._count = itertools.count(1)

    async def take(
        self, key: str, request: bytes, *, session: str | None = None, leaf: str | None = None
    ) -> tuple[KeyEntry, bool]:
        """Return the entry of a key, and whether to run its request now; waits for another worker.

        `session` is the session of the request, `leaf` its leaf. Raises KeyReused if the key belongs to
        another request, KeyBusy if the other worker takes too long.
        """
        await self._presence.begin()
        digest = hashlib.sha256(request).digest()
        record = KeyRecord(digest, self._presence.id, secrets.token_hex(8), leaf)
        own = KeyEntry(key, record, pack(record))
        for wait in itertools.chain(POLLS, itertools.repeat(POLL, int(PATIENCE / POLL))):
            raw = await self._values.get(SPACE, key)  # a read costs far less than an attempt to write
            if raw is None:
                raw = await self._add(own, session)
            if raw is None or raw == own.stored:  # ours, even if the store's reply was lost
                break
            record = unpack(raw, KeyRecord)
            if record is None:  # written by another version: the outcome is unknown
                raise KeyBusy
            if record.digest != digest:
                raise KeyReused
            if record.response is not None or record.turn is not None:
                return KeyEntry(key, record, raw), False
            if not await self._presence.alive(record.worker):
                taken = msgspec.structs.replace(record, worker=self._presence.id)
                entry = KeyEntry(key, taken, pack(taken), is_retry=True)
                if await self._take_over(entry, raw):
                    return entry, True
                continue
            await asyncio.sleep(wait)
        else:
            raise KeyBusy
        if next(self._count) % TRIMMED == 0:
            await self._values.trim(SPACE, self._most)
        return own, True

    async def _add(self, entry: KeyEntry, session: str | None) -> bytes | None:
        """Store a new key; if that fails or is cancelled, delete the key later in case it was stored."""
        key, stored = entry.key, entry.stored
        try:
            return await self._values.add(SPACE, key, stored, seconds=SECONDS, session=session)
        except BaseException:
            self._presence.free_later(SPACE, key, stored)
            raise

    async def _take_over(self, entry: KeyEntry, raw: bytes) -> bool:
        """Take a key over; if that fails or is cancelled, free the key later."""
        try:
            return await self._values.replace(SPACE, entry.key, raw, entry.stored, seconds=SECONDS)
        except BaseException:
            freed = msgspec.structs.replace(entry.record, worker="")
            self._presence.owe(f"key {entry.record.token}", lambda: self._put(entry, freed))
            raise

    async def settle(self, entry: KeyEntry, response: StoredResponse | None) -> None:
        """Store the response or the turn of a key; with neither, nothing was done, and the key is freed."""
        if response is None and entry.record.turn is None:
            await self._presence.free(SPACE, entry.key, entry.stored)
            return
        record = msgspec.structs.replace(entry.record, response=response)
        if len(pack(record)) > key_values.LARGEST:
            record = msgspec.structs.replace(record, response=_too_large())
        await self._put_surely(entry, record)

    async def leave(self, entry: KeyEntry) -> None:
        """Release a key whose outcome is unknown: a retry has to find out."""
        await self._put_surely(entry, msgspec.structs.replace(entry.record, worker=""))

    async def _put_surely(self, entry: KeyEntry, record: KeyRecord) -> None:
        """Store the outcome of a key, later if the store does not answer now."""
        try:
            await self._put(entry, record)
        except StoreError as error:
            log.warning("the outcome of an idempotency key will be stored later: %s", error)
            self._presence.owe(f"key {entry.record.token}", lambda: self._put(entry, record))

    async def _put(self, entry: KeyEntry, record: KeyRecord) -> None:
        stored = pack(record)
        if await self._values.replace(SPACE, entry.key, entry.stored, stored, seconds=SECONDS):
            entry.record, entry.stored = record, stored


def _too_large() -> StoredResponse:
    response = problem(409, "it was done", "the first response is too large to send again: read the session")
    return StoredResponse(response.status_code, bytes(response.body), dict(response.headers))


# ---- whether a request whose worker died was done


async def stored_before(session: Session, leaf: str | None, messages: Sequence[Any]) -> list[str] | None:
    """Return the entries of messages that were already appended after a leaf; None if they were not."""
    most = len(messages) + BEHIND
    path = await session.store.tail(session.id, most)
    place = next((n for n, entry in enumerate(path) if entry.id == leaf), -1)
    if place < 0 and leaf is not None and len(path) < most:  # the path no longer leads over the leaf
        return None
    said = [entry for entry in path[place + 1 :] if isinstance(entry, Said)]
    for first in range(len(said) - len(messages) + 1):
        run = said[first : first + len(messages)]
        if all(_same(entry.message, message) for entry, message in zip(run, messages, strict=True)):
            return [entry.id for entry in run]
    return None


def _same(stored: Message, sent: Any) -> bool:
    if isinstance(sent, Message):
        return (stored.role, stored.parts) == (sent.role, sent.parts)
    return stored.native is not None and msgspec.json.decode(stored.native.raw) == sent
