"""The drafts of a tenant's sessions: one of each, made by one worker, and found in the store by all of them.

A worker that makes a draft holds its row, in which the draft then waits to be committed. Where that worker
dies, the next that needs the draft begins it anew, once; where the row goes (the session was deleted, a
boundary undone or made by hand), the draft is cancelled.
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
SECONDS: Final = 86_400.0  # that a draft is kept
MAKINGS: Final = 2  # times that one draft is begun: a paid call is repeated once
POLL_SECONDS: Final = 0.25
WATCH_SECONDS: Final = 1.0  # between two looks at whether it is still wanted

Here = Callable[[], Awaitable[Outcome]]


class DraftRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """The draft of a session as it is stored; `begun` counts the workers that have begun to make it."""

    worker: str
    begun: int = 1
    draft: Draft | None = None


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


class StoredDrafts:
    """Has each draft made in this process, unless another one makes it."""

    def __init__(self, presence: Presence, limit: DraftLimit | None = None) -> None:
        self.presence = presence
        self.values = presence.values
        self._limit = limit or DraftLimit(presence.values)
        self._turns = Leases(presence, "compaction")
        self._known: dict[str, bytes] = {}  # rows of ready drafts that sessions of this process have
        self._dropping: dict[str, asyncio.Task[None]] = {}
        self._making: set[str] = set()  # sessions whose draft is made here

    async def make(self, job: DraftJob, here: Here) -> Draft | Nothing | None:
        """Make a draft here, or return the one that another worker makes."""
        try:
            held = await self._claim(job.session)
        except BaseException:  # a row of ours may be there all the same, and nobody is at work on it
            self.presence.owe(f"claim {job.session}", lambda: self._abandon(job.session))
            raise
        return await self._made(job, held, here) if isinstance(held, DraftRow) else held

    async def _claim(self, session: str) -> DraftRow | Draft | None:
        """Return the row that is ours from now on; else the draft of another worker, None where it has none.

        Raises CompactionFailed where too many workers have died over it.
        """
        await self.presence.begin()
        if (dropping := self._dropping.get(session)) is not None:
            await dropping
        mine = DraftRow(self.presence.id)
        waited = False
        while True:
            raw = await self.values.get(ROWS, session)
            if raw is None:
                if waited:
                    return None
                if await self.values.add(ROWS, session, pack(mine), seconds=SECONDS, session=session) is None:
                    return mine
                continue
            row = unpack(raw, DraftRow)
            if row is not None and row.draft is not None:
                self._known[session] = raw
                return row.draft
            if row is None or not await self._at_work(session, row):
                if (taken := await self._taken_over(session, raw, row)) is not None:
                    return taken
                continue
            waited = True
            await asyncio.sleep(POLL_SECONDS)

    async def _taken_over(self, session: str, raw: bytes, row: DraftRow | None) -> DraftRow | None:
        """Take the row of a dead worker; None where another one was faster."""
        begun = 0 if row is None else row.begun
        if begun >= MAKINGS:
            await self.values.delete(ROWS, session, raw)
            raise CompactionFailed(f"{begun} processes died while they made the draft")
        mine = DraftRow(self.presence.id, begun + 1)
        taken = await self.values.replace(ROWS, session, raw, pack(mine), seconds=SECONDS)
        return mine if taken else None

    async def _made(self, job: DraftJob, held: DraftRow, here: Here) -> Draft | Nothing | None:
        """Make a draft for a row that is ours; it is cancelled where the row goes."""
        session, raw = job.session, pack(held)
        making = asyncio.ensure_future(self._working(job, here))
        self._making.add(session)
        try:
            while not (await asyncio.wait([making], timeout=WATCH_SECONDS))[0]:
                if await self._unwanted(session, raw):
                    return None
            outcome = making.result()
        except BaseException:
            await self._give_up(session, raw)
            raise
        finally:
            self._making.discard(session)
            if not making.done():
                making.cancel()
                await asyncio.wait([making])
        if isinstance(outcome, Nothing):
            await self._give_up(session, raw)
            return outcome
        receipt = msgspec.structs.replace(outcome.receipt, repeated=held.begun - 1)
        boundary = msgspec.structs.replace(outcome, receipt=receipt)
        draft = msgspec.structs.replace(job.base, boundary=boundary)
        kept = await self._keep(session, raw, msgspec.structs.replace(held, draft=draft))
        return draft if kept else None

    async def _working(self, job: DraftJob, here: Here) -> Outcome:
        model = job.prefix.model if job.prefix is not None else "own"
        return await self._limit.made(model.partition(":")[0], here)

    async def _keep(self, session: str, raw: bytes, made: DraftRow) -> bool:
        """Store a draft that was made; return whether it is still wanted."""
        ready = pack(made)
        try:
            kept = await self.values.replace(ROWS, session, raw, ready, seconds=SECONDS)
        except StoreError as error:  # the session has it all the same
            log.warning("session %s: a draft could not be stored for others: %s", session, error)
            await self._give_up(session, raw)
            return True
        if kept:
            self._known[session] = ready
        return kept

    async def _unwanted(self, session: str, raw: bytes) -> bool:
        try:
            return await self.values.get(ROWS, session) != raw
        except StoreError:
            return False

    async def _give_up(self, session: str, raw: bytes) -> None:
        try:
            await asyncio.shield(self.values.delete(ROWS, session, raw))
        except StoreError as error:
            log.warning("session %s: the place of a draft is given back later: %s", session, error)
            self.presence.owe(f"draft {session}", lambda: self.values.delete(ROWS, session, raw))

    async def _abandon(self, session: str) -> None:
        """Delete a row of this worker that nobody here is at work on."""
        raw = await self.values.get(ROWS, session)
        row = None if raw is None else unpack(raw, DraftRow)
        idle = row is not None and row.draft is None and row.worker == self.presence.id
        if idle and session not in self._making:
            await self.values.delete(ROWS, session, raw)

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return the draft that another worker has made, or that it makes one."""
        raw = await self.values.get(ROWS, session)
        row = None if raw is None else unpack(raw, DraftRow)
        if raw is None or row is None:
            return None
        if row.draft is not None:
            self._known[session] = raw
            return row.draft
        return "making" if await self._at_work(session, row) else None

    async def _at_work(self, session: str, row: DraftRow) -> bool:
        """Whether a draft is still made, by a worker that is alive."""
        if row.worker == self.presence.id:
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
        raw = await self.values.get(ROWS, session)
        if raw is None:
            return 0
        await self.values.delete(ROWS, session)
        row = unpack(raw, DraftRow)
        if row is None or row.draft is not None or await self._at_work(session, row):
            return 0
        return row.begun

    @asynccontextmanager
    async def turn(self, session: str) -> AsyncGenerator[bool]:
        """Hold the turn to compact a session: one worker at a time pays for what somebody waits for."""
        while await self._turns.held(session) or not await self._turns.take(session):  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        try:
            yield True
        finally:
            await asyncio.shield(self._turns.release(session))

    async def close(self) -> None:
        """Let what is dropped be gone."""
        if self._dropping:
            await asyncio.wait(list(self._dropping.values()))
