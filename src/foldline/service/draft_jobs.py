"""The drafts of a tenant's sessions: one of each, made by one worker, and found in the store by all of them.

A worker that makes one holds its row. Where that worker dies, the next that needs the draft begins it anew,
once; where the row goes (the session was deleted, a boundary undone or made by hand), the draft is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec

from foldline.core.compact.plan import Outcome
from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import Nothing
from foldline.errors import CompactionFailed, StoreError
from foldline.service.presence import Presence
from foldline.service.rate import RateLimit
from foldline.session.jobs import DraftJob
from foldline.stores.key_values import KeyValues

log = logging.getLogger("foldline")

SPACE: Final = "draft"
SECONDS: Final = 86_400.0  # that a draft is kept
JOB_SECONDS: Final = 3_600.0  # that a job may wait and work before its session may have another one
MAKINGS: Final = 2  # times that one draft is begun: a paid call is repeated once
POLL_SECONDS: Final = 0.25
TOLD_SECONDS: Final = 600.0  # that a failure is kept for who asked
WATCH_SECONDS: Final = 1.0  # between two looks at whether it is still wanted

Here = Callable[[], Awaitable[Outcome]]


class DraftRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The draft of a session as it is stored; `begun` counts the workers that have begun to make it.

    `id` names a job that goes on without the worker that asked for it, `job` is what it makes, of sessions
    that go on with `model`; `nothing` and `error` say why that made no draft.
    """

    worker: str
    begun: int = 1
    draft: Draft | None = None
    id: str = ""
    job: DraftJob | None = None
    model: str | None = None
    nothing: Nothing | None = None
    error: str = ""

    @property
    def seconds(self) -> float:
        """How long it may stand."""
        return SECONDS if self.job is None else JOB_SECONDS


class DraftLimit:
    """How many drafts of each provider one worker makes at once, and all of them in a minute."""

    def __init__(self, values: KeyValues, at_once: int = 8, per_minute: int = 0) -> None:
        self._at_once = at_once
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._values = values
        self._per_minute = per_minute
        self._rates: dict[str, RateLimit] = {}

    async def made(self, provider: str, here: Here) -> Outcome:
        """Make a draft when its turn comes."""
        rate = self._rates.setdefault(
            provider, RateLimit(self._values, f"drafts {provider}", self._per_minute)
        )
        async with self._slots.setdefault(provider, asyncio.Semaphore(self._at_once)):
            while (seconds := await rate.wait()) > 0:  # noqa: ASYNC110 - other workers count too
                await asyncio.sleep(seconds)
            return await here()


class StoredJobs:
    """Has each draft made in this process, unless another one makes it."""

    def __init__(self, presence: Presence, limit: DraftLimit | None = None) -> None:
        self.presence = presence
        self.values = presence.values
        self._limit = limit or DraftLimit(presence.values)
        self._known: dict[str, bytes] = {}  # rows of ready drafts that sessions of this process have
        self._dropping: dict[str, asyncio.Task[None]] = {}
        self._making: set[str] = set()  # sessions whose draft is made here

    async def make(self, job: DraftJob, here: Here) -> Draft | Nothing | None:
        """Make a draft here, or return the one that another worker makes."""
        held = await self.claim(job.session, DraftRow(self.presence.id))
        if not isinstance(held, DraftRow):
            return held
        provider = job.prefix.model.partition(":")[0] if job.prefix is not None else "own"
        return await self.made(job, held, lambda: self._limit.made(provider, here))

    async def claim(self, session: str, mine: DraftRow) -> DraftRow | Draft | Nothing | None:
        """Return the row that is ours from now on; else what another one made, None where that was stopped.

        Raises CompactionFailed where that failed, or too many workers have died over it.
        """
        await self.presence.begin()
        if (dropping := self._dropping.get(session)) is not None:
            await dropping
        waited = False
        while True:
            raw = await self.values.get(SPACE, session)
            if raw is None:
                if waited:
                    return None
                put = packed(mine)
                there = await self.values.add(SPACE, session, put, seconds=mine.seconds, session=session)
                if there is None or (mine.id and there == put):  # ours, though the answer was lost
                    return mine
                continue
            known = unpacked(raw)
            if known is not None and known.draft is not None:
                self._known[session] = raw
                return known.draft
            if known is not None and (known.error or known.nothing is not None):
                return await self._failed(session, raw, known)
            if known is None or not await self._at_work(session, known):
                if (taken := await self._taken_over(session, raw, known, mine)) is not None:
                    return taken
                continue
            waited = True
            await asyncio.sleep(POLL_SECONDS)

    async def _failed(self, session: str, raw: bytes, known: DraftRow) -> Nothing | None:
        """Return why a job made no draft, or raise what it failed with; then its place is free."""
        await self.values.delete(SPACE, session, raw)
        if known.error:
            raise CompactionFailed(known.error)
        return known.nothing

    async def _taken_over(
        self, session: str, raw: bytes, known: DraftRow | None, mine: DraftRow
    ) -> DraftRow | None:
        """Take the row of a dead worker; None where another one was faster."""
        begun = 0 if known is None else known.begun
        if begun >= MAKINGS:
            await self.values.delete(SPACE, session, raw)
            raise CompactionFailed(f"{begun} processes died while they made the draft")
        mine = msgspec.structs.replace(mine, begun=begun + mine.begun)
        taken = await self.values.replace(SPACE, session, raw, packed(mine), seconds=mine.seconds)
        return mine if taken else None

    async def made_elsewhere(self, session: str, name: str) -> Draft | Nothing | None:
        """Wait for the draft that a job of this name makes; None where it is cancelled."""
        while True:
            raw = await self.values.get(SPACE, session)
            known = None if raw is None else unpacked(raw)
            if raw is None or known is None or known.id != name:
                return None
            if known.draft is not None:
                self._known[session] = raw
                return known.draft
            if known.error or known.nothing is not None:
                return await self._failed(session, raw, known)
            if not await self._at_work(session, known):  # its worker died; who needs it begins another one
                return None
            await asyncio.sleep(POLL_SECONDS)

    async def made(self, job: DraftJob, held: DraftRow, here: Here) -> Draft | Nothing | None:
        """Make a draft here, for a row that is ours; it is cancelled where the row goes."""
        raw = packed(held)
        making = asyncio.ensure_future(here())
        self._making.add(job.session)
        try:
            while not (await asyncio.wait([making], timeout=WATCH_SECONDS))[0]:
                if await self._unwanted(job.session, raw):
                    return None
            outcome = making.result()
        except Exception as error:
            await self._end(job.session, raw, msgspec.structs.replace(held, error=str(error) or repr(error)))
            raise
        except BaseException:
            if not held.id:  # a job is another worker's from now on
                await self._give_up(job.session, raw)
            raise
        finally:
            self._making.discard(job.session)
            if not making.done():
                making.cancel()
                await asyncio.wait([making])
        if isinstance(outcome, Nothing):
            await self._end(job.session, raw, msgspec.structs.replace(held, nothing=outcome))
            return outcome
        receipt = msgspec.structs.replace(outcome.receipt, repeated=held.begun - 1)
        boundary = msgspec.structs.replace(outcome, receipt=receipt)
        draft = msgspec.structs.replace(job.base, boundary=boundary)
        return draft if await self._keep(job.session, raw, held, draft) else None

    async def _keep(self, session: str, raw: bytes, held: DraftRow, draft: Draft) -> bool:
        """Store a draft that was made; return whether it is still wanted."""
        ready = packed(msgspec.structs.replace(held, draft=draft, job=None))
        try:
            kept = await self.values.replace(SPACE, session, raw, ready, seconds=SECONDS)
        except StoreError as error:  # the session has it all the same
            log.warning("session %s: a draft could not be stored for others: %s", session, error)
            await self._give_up(session, raw)
            return True
        if kept:
            self._known[session] = ready
        return kept

    async def _end(self, session: str, raw: bytes, failed: DraftRow) -> None:
        """Give the place of a draft back; a job leaves in it why there is none, for who asked for it."""
        if not failed.id:
            await self._give_up(session, raw)
            return
        told = packed(msgspec.structs.replace(failed, job=None))
        await self.values.replace(SPACE, session, raw, told, seconds=TOLD_SECONDS)

    async def _unwanted(self, session: str, raw: bytes) -> bool:
        try:
            return await self.values.get(SPACE, session) != raw
        except StoreError:
            return False

    async def _give_up(self, session: str, raw: bytes) -> None:
        try:
            await asyncio.shield(self.values.delete(SPACE, session, raw))
        except StoreError as error:
            log.warning("session %s: the place of a draft is given back later: %s", session, error)
            self.presence.owe(f"draft {session}", lambda: self.values.delete(SPACE, session, raw))

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return the draft that another worker has made, or that it makes one."""
        raw = await self.values.get(SPACE, session)
        known = None if raw is None else unpacked(raw)
        if raw is None or known is None:
            return None
        if known.draft is not None:
            self._known[session] = raw
            return known.draft
        if known.error or known.nothing is not None:  # who begins another one is told
            return None
        return "making" if await self._at_work(session, known) else None

    async def _at_work(self, session: str, row: DraftRow) -> bool:
        """Whether a draft is still made, or a job waits, of a worker that is alive."""
        if row.worker == self.presence.id and not row.id:
            return session in self._making
        return await self.presence.alive(row.worker)

    def drop(self, session: str) -> None:
        """Forget the draft that a session of this process has."""
        raw = self._known.pop(session, None)
        if raw is not None:
            task = asyncio.ensure_future(self._give_up(session, raw))
            self._dropping[session] = task
            task.add_done_callback(lambda _: self._dropping.pop(session, None))

    async def cancel(self, session: str) -> int:
        """Have no draft of a session made; return how many workers have died over it."""
        self._known.pop(session, None)
        raw = await self.values.get(SPACE, session)
        if raw is None:
            return 0
        await self.values.delete(SPACE, session)
        known = unpacked(raw)
        if known is None or known.draft is not None or await self._at_work(session, known):
            return 0
        return known.begun

    async def close(self) -> None:
        """Let what is dropped be gone."""
        if self._dropping:
            await asyncio.wait(self._dropping.values())


def packed(row: DraftRow) -> bytes:
    """Return a row as it is stored."""
    return zlib.compress(msgspec.msgpack.encode(row), 1)


def unpacked(raw: bytes) -> DraftRow | None:
    """Return a stored row; None for one that another version of this service wrote."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(raw), type=DraftRow)
    except (msgspec.DecodeError, zlib.error):
        return None
