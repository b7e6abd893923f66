"""Replays beside the service: the worker that is asked for one makes it, and tells the others of it.

A replay is the command `foldline replay` as a process of its own, with a temporary folder for what it reads
and writes. When it has ended, all that it found is in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from foldline.core.log.codec import pretty
from foldline.errors import StoreError
from foldline.files import safe_name
from foldline.lab.report import as_json
from foldline.service.jobs.replay_records import (
    FILES,
    PLOTS,
    REPORT,
    ReplayDocument,
    ReplayProgress,
    ReplayRecord,
    ReplayRecords,
    ReplayWish,
    compared,
)
from foldline.service.presence import Presence
from foldline.terminal import clean

AT_ONCE: Final = 2  # processes of all tenants
SECONDS: Final = 900.0  # that one may take
UNDER_WAY: Final = 5  # of a tenant, those that wait included
KEPT: Final = 20  # of a tenant, once they have ended
TOLD_SECONDS: Final = 1.0  # between two tellings of how far it is
TAIL: Final = 4_096  # bytes of what a process tells, in which its progress stands
LONGEST: Final = 2_000  # characters of an error
NOTES: Final = "notes.txt"


class ReplayFailed(Exception):
    """The command gave no report; the text says why."""


def can_draw() -> bool:
    """Whether the extra `plots` is installed."""
    return find_spec("matplotlib") is not None


class ReplayJob:
    """One replay that is made here: its command, and how it stands."""

    def __init__(self, presence: Presence, wish: ReplayWish) -> None:
        self.id = secrets.token_hex(8)
        self.records = ReplayRecords(presence)
        self._kept_in = TemporaryDirectory(prefix="foldline-replay-", ignore_cleanup_errors=True)
        self._folder = Path(self._kept_in.name)
        self.file = self._folder / "given" / safe_name(wish.label)
        self._wish = wish
        self._record = ReplayRecord(self.id, wish, presence.id, time.time())

    @property
    def record(self) -> ReplayRecord:
        """What the other workers are told of it."""
        if self._record.ended:
            return self._record
        return msgspec.structs.replace(self._record, progress=self._progress())

    def now(self, **changes: Any) -> None:
        """Say how it stands now."""
        self._record = msgspec.structs.replace(self._record, **changes)

    def _progress(self) -> ReplayProgress:
        """Return how far it is, by what it last wrote."""
        try:
            with (self._folder / NOTES).open("rb") as stream:
                stream.seek(max(0, stream.seek(0, 2) - TAIL))
                lines = stream.read().splitlines()
        except OSError:
            return ReplayProgress()
        for line in reversed(lines):
            with contextlib.suppress(msgspec.DecodeError):
                return msgspec.json.decode(line, type=ReplayProgress)
        return ReplayProgress()

    async def run(self) -> dict[str, Any]:
        """Run it to its end, and return what it found, for the record; raises ReplayFailed.

        A task that is cancelled takes it along.
        """
        with (self._folder / REPORT).open("wb") as report, (self._folder / NOTES).open("wb") as notes:
            process = await asyncio.create_subprocess_exec(
                *self._command(), stdin=asyncio.subprocess.DEVNULL, stdout=report, stderr=notes
            )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        found = await asyncio.to_thread(self._found, code)
        return {**found, "files": await self._keep_files()}

    def _command(self) -> list[str]:
        window = [f"--window={self._wish.window}"] if self._wish.window else []
        drawn = [f"--plot={self._folder / name}" for name in PLOTS] if can_draw() else []
        asked = [f"--policy={','.join(self._wish.policies)}", *window, *drawn, "--progress", "--json"]
        # -P: no module is taken from the folder in which the service runs
        return [sys.executable, "-P", "-m", "foldline", "replay", *asked, "--", str(self.file)]

    def _found(self, code: int) -> dict[str, Any]:
        """Read what it wrote, and name the session in it as a person knows it."""
        raw = (self._folder / REPORT).read_bytes()
        notes = (self._folder / NOTES).read_text("utf-8", "replace").splitlines()
        if code:
            raise ReplayFailed(self._shown(_why(code, raw, notes)))
        found = msgspec.json.decode(raw, type=ReplayDocument).sessions[0]
        named = msgspec.structs.replace(found, session=self._wish.label)
        (self._folder / REPORT).write_bytes(pretty(as_json([named])) + b"\n")
        warnings = [self._shown(line) for line in notes if line.startswith("warning:")]
        return {"window": found.window, "rows": compared(found), "warnings": warnings}

    def _shown(self, text: str) -> str:
        """Return a text of the command with the name that a person knows in place of the file's."""
        return clean(text.replace(str(self.file), self._wish.label))[:LONGEST]

    async def _keep_files(self) -> tuple[str, ...]:
        """Keep the files that it made for all workers; return those that are not too large."""
        kept: list[str] = []
        for name in FILES:
            path = self._folder / name
            if path.is_file():
                content = await asyncio.to_thread(path.read_bytes)
                if await self.records.keep_file(self.id, name, content):
                    kept.append(name)
        return tuple(kept)

    async def remove(self) -> None:
        """Remove its folder."""
        await asyncio.to_thread(self._kept_in.cleanup)


def _why(code: int, raw: bytes, notes: list[str]) -> str:
    """Return why a command failed."""
    try:
        return str(msgspec.json.decode(raw)["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        if code < 0:
            return "Its process was ended from outside: too large for this machine's memory?"
        return next((line for line in reversed(notes) if line.strip()), f"It failed with exit code {code}.")


class ReplayJobs:
    """The replays of all tenants; nobody is given those of another one."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(AT_ONCE)
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
        job = ReplayJob(presence, wish)
        self._jobs[job.id] = job
        try:
            job.file.parent.mkdir()
            await asyncio.to_thread(write, job.file)
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
        await job.remove()

    async def close(self) -> None:
        """End all replays, and remove their files; what has ended stays in the store."""
        for job in list(self._jobs.values()):
            await self._leave(job)

    async def _run(self, job: ReplayJob) -> None:
        telling = asyncio.create_task(self._tell(job))
        ended: dict[str, Any] = {"state": "failed"}
        try:
            async with self._slots:
                job.now(state="running", began=time.time())
                async with asyncio.timeout(SECONDS):
                    ended = {"state": "done", **await job.run()}
        except TimeoutError:
            ended["error"] = f"It was stopped: it took longer than {SECONDS:,.0f} seconds."
        except (ReplayFailed, OSError, msgspec.DecodeError) as error:
            ended["error"] = str(error)
        finally:
            telling.cancel()
            await asyncio.wait([telling])
        await job.remove()  # before it is told to have ended: no file of it is left then
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
