"""Drafts as durable jobs: DBOS keeps them in a database, and any worker makes them, also after a crash.

The database of the jobs names sessions alone: what a draft is made of stands in the session's store, and goes
with it. Only summaries that the service pays for by itself are durable; a client's key is never stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from dbos import DBOS, SetWorkflowID

from foldline.config import ServeSettings
from foldline.core.compact.plan import Outcome
from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import Nothing
from foldline.errors import FoldlineError, StoreError
from foldline.files import create_private
from foldline.service.draft_jobs import (
    JOB_SECONDS,
    MAKINGS,
    SPACE,
    DraftRow,
    Here,
    StoredJobs,
    packed,
    unpacked,
)
from foldline.service.presence import Presence
from foldline.session.jobs import DraftJob
from foldline.stores.key_values import LARGEST

log = logging.getLogger("foldline")

APPLICATION: Final = "foldline"
VERSION: Final = "1"  # of the jobs: those of another version, or of another store, are left to its workers
WORKFLOW: Final = "draft"
RECOVERY_SECONDS: Final = 5.0  # between two looks for jobs of dead workers
CLEANING_SECONDS: Final = 600.0  # between two looks for jobs that ended long ago
KEPT_SECONDS: Final = 3_600.0  # that a job is remembered once it has ended
KEPT_AT_ONCE: Final = 1_000  # such jobs that are forgotten in one step
POLLING_SECONDS: Final = 0.5
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]+")

MakeDraft = Callable[[str, str, str | None, DraftJob], Awaitable[Outcome]]
FindTenant = Callable[[str], StoredJobs]


class DurableJobs:
    """The jobs of this process: it asks for drafts, makes those of all workers, and takes over dead ones'.

    `find` returns the stored drafts of a tenant by its name, `make` makes a draft: of a tenant, its session,
    the model that the session goes on with, and the job.
    """

    def __init__(
        self, serve: ServeSettings, url: str, presence: Presence, find: FindTenant, make: MakeDraft
    ) -> None:
        self._serve = serve
        self._url = _absolute(url)
        store = hashlib.sha256((serve.store or "").encode()).hexdigest()[:16]
        self._version = f"{VERSION}-{store}"
        self._presence = presence
        self._find = find
        self._make = make
        self._queues: set[str] = set()
        self._workflow: Any = None
        self._recovering: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Open the database of the jobs, and begin to do them."""
        await self._presence.begin()
        os.environ.setdefault("DBOS__CLOUD", "false")
        DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": self._url,
                "executor_id": self._presence.id,
                "application_version": self._version,
                "log_level": "ERROR",
                "use_listen_notify": False,
            }
        )

        async def work(tenant: str, session: str, name: str) -> None:
            await self._run(tenant, session, name)

        self._workflow = DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)(work)
        DBOS.launch()
        self._recovering = asyncio.create_task(self._recover())

    async def close(self) -> None:
        """Do no more jobs: those under way are another worker's."""
        if self._recovering is not None:
            self._recovering.cancel()
            await asyncio.wait([self._recovering])
            await asyncio.to_thread(DBOS.destroy)

    async def enqueue(self, tenant: str, session: str, row: DraftRow) -> None:
        """Have a job done, by whichever worker is free."""
        queue = await self._queue(_provider(row))
        with SetWorkflowID(row.id):
            await DBOS.enqueue_workflow_async(queue, self._workflow, tenant, session, row.id)

    async def _queue(self, provider: str) -> str:
        """Return the queue of a provider, with its limits."""
        name = f"drafts-{_UNSAFE.sub('-', provider) or 'own'}"
        if name not in self._queues:
            rate = self._serve.summary_rate
            await DBOS.register_queue_async(
                name,
                global_concurrency=self._serve.summaries_at_once,
                limiter={"limit": rate, "period": 60.0} if rate else None,
                polling_interval_sec=POLLING_SECONDS,
                on_conflict="always_update",
            )
            self._queues.add(name)
        return name

    async def _run(self, tenant: str, session: str, name: str) -> None:
        """Do a job; while the store is away, try again."""
        until = time.monotonic() + JOB_SECONDS
        while True:
            try:
                return await self._do(tenant, session, name)
            except StoreError as error:
                if time.monotonic() > until:
                    raise
                log.warning("session %s: a draft waits for the store: %s", session, error)
                await asyncio.sleep(RECOVERY_SECONDS)

    async def _do(self, tenant: str, session: str, name: str) -> None:
        """Make the draft, unless it is no longer wanted, was made, or is being made."""
        stored = self._find(tenant)
        raw = await stored.values.get(SPACE, session)
        row = None if raw is None else unpacked(raw)
        if raw is None or row is None or row.id != name or row.job is None:
            return
        mine = stored.presence  # of the tenant, whose store has the row
        await mine.begin()
        if row.begun and row.worker != mine.id and await mine.alive(row.worker):
            return
        held = msgspec.structs.replace(row, worker=mine.id, begun=row.begun + 1)
        if held.begun > MAKINGS:
            held = msgspec.structs.replace(held, error=f"{MAKINGS} processes died while they made the draft")
        if (
            not await stored.values.replace(SPACE, session, raw, packed(held), seconds=JOB_SECONDS)
            or held.error
        ):
            return
        job, model = row.job, row.model
        try:
            await stored.made(job, held, lambda: self._make(tenant, session, model, job))
        except StoreError:
            raise
        except FoldlineError as error:  # it stands in the row, for the session
            log.warning("session %s: a draft failed: %s", session, error)

    async def _recover(self) -> None:
        """Have the jobs of dead workers done, and forget those that ended long ago."""
        cleaned = 0.0
        while True:
            await asyncio.sleep(RECOVERY_SECONDS)
            try:
                await self._take_over()
                if time.monotonic() - cleaned > CLEANING_SECONDS:
                    cleaned = time.monotonic()
                    await self.forget(time.time() - KEPT_SECONDS)
            except Exception as error:  # the database may be away for a while
                log.warning("jobs of dead workers could not be looked for: %s", error)

    async def forget(self, before: float) -> None:
        """Remove the jobs that ended before a moment (Unix time), with the names of their sessions."""
        while True:
            ended = await DBOS.list_workflows_async(
                status=["SUCCESS", "ERROR", "CANCELLED"],
                name=WORKFLOW,
                completed_before=datetime.fromtimestamp(before, UTC).isoformat(),
                limit=KEPT_AT_ONCE,
                load_input=False,
                load_output=False,
            )
            await DBOS.delete_workflows_async([one.workflow_id for one in ended])
            if len(ended) < KEPT_AT_ONCE:
                return

    async def _take_over(self) -> None:
        found = await DBOS.list_workflows_async(
            status="PENDING", name=WORKFLOW, app_version=self._version, load_input=False, load_output=False
        )
        for one in found:
            worker = one.executor_id or ""
            if worker != self._presence.id and not await self._presence.alive(worker):
                await DBOS.resume_workflow_async(one.workflow_id)


class TenantJobs:
    """The drafts of a tenant's sessions that go on with one model, as durable jobs."""

    def __init__(self, durable: DurableJobs, stored: StoredJobs, tenant: str, model: str | None) -> None:
        self._durable = durable
        self._stored = stored
        self._tenant = tenant
        self._model = model

    async def make(self, job: DraftJob, here: Here) -> Draft | Nothing | None:
        """Have a draft made by a job, and wait for it."""
        del here
        name = f"{self._tenant}-{secrets.token_hex(12)}"
        mine = DraftRow(self._stored.presence.id, 0, None, name, _fitting(job), self._model)
        held = await self._stored.claim(job.session, mine)
        if not isinstance(held, DraftRow):
            return held
        try:
            await self._durable.enqueue(self._tenant, job.session, held)
        except BaseException as error:
            await asyncio.shield(self._stored.cancel(job.session))
            if isinstance(error, Exception):
                raise StoreError(f"the draft cannot be asked for: {error}") from error
            raise
        return await self._stored.made_elsewhere(job.session, name)

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return the draft of a session, or that one is made."""
        return await self._stored.find(session)

    def drop(self, session: str) -> None:
        """Forget a draft."""
        self._stored.drop(session)

    async def cancel(self, session: str) -> int:
        """Have no draft made."""
        return await self._stored.cancel(session)


def _absolute(url: str) -> str:
    """Return a database's URL with the home directory in it, where it names that."""
    place = url.removeprefix("sqlite:///")
    if place == url:
        return url
    name, mark, options = place.partition("?")
    file = Path(name).expanduser().absolute()
    create_private(file)  # what drafts are asked of is as private as the sessions
    return f"sqlite:///{file}{mark}{options}"


def _fitting(job: DraftJob) -> DraftJob:
    """Return a job that can be stored: without a very large request the summary is asked for as text."""
    size = len(packed(DraftRow("", job=job)))
    return job if size < LARGEST // 2 else msgspec.structs.replace(job, prefix=None)


def _provider(row: DraftRow) -> str:
    """Return whose model writes the summary."""
    prefix = row.job.prefix if row.job is not None else None
    name = row.model or (prefix.model if prefix is not None else "")
    return name.partition(":")[0]
