"""Runs replays in the background: the worker that receives a request runs it and stores its state for all.

A replay is the command `foldline replay` in a separate process, with a temporary folder for its files. Its
results are then in the store.
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
    compare_policies,
)
from foldline.service.presence import Presence
from foldline.terminal import clean

AT_ONCE: Final = 2  # processes of all tenants
SECONDS: Final = 900.0  # a replay may take
UNDER_WAY: Final = 5  # of a tenant, including waiting ones
KEPT: Final = 20  # ended ones of a tenant
PROGRESS_SECONDS: Final = 1.0  # between updates of the progress
TAIL: Final = 4_096  # last bytes of a process's output to search for its progress
LONGEST: Final = 2_000  # characters of an error
NOTES: Final = "notes.txt"


class ReplayFailed(Exception):
    """The command failed; the text says why."""


def can_draw() -> bool:
    """Return whether the extra `plots` is installed."""
    return find_spec("matplotlib") is not None


class ReplayJob:
    """One replay of this worker: its command and its state."""

    def __init__(self, presence: Presence, wish: ReplayWish) -> None:
        self.id = secrets.token_hex(8)
        self.records = ReplayRecords(presence)
        self._temporary = TemporaryDirectory(prefix="foldline-replay-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self.file = self._folder / "given" / safe_name(wish.label)
        self.task: asyncio.Task[None] | None = None
        self._wish = wish
        self._record = ReplayRecord(self.id, wish, presence.id, time.time())

    @property
    def record(self) -> ReplayRecord:
        """Its state for the other workers."""
        if self._record.ended:
            return self._record
        return msgspec.structs.replace(self._record, progress=self._progress())

    def update(self, **changes: Any) -> None:
        """Change its state."""
        self._record = msgspec.structs.replace(self._record, **changes)

    def _progress(self) -> ReplayProgress:
        """Return its progress, from its last output."""
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
        """Run the command and return its results for the record; raises ReplayFailed.

        Cancelling the task kills the process.
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
        result = await asyncio.to_thread(self._read_result, code)
        return {**result, "files": await self._store_files()}

    def _command(self) -> list[str]:
        window = [f"--window={self._wish.window}"] if self._wish.window else []
        plots = [f"--plot={self._folder / name}" for name in PLOTS] if can_draw() else []
        options = [f"--policy={','.join(self._wish.policies)}", *window, *plots, "--progress", "--json"]
        # -P: do not import modules from the working directory of the service
        return [sys.executable, "-P", "-m", "foldline", "replay", *options, "--", str(self.file)]

    def _read_result(self, code: int) -> dict[str, Any]:
        """Read the report, and put the label into it as the session's name."""
        raw = (self._folder / REPORT).read_bytes()
        notes = (self._folder / NOTES).read_text("utf-8", "replace").splitlines()
        if code:
            raise ReplayFailed(self._with_label(_failure_text(code, raw, notes)))
        session = msgspec.json.decode(raw, type=ReplayDocument).sessions[0]
        labelled = msgspec.structs.replace(session, session=self._wish.label)
        (self._folder / REPORT).write_bytes(pretty(as_json([labelled])) + b"\n")
        warnings = [self._with_label(line) for line in notes if line.startswith("warning:")]
        return {"window": session.window, "rows": compare_policies(session), "warnings": warnings}

    def _with_label(self, text: str) -> str:
        """Return a text of the command with the label instead of the file's path."""
        return clean(text.replace(str(self.file), self._wish.label))[:LONGEST]

    async def _store_files(self) -> tuple[str, ...]:
        """Store its files for all workers; return the names of those that are not too large."""
        stored: list[str] = []
        for name in FILES:
            path = self._folder / name
            if path.is_file():
                content = await asyncio.to_thread(path.read_bytes)
                if await self.records.keep_file(self.id, name, content):
                    stored.append(name)
        return tuple(stored)

    async def remove(self) -> None:
        """Remove its folder."""
        await asyncio.to_thread(self._temporary.cleanup)


def _failure_text(code: int, raw: bytes, notes: list[str]) -> str:
    """Return the reason for a failed command."""
    try:
        return str(msgspec.json.decode(raw)["error"]["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        if code < 0:
            return "Its process was killed: is the session too large for this machine's memory?"
        return next((line for line in reversed(notes) if line.strip()), f"It failed with exit code {code}.")


class ReplayJobs:
    """The replays of all tenants, which see only their own."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._jobs: dict[str, ReplayJob] = {}

    async def of(self, presence: Presence) -> list[ReplayRecord]:
        """Return the replays of a tenant, newest first."""
        records = await ReplayRecords(presence).all()
        return [self._jobs[record.id].record if record.id in self._jobs else record for record in records]

    async def find(self, presence: Presence, name: str) -> ReplayRecord | None:
        """Return a replay of a tenant; None if it has no such replay."""
        record = await ReplayRecords(presence).find(name)
        return self._jobs[name].record if record is not None and name in self._jobs else record

    async def full(self, presence: Presence) -> bool:
        """Return whether a tenant has as many replays running as it may."""
        return sum(not record.ended for record in await self.of(presence)) >= UNDER_WAY

    async def begin(self, presence: Presence, wish: ReplayWish, write: Callable[[Path], object]) -> str:
        """Start a replay of the file that `write` writes; return its id."""
        job = ReplayJob(presence, wish)
        self._jobs[job.id] = job
        try:
            job.file.parent.mkdir()
            await asyncio.to_thread(write, job.file)
            await job.records.add(job.record)
        except BaseException:
            await self._stop(job)
            raise
        job.task = asyncio.create_task(self._run(job))
        return job.id

    async def drop(self, presence: Presence, name: str) -> None:
        """Stop a replay and delete its results; another worker that runs it notices and stops."""
        records = ReplayRecords(presence)
        if await records.find(name) is not None:
            if name in self._jobs:
                await self._stop(self._jobs[name])
            await records.drop(name)

    async def _stop(self, job: ReplayJob) -> None:
        """Stop a replay of this worker and remove its folder."""
        self._jobs.pop(job.id, None)
        task, job.task = job.task, None
        if task not in (None, asyncio.current_task()):
            task.cancel()
            await asyncio.wait([task])
        await job.remove()

    async def close(self) -> None:
        """Stop all replays and remove their folders; results stay in the store."""
        for job in list(self._jobs.values()):
            await self._stop(job)

    async def _run(self, job: ReplayJob) -> None:
        publishing = asyncio.create_task(self._publish_progress(job))
        result: dict[str, Any] = {"state": "failed"}
        try:
            async with self._slots:
                job.update(state="running", began=time.time())
                async with asyncio.timeout(SECONDS):
                    result = {"state": "done", **await job.run()}
        except TimeoutError:
            result["error"] = f"It was stopped because it took longer than {SECONDS:,.0f} seconds."
        except (ReplayFailed, OSError, msgspec.DecodeError) as error:
            result["error"] = str(error)
        finally:
            publishing.cancel()
            await asyncio.wait([publishing])
        await job.remove()  # before it counts as ended: then none of its files is left
        job.update(**result, ended_at=time.time())
        await job.records.end(job.record)
        await self._stop(job)
        others = [record for record in await job.records.all() if record.ended and record.id != job.id]
        for old in sorted(others, key=lambda record: -record.ended_at)[KEPT - 1 :]:
            await job.records.drop(old.id)

    async def _publish_progress(self, job: ReplayJob) -> None:
        """Store the progress for the other workers; stop if one of them dropped the replay."""
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            with contextlib.suppress(StoreError):
                if not await job.records.update(job.record):
                    asyncio.ensure_future(self._stop(job))  # noqa: RUF006 - it ends this task too
                    return
