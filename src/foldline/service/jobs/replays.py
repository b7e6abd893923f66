"""Replays beside the service: the worker that is asked for one makes it, and tells the others of it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from foldline.errors import StoreError
from foldline.service.jobs.replay_process import ReplayFailed, ReplayFolder, ReplayProcess, remove_stale
from foldline.service.jobs.replay_records import FILES, PLOTS, ReplayRecord, ReplayRecords, ReplayWish
from foldline.service.presence import Presence

AT_ONCE: Final = 2  # processes of all tenants
SECONDS: Final = 900.0  # that one may take
UNDER_WAY: Final = 5  # of a tenant, those that wait included
KEPT: Final = 20  # of a tenant, once they have ended
TOLD_SECONDS: Final = 1.0  # between two tellings of how far it is


class ReplayJob:
    """One replay that is made here: how it stands, and its process."""

    def __init__(self, presence: Presence, wish: ReplayWish, folder: Path) -> None:
        self.id = folder.name
        self.records = ReplayRecords(presence)
        self.process = ReplayProcess(wish, folder)
        self._record = ReplayRecord(folder.name, wish, presence.id, time.time())

    @property
    def record(self) -> ReplayRecord:
        """What the other workers are told of it."""
        if self._record.ended:
            return self._record
        return msgspec.structs.replace(self._record, progress=self.process.progress)

    def now(self, **changes: Any) -> None:
        """Say how it stands now."""
        self._record = msgspec.structs.replace(self._record, **changes)

    async def keep_files(self) -> tuple[str, ...]:
        """Keep the files that it made for all workers; return the drawings among them."""
        kept: list[str] = []
        for name in FILES:
            path = self.process.folder / name
            if path.is_file():
                content = await asyncio.to_thread(path.read_bytes)
                if await self.records.keep_file(self.id, name, content):
                    kept.append(name)
        return tuple(name for name in kept if name in PLOTS)


class ReplayJobs:
    """The replays of all tenants; nobody is given those of another one."""

    def __init__(self, seconds: float = SECONDS) -> None:
        remove_stale()
        self._seconds = seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._root: ReplayFolder | None = None
        self._jobs: dict[str, ReplayJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def of(self, presence: Presence) -> list[ReplayRecord]:
        """Return the replays of a tenant, the newest first."""
        found = await ReplayRecords(presence).all()
        return [self._jobs[one.id].record if one.id in self._jobs else one for one in found]

    async def find(self, presence: Presence, name: str) -> ReplayRecord | None:
        """Return a replay of a tenant; None where there is none of that name."""
        found = await ReplayRecords(presence).find(name)
        return self._jobs[name].record if found is not None and name in self._jobs else found

    async def full(self, presence: Presence) -> bool:
        """Return whether a tenant has to wait before another one is begun."""
        return sum(not one.ended for one in await self.of(presence)) >= UNDER_WAY

    async def begin(self, presence: Presence, wish: ReplayWish, write: Callable[[Path], object]) -> str:
        """Begin a replay of the file that `write` writes; return its id."""
        if self._root is None:
            self._root = ReplayFolder()
        job = ReplayJob(presence, wish, self._root.path / secrets.token_hex(8))
        self._jobs[job.id] = job
        try:
            job.process.file.parent.mkdir(parents=True)
            await asyncio.to_thread(write, job.process.file)
            await job.records.add(job.record)
        except BaseException:
            await self._leave(job)
            raise
        self._tasks[job.id] = asyncio.create_task(self._run(job))
        return job.id

    async def drop(self, presence: Presence, name: str) -> None:
        """End a replay, and forget what it found; a worker that makes it sees that it is gone."""
        records = ReplayRecords(presence)
        if await records.find(name) is not None:
            if name in self._jobs:
                await self._leave(self._jobs[name])
            await records.drop(name)

    async def _leave(self, job: ReplayJob) -> None:
        """End a replay here, and remove its folder."""
        self._jobs.pop(job.id, None)
        task = self._tasks.pop(job.id, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait([task])
        await asyncio.to_thread(_remove, job.process.folder)

    async def close(self) -> None:
        """End all replays, and remove their files; what has ended stays in the store."""
        for job in list(self._jobs.values()):
            await self._leave(job)
        if self._root is not None:
            self._root.remove()

    async def _run(self, job: ReplayJob) -> None:
        told = asyncio.create_task(self._tell(job))
        ended: dict[str, Any] = {"state": "failed"}
        try:
            async with self._slots:
                job.now(state="running", began=time.time())
                async with asyncio.timeout(self._seconds):
                    found = await job.process.run()
            ended = {"state": "done", **found, "plots": await job.keep_files()}
        except TimeoutError:
            ended["error"] = f"It was stopped: it took longer than {self._seconds:,.0f} seconds."
        except (ReplayFailed, OSError, msgspec.DecodeError) as error:
            ended["error"] = str(error)
        finally:
            told.cancel()
            await asyncio.wait([told])
        # it has ended when all that it found can be asked for, and no file of it is left here
        await asyncio.to_thread(_remove, job.process.folder)
        job.now(**ended, ended_at=time.time())
        await self._keep(job)

    async def _tell(self, job: ReplayJob) -> None:
        """Tell the other workers how far it is; stop where one of them dropped it."""
        while True:
            await asyncio.sleep(TOLD_SECONDS)
            with contextlib.suppress(StoreError):
                if not await job.records.update(job.record):
                    asyncio.ensure_future(self._leave(job))  # noqa: RUF006 - it ends this task, too
                    return

    async def _keep(self, job: ReplayJob) -> None:
        """Keep how it ended for all workers, nothing of it here, and forget the oldest."""
        await job.records.update(job.record)
        await self._leave(job)
        ended = [one for one in await job.records.all() if one.ended and one.id != job.id]
        for old in sorted(ended, key=lambda one: -one.ended_at)[KEPT - 1 :]:
            await job.records.drop(old.id)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
