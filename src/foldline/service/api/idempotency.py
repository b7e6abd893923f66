"""Idempotency keys: what was answered to a key is answered again, and nothing is done twice.

They stand in the store, so that any worker knows them. One whose worker has died is taken over.
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
KEYS: Final = 10_000  # of a tenant that are remembered
SECONDS: Final = 86_400.0  # that one is remembered
LONGEST: Final = 255  # characters of a key
TRIMMED: Final = 64  # keys of a worker after which it forgets the oldest
POLLS: Final = (0.01, 0.02, 0.04, 0.08)  # seconds between the first looks at a key that is open
POLL: Final = 0.16  # and between all later ones
PATIENCE: Final = 60.0  # seconds that another worker's answer is waited for
BEHIND: Final = 256  # entries behind a leaf among which messages are looked for


class KeyReused(Refused):
    """The key was used for another request."""

    def __init__(self) -> None:
        super().__init__(422, "the idempotency key is taken", "it was sent with another request")


class KeyBusy(Refused):
    """The request with this key is still under way."""

    def __init__(self) -> None:
        super().__init__(409, "still under way", "the request with this idempotency key has not ended")


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

    `worker` is empty where it is not known what became of the request. `leaf` is that of its session before
    it was answered; `token` names what the request begins, the same where it is sent again.
    """

    digest: bytes
    worker: str
    token: str
    leaf: str | None = None
    given: Given | None = None
    turn: TurnRecord | None = None


class Remembered:
    """A key that is being answered, or was; `again` says that an earlier try may have done it."""

    def __init__(
        self, key: str, record: KeyRecord, stored: bytes | None = None, *, again: bool = False
    ) -> None:
        self.key = key
        self.record = record
        self.stored = pack(record) if stored is None else stored
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
        digest = hashlib.sha256(request).digest()
        mine = Remembered(key, KeyRecord(digest, self._presence.id, secrets.token_hex(8), leaf))
        for wait in itertools.chain(POLLS, itertools.repeat(POLL, int(PATIENCE / POLL))):
            raw = await self._values.get(SPACE, key)  # a look costs far less than a try to write
            if raw is None:
                raw = await self._added(mine, session)
            if raw is None or raw == mine.stored:  # ours, also where the store's answer was lost
                break
            record = unpack(raw, KeyRecord)
            if record is None:  # of another version: it is not known what was done
                raise KeyBusy
            known = Remembered(key, record, raw)
            if known.record.digest != mine.record.digest:
                raise KeyReused
            if known.given is not None or known.turn is not None:
                return known, False
            if not await self._presence.alive(known.record.worker):
                found = msgspec.structs.replace(known.record, worker=self._presence.id)
                taken = Remembered(key, found, again=True)
                if await self._taken_over(taken, raw):
                    return taken, True
                continue
            await asyncio.sleep(wait)
        else:
            raise KeyBusy
        if next(self._count) % TRIMMED == 0:
            await self._values.trim(SPACE, self._most)
        return mine, True

    async def _added(self, mine: Remembered, session: str | None) -> bytes | None:
        """Put a key where none is; where that fails or is cancelled it may be there, and goes later."""
        try:
            return await self._values.add(SPACE, mine.key, mine.stored, seconds=SECONDS, session=session)
        except BaseException:
            token, key, stored = mine.record.token, mine.key, mine.stored
            self._presence.owe(f"key {token}", lambda: self._values.delete(SPACE, key, stored))
            raise

    async def _taken_over(self, taken: Remembered, raw: bytes) -> bool:
        """Take a key over; where that fails or is cancelled, it is nobody's later."""
        try:
            return await self._values.replace(SPACE, taken.key, raw, taken.stored, seconds=SECONDS)
        except BaseException:
            open_ = msgspec.structs.replace(taken.record, worker="")
            self._presence.owe(f"key {taken.record.token}", lambda: self._put(taken, open_))
            raise

    async def settle(self, known: Remembered, given: Given | None) -> None:
        """Keep the answer to a key, or its turn; without one (nothing was done) the key is free again."""
        if given is None and known.turn is None:
            await self._surely(known, None)
            return
        record = msgspec.structs.replace(known.record, given=given, turn=known.turn)
        if len(pack(record)) > key_values.LARGEST:
            record = msgspec.structs.replace(record, given=_too_large())
        await self._surely(known, record)

    async def leave(self, known: Remembered) -> None:
        """Leave a key of which it is not known what was done: who sends it again finds out."""
        await self._surely(known, msgspec.structs.replace(known.record, worker="", turn=known.turn))

    async def _surely(self, known: Remembered, record: KeyRecord | None) -> None:
        """Store what became of a key; where the store is away, when it is back."""
        try:
            await self._put(known, record)
        except StoreError as error:
            log.warning("what became of a key is stored later: %s", error)
            self._presence.owe(f"key {known.record.token}", lambda: self._put(known, record))

    async def _put(self, known: Remembered, record: KeyRecord | None) -> None:
        if record is None:
            await self._values.delete(SPACE, known.key, known.stored)
            return
        stored = pack(record)
        if await self._values.replace(SPACE, known.key, known.stored, stored, seconds=SECONDS):
            known.record, known.stored = record, stored


def _too_large() -> Given:
    told = problem(409, "it was done", "its answer is too large to be given again: read what it has changed")
    return Given(told.status_code, bytes(told.body), dict(told.headers))


# ---- whether a request whose worker died was done


async def stored_before(session: Session, leaf: str | None, messages: Sequence[Any]) -> list[str] | None:
    """Return the entries of messages that stand behind a leaf already; None where they do not."""
    path = await session.store.tail(session.id, len(messages) + BEHIND)
    place = next((n for n, entry in enumerate(path) if entry.id == leaf), -1)
    said = [entry for entry in path[place + 1 :] if isinstance(entry, Said)]
    for first in range(len(said) - len(messages) + 1):
        here = said[first : first + len(messages)]
        if all(_same(entry.message, message) for entry, message in zip(here, messages, strict=True)):
            return [entry.id for entry in here]
    return None


def _same(stored: Message, given: Any) -> bool:
    if isinstance(given, Message):
        return (stored.role, stored.parts) == (given.role, given.parts)
    return stored.native is not None and msgspec.json.decode(stored.native.raw) == given
