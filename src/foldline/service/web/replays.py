"""Replays beside the service: each is a process of its own, in a folder that goes with it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from foldline.core.log.codec import encode_utf8
from foldline.errors import StoreError
from foldline.service.tenants import Tenant
from foldline.service.web.rendering import safe_name
from foldline.service.web.replay_folders import ReplayFolder, remove_stale
from foldline.service.web.replay_records import (
    ReplayProgress,
    ReplayRecord,
    ReplayRecords,
    ReplayState,
    ReplayWish,
)
from foldline.service.web.replay_table import ComparedPolicy, ReplayDocument, compared
from foldline.terminal import clean

AT_ONCE: Final = 2  # processes of all tenants
SECONDS: Final = 900.0  # that one may take
UNDER_WAY: Final = 5  # of a tenant, those that wait included
KEPT: Final = 20  # of a tenant, once they have ended
TAIL: Final = 4_096  # bytes of what a process tells, in which its progress stands
LONGEST: Final = 2_000  # characters of an error
PLOTS: Final = ("plot.svg", "plot.png")
REPORT: Final = "report.json"
FILES: Final = (REPORT, *PLOTS)  # that a replay makes
TOLD_SECONDS: Final = 1.0  # between two tellings of how far it is
NOTES: Final = "notes.txt"


class ReplayFailed(Exception):
    """The command gave no report; the text says why."""


class CommandError(msgspec.Struct, frozen=True):
    """The error of a command as `--json` writes it."""

    message: str


class CommandFailure(msgspec.Struct, frozen=True):
    """What a command writes that failed."""

    error: CommandError


class ReplayJob:
    """One replay: what was asked for, how far it is, and what it found."""

    def __init__(self, tenant: Tenant, wish: ReplayWish, folder: Path) -> None:
        self.id = folder.name
        self.tenant = tenant
        self.wish = wish
        self.folder = folder
        self.file = folder / "given" / safe_name(wish.label)
        self.state: ReplayState = "waiting"
        self.asked_at = time.time()
        self.began = self.ended_at = 0.0
        self.window = 0
        self.rows: list[ComparedPolicy] = []
        self.plots: tuple[str, ...] = ()
        self.warnings: list[str] = []
        self.error = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.state in ("done", "failed")

    @property
    def progress(self) -> ReplayProgress:
        """How far the process is, by what it last wrote."""
        try:
            with (self.folder / NOTES).open("rb") as stream:
                stream.seek(max(0, stream.seek(0, 2) - TAIL))
                lines = stream.read().splitlines()
        except OSError:
            return ReplayProgress()
        return next((found for line in reversed(lines) if (found := _progress(line))), ReplayProgress())

    def record(self) -> ReplayRecord:
        """Return what other workers are told of it."""
        return ReplayRecord(
            id=self.id,
            wish=self.wish,
            state=self.state,
            worker=self.tenant.presence.id,
            asked_at=self.asked_at,
            began=self.began,
            ended_at=self.ended_at,
            progress=ReplayProgress() if self.ended else self.progress,
            window=self.window,
            rows=self.rows,
            warnings=self.warnings,
            error=self.error,
            plots=self.plots,
        )

    def command(self) -> list[str]:
        """Return the command that replays the file."""
        window = [f"--window={self.wish.window}"] if self.wish.window else []
        drawn = [f"--plot={self.folder / name}" for name in PLOTS] if can_draw() else []
        asked = [f"--policy={','.join(self.wish.policies)}", *window, *drawn, "--progress", "--json"]
        # -P: no module is taken from the folder in which the service runs
        return [sys.executable, "-P", "-m", "foldline", "replay", *asked, "--", str(self.file)]

    def take(self, code: int) -> None:
        """Read what the process wrote; raises ReplayFailed."""
        raw = (self.folder / REPORT).read_bytes()
        notes = (self.folder / NOTES).read_text("utf-8", "replace").splitlines()
        if code:
            raise ReplayFailed(self._shown(_why(code, raw, notes)))
        found = msgspec.json.decode(raw, type=ReplayDocument).sessions[0]
        named = msgspec.structs.replace(found, session=self.wish.label)
        whole = msgspec.json.format(encode_utf8(ReplayDocument([named])), indent=2)
        (self.folder / REPORT).write_bytes(whole + b"\n")
        self.window = found.window
        self.rows = compared(found)
        self.warnings = [self._shown(line) for line in notes if line.startswith("warning:")]

    def _shown(self, text: str) -> str:
        """Return a text of the command with the name that a person knows in place of the file's."""
        return clean(text.replace(str(self.file), self.wish.label))[:LONGEST]


class ReplayJobs:
    """The replays of all tenants; nobody is given those of another one.

    Each is made by the worker that was asked for it, which tells the others of it.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        remove_stale()
        self._seconds = seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._root: ReplayFolder | None = None
        self._jobs: dict[str, ReplayJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def of(self, tenant: Tenant) -> list[ReplayRecord]:
        """Return the replays of a tenant, the newest first."""
        found = await ReplayRecords(tenant.presence).all()
        return [self._jobs[one.id].record() if one.id in self._jobs else one for one in found]

    async def find(self, tenant: Tenant, name: str) -> ReplayRecord | None:
        """Return a replay of a tenant; None where there is none of that name."""
        found = await ReplayRecords(tenant.presence).find(name)
        return self._jobs[name].record() if found is not None and name in self._jobs else found

    async def full(self, tenant: Tenant) -> bool:
        """Return whether a tenant has to wait before another one is begun."""
        return sum(not one.ended for one in await self.of(tenant)) >= UNDER_WAY

    async def file(self, tenant: Tenant, job: ReplayRecord, name: str) -> bytes | None:
        """Return a file that a replay has made."""
        return await ReplayRecords(tenant.presence).file(job.id, name)

    async def begin(self, tenant: Tenant, wish: ReplayWish, write: Callable[[Path], object]) -> ReplayJob:
        """Begin a replay of the file that `write` writes."""
        if self._root is None:
            self._root = ReplayFolder()
        job = ReplayJob(tenant, wish, self._root.path / secrets.token_hex(8))
        self._jobs[job.id] = job
        try:
            job.file.parent.mkdir(parents=True)
            await asyncio.to_thread(write, job.file)
            await ReplayRecords(tenant.presence).add(job.record())
        except BaseException:
            await self._leave(job)
            raise
        self._tasks[job.id] = asyncio.create_task(self._run(job))
        return job

    async def drop(self, tenant: Tenant, name: str) -> None:
        """End a replay, and forget what it found; a worker that makes it sees that it is gone."""
        if name in self._jobs:
            await self._leave(self._jobs[name])
        records = ReplayRecords(tenant.presence)
        found = await records.find(name)
        if found is not None:
            await records.drop(found, FILES)

    async def _leave(self, job: ReplayJob) -> None:
        """End a replay here, and remove its folder."""
        self._jobs.pop(job.id, None)
        task = self._tasks.pop(job.id, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
            await asyncio.wait([task])
        await asyncio.to_thread(_remove, job.folder)

    async def close(self) -> None:
        """End all replays, and remove their files; what has ended stays in the store."""
        for job in list(self._jobs.values()):
            await self._leave(job)
        if self._root is not None:
            self._root.remove()

    async def _run(self, job: ReplayJob) -> None:
        told = asyncio.create_task(self._tell(job))
        state: ReplayState = "failed"
        try:
            async with self._slots:
                job.state, job.began = "running", time.time()
                async with asyncio.timeout(self._seconds):
                    code = await _exit_code(job)
            await asyncio.to_thread(job.take, code)
            await _keep_files(job)
            state = "done"
        except TimeoutError:
            job.error = f"It was stopped: it took longer than {self._seconds:,.0f} seconds."
        except (ReplayFailed, OSError, msgspec.DecodeError) as error:
            job.error = str(error)
        finally:
            told.cancel()
            await asyncio.wait([told])
        # it has ended when all that it found can be asked for, and no file of it is left here
        await asyncio.to_thread(_remove, job.folder)
        job.state, job.ended_at = state, time.time()
        await self._keep(job)

    async def _tell(self, job: ReplayJob) -> None:
        """Tell the other workers how far it is; stop where one of them dropped it."""
        records = ReplayRecords(job.tenant.presence)
        while True:
            await asyncio.sleep(TOLD_SECONDS)
            with contextlib.suppress(StoreError):
                if not await records.update(job.record()):
                    asyncio.ensure_future(self._leave(job))  # noqa: RUF006 - it ends this task, too
                    return

    async def _keep(self, job: ReplayJob) -> None:
        """Keep how it ended for all workers, nothing of it here, and forget the oldest."""
        await ReplayRecords(job.tenant.presence).update(job.record())
        await self._leave(job)
        ended = [one for one in await self.of(job.tenant) if one.ended and one.id != job.id]
        for old in sorted(ended, key=lambda one: -one.ended_at)[KEPT - 1 :]:
            await self.drop(job.tenant, old.id)


async def _keep_files(job: ReplayJob) -> None:
    """Keep the files that a replay made for all workers."""
    records = ReplayRecords(job.tenant.presence)
    for name in FILES:
        path = job.folder / name
        if path.is_file():
            await records.keep_file(job.id, name, await asyncio.to_thread(path.read_bytes))
            job.plots += (name,) if name in PLOTS else ()


async def _exit_code(job: ReplayJob) -> int:
    """Run the command of a job to its end; a task that is cancelled takes it along."""
    with (job.folder / REPORT).open("wb") as report, (job.folder / NOTES).open("wb") as notes:
        process = await asyncio.create_subprocess_exec(
            *job.command(), stdin=asyncio.subprocess.DEVNULL, stdout=report, stderr=notes
        )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def can_draw() -> bool:
    """Whether the extra `plots` is installed."""
    return find_spec("matplotlib") is not None


def _progress(line: bytes) -> ReplayProgress | None:
    try:
        return msgspec.json.decode(line, type=ReplayProgress)
    except msgspec.DecodeError:
        return None


def _why(code: int, raw: bytes, notes: list[str]) -> str:
    """Return why a command failed."""
    try:
        return msgspec.json.decode(raw, type=CommandFailure).error.message
    except msgspec.DecodeError:
        if code < 0:
            return "Its process was ended from outside: too large for this machine's memory?"
        return next((line for line in reversed(notes) if line.strip()), f"It failed with exit code {code}.")


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
