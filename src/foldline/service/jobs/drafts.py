"""The drafts of a tenant's sessions: one per session, made by one worker, shared through the store.

The worker that makes a draft holds its row, where the draft then waits to be committed. If the worker dies,
the next one that needs the draft starts it again, once. If the row is deleted (the session was deleted, or a
fold was undone or made by hand), the draft is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Literal

import msgspec

from foldline.core.compact.plan import Outcome
from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import Nothing
from foldline.errors import CompactionFailed, StoreError
from foldline.service.presence import Leases, Presence
from foldline.service.rate import RateLimit
from foldline.session.jobs import DraftJob
from foldline.stores.key_values import KeyValues, pack, unpack

log = logging.getLogger("foldline")

ROWS: Final = "draft"
SECONDS: Final = 86_400.0  # a draft is kept
MAKINGS: Final = 2  # attempts at one draft: a paid call is repeated once
POLL_SECONDS: Final = 0.25
WATCH_SECONDS: Final = 1.0  # between checks whether it is still wanted

Here = Callable[[], Awaitable[Outcome]]


class DraftRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The stored draft of a session; `begun` counts the workers that have started to make it."""

    worker: str
    begun: int = 1
    draft: Draft | None = None


class DraftLimit:
    """Limits the drafts of each provider: those at once in one worker, and those per minute in all."""

    def __init__(self, values: KeyValues, at_once: int = 8, per_minute: int = 0) -> None:
        self._at_once = at_once
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._values = values
        self._per_minute = per_minute
        self._rates: dict[str, RateLimit] = {}

    async def run(self, provider: str, here: Here) -> Outcome:
        """Make a draft as soon as the limits allow."""
        limit = RateLimit(self._values, f"drafts {provider}", self._per_minute)
        rate = self._rates.setdefault(provider, limit)
        async with self._slots.setdefault(provider, asyncio.Semaphore(self._at_once)):
            while (wait := await rate.wait()) > 0:  # noqa: ASYNC110 - other workers count too
                await asyncio.sleep(wait)
            return await here()


class StoredDrafts:
    """Makes each draft in this process unless another one makes it."""

    def __init__(self, presence: Presence, limit: DraftLimit | None = None) -> None:
        self.presence = presence
        self.values = presence.values
        self._limit = limit or DraftLimit(presence.values)
        self._turns = Leases(presence, "compaction")
        self._ready: dict[str, bytes] = {}  # rows of finished drafts that sessions of this process have
        self._dropping: dict[str, asyncio.Task[None]] = {}
        self._in_progress: set[str] = set()  # sessions whose draft this worker is making

    async def make(self, job: DraftJob, here: Here) -> Draft | Nothing | None:
        """Make a draft here, or return another worker's."""
        try:
            held = await self._claim(job.session)
        except BaseException:  # our row may have been stored, with no task for it
            self.presence.owe(f"claim {job.session}", lambda: self._delete_idle_row(job.session))
            raise
        return await self._make(job, held, here) if isinstance(held, DraftRow) else held

    async def _claim(self, session: str) -> DraftRow | Draft | None:
        """Return our new row; otherwise another worker's draft, None if it made none.

        Raises CompactionFailed if too many workers died while making it.
        """
        await self.presence.begin()
        if (dropping := self._dropping.get(session)) is not None:
            await dropping
        own = DraftRow(self.presence.id)
        waited = False
        while True:
            raw, row = await self._stored(session)
            if raw is None:
                if waited:
                    return None
                if await self.values.add(ROWS, session, pack(own), seconds=SECONDS, session=session) is None:
                    return own
                continue
            if row is not None and row.draft is not None:
                self._ready[session] = raw
                return row.draft
            if row is None or not await self._is_being_made(session, row):
                if (taken := await self._take_over(session, raw, row)) is not None:
                    return taken
                continue
            waited = True
            await asyncio.sleep(POLL_SECONDS)

    async def _take_over(self, session: str, raw: bytes, row: DraftRow | None) -> DraftRow | None:
        """Take the row of a dead worker; None if another worker was faster."""
        makings = 0 if row is None else row.begun
        if makings >= MAKINGS:
            await self.values.delete(ROWS, session, raw)
            raise CompactionFailed(f"{makings} processes died while making the draft")
        own = DraftRow(self.presence.id, makings + 1)
        replaced = await self.values.replace(ROWS, session, raw, pack(own), seconds=SECONDS)
        return own if replaced else None

    async def _make(self, job: DraftJob, held: DraftRow, here: Here) -> Draft | Nothing | None:
        """Make a draft for our row; cancel it if the row is deleted."""
        session, raw = job.session, pack(held)
        model = job.prefix.model if job.prefix is not None else "own"
        task = asyncio.ensure_future(self._limit.run(model.partition(":")[0], here))
        self._in_progress.add(session)
        try:
            while not (await asyncio.wait([task], timeout=WATCH_SECONDS))[0]:
                if await self._is_unwanted(session, raw):
                    return None
            outcome = task.result()
        except BaseException:
            await self._release(session, raw)
            raise
        finally:
            self._in_progress.discard(session)
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
        if isinstance(outcome, Nothing):
            await self._release(session, raw)
            return outcome
        receipt = msgspec.structs.replace(outcome.receipt, repeated=held.begun - 1)
        boundary = msgspec.structs.replace(outcome, receipt=receipt)
        draft = msgspec.structs.replace(job.base, boundary=boundary)
        wanted = await self._keep(session, raw, msgspec.structs.replace(held, draft=draft))
        return draft if wanted else None

    async def _keep(self, session: str, raw: bytes, row: DraftRow) -> bool:
        """Store a finished draft; return whether it is still wanted."""
        raw_row = pack(row)
        try:
            stored = await self.values.replace(ROWS, session, raw, raw_row, seconds=SECONDS)
        except StoreError as error:  # the session has it anyway
            log.warning("session %s: a draft could not be stored for others: %s", session, error)
            await self._release(session, raw)
            return True
        if stored:
            self._ready[session] = raw_row
        return stored

    async def _is_unwanted(self, session: str, raw: bytes) -> bool:
        try:
            return await self.values.get(ROWS, session) != raw
        except StoreError:
            return False

    async def _release(self, session: str, raw: bytes) -> None:
        await asyncio.shield(self.presence.free(ROWS, session, raw))

    async def _stored(self, session: str) -> tuple[bytes | None, DraftRow | None]:
        """Return the row of a session as it is stored, and read (None: there is none, or it cannot be)."""
        raw = await self.values.get(ROWS, session)
        return raw, None if raw is None else unpack(raw, DraftRow)

    async def _delete_idle_row(self, session: str) -> None:
        """Delete a row of this worker that no task is working on."""
        raw, row = await self._stored(session)
        idle = row is not None and row.draft is None and row.worker == self.presence.id
        if idle and session not in self._in_progress:
            await self.values.delete(ROWS, session, raw)

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return another worker's draft, or "making" while it is not finished."""
        raw, row = await self._stored(session)
        if raw is None or row is None:
            return None
        if row.draft is not None:
            self._ready[session] = raw
            return row.draft
        return "making" if await self._is_being_made(session, row) else None

    async def _is_being_made(self, session: str, row: DraftRow) -> bool:
        """Return whether a live worker is making a draft."""
        if row.worker == self.presence.id:
            return session in self._in_progress
        return await self.presence.alive(row.worker)

    def drop(self, session: str) -> None:
        """Delete the draft that a session of this process has."""
        raw = self._ready.pop(session, None)
        if raw is not None:
            task = asyncio.ensure_future(self._release(session, raw))
            self._dropping[session] = task
            task.add_done_callback(lambda _: self._dropping.pop(session, None))

    async def cancel(self, session: str) -> int:
        """Cancel the draft of a session; return how many workers died while making it."""
        self._ready.pop(session, None)
        raw, row = await self._stored(session)
        if raw is None:
            return 0
        await self.values.delete(ROWS, session)
        if row is None or row.draft is not None or await self._is_being_made(session, row):
            return 0
        return row.begun

    @asynccontextmanager
    async def turn(self, session: str) -> AsyncGenerator[bool]:
        """Hold the lock to compact a session, so that only one worker pays for it."""
        while await self._turns.held(session) or not await self._turns.take(session):  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        try:
            yield True
        finally:
            await asyncio.shield(self._turns.release(session))

    async def close(self) -> None:
        """Wait until dropped drafts are deleted."""
        if self._dropping:
            await asyncio.wait(list(self._dropping.values()))
