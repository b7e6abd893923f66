"""Replays beside the service: each is a process of its own, in a folder that goes with it."""

from __future__ import annotations

import asyncio
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import msgspec

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
NOTES: Final = "notes.txt"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")

ReplayState = Literal["waiting", "running", "done", "failed"]


class ReplayFailed(Exception):
    """The command gave no report; the text says why."""


class ReplayWish(msgspec.Struct, frozen=True):
    """What to replay: the name that a person knows it by, the policies, the window (None: the file's own)."""

    label: str
    policies: tuple[str, ...]
    window: int | None = None


class ReplayProgress(msgspec.Struct, frozen=True):
    """How many of the messages were replayed."""

    done: int = 0
    total: int = 0


class CommandError(msgspec.Struct, frozen=True):
    """The error of a command as `--json` writes it."""

    message: str


class CommandFailure(msgspec.Struct, frozen=True):
    """What a command writes that failed."""

    error: CommandError


class ReplayJob:
    """One replay: what was asked for, how far it is, and what it found."""

    def __init__(self, tenant: str, wish: ReplayWish, folder: Path) -> None:
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
        self.warnings: list[str] = []
        self.error = ""

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.state in ("done", "failed")

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return (self.ended_at or time.time()) - self.began if self.began else 0.0

    @property
    def plots(self) -> list[str]:
        """The drawings that were made."""
        return [name for name in PLOTS if (self.folder / name).is_file()]

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
        whole = msgspec.json.format(msgspec.json.encode(ReplayDocument([named])), indent=2)
        (self.folder / REPORT).write_bytes(whole + b"\n")
        self.window = found.window
        self.rows = compared(found)
        self.warnings = [self._shown(line) for line in notes if line.startswith("warning:")]

    def _shown(self, text: str) -> str:
        """Return a text of the command with the name that a person knows in place of the file's."""
        return clean(text.replace(str(self.file), self.wish.label))[:LONGEST]


class ReplayJobs:
    """The replays of all tenants; nobody is given those of another one."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._root: Path | None = None
        self._jobs: dict[str, ReplayJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def of(self, tenant: str) -> list[ReplayJob]:
        """Return the replays of a tenant, the newest first."""
        return [job for job in reversed(self._jobs.values()) if job.tenant == tenant]

    def find(self, tenant: str, name: str) -> ReplayJob | None:
        """Return a replay of a tenant; None where there is none of that name."""
        job = self._jobs.get(name)
        return job if job is not None and job.tenant == tenant else None

    def full(self, tenant: str) -> bool:
        """Return whether a tenant has to wait before another one is begun."""
        return sum(not job.ended for job in self.of(tenant)) >= UNDER_WAY

    async def begin(self, tenant: str, wish: ReplayWish, write: Callable[[Path], object]) -> ReplayJob:
        """Begin a replay of the file that `write` writes."""
        if self._root is None:
            self._root = Path(tempfile.mkdtemp(prefix="foldline-replays-"))  # for its owner alone
        job = ReplayJob(tenant, wish, self._root / secrets.token_hex(8))
        self._jobs[job.id] = job
        try:
            job.file.parent.mkdir(parents=True)
            await asyncio.to_thread(write, job.file)
        except BaseException:
            await self.drop(job)
            raise
        self._tasks[job.id] = asyncio.create_task(self._run(job))
        return job

    async def drop(self, job: ReplayJob) -> None:
        """End a replay, and forget what it found."""
        self._jobs.pop(job.id, None)
        task = self._tasks.pop(job.id, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        await asyncio.to_thread(_remove, job.folder)

    async def close(self) -> None:
        """End all replays, and remove their files."""
        for job in list(self._jobs.values()):
            await self.drop(job)
        if self._root is not None:
            _remove(self._root)

    async def _run(self, job: ReplayJob) -> None:
        try:
            async with self._slots:
                job.state, job.began = "running", time.time()
                async with asyncio.timeout(self._seconds):
                    code = await _exit_code(job)
            await asyncio.to_thread(job.take, code)
            job.state = "done"
        except TimeoutError:
            job.state, job.error = (
                "failed",
                f"It was stopped: it took longer than {self._seconds:,.0f} seconds.",
            )
        except (ReplayFailed, OSError, msgspec.DecodeError) as error:
            job.state, job.error = "failed", str(error)
        job.ended_at = time.time()
        await asyncio.to_thread(_remove, job.file.parent)
        ended = [one for one in self.of(job.tenant) if one.ended and one is not job]
        for old in sorted(ended, key=lambda one: -one.ended_at)[KEPT - 1 :]:
            await self.drop(old)


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


def safe_name(label: str) -> str:
    """Return a file's name with plain letters only, none of which steers a path, an option or a drawing."""
    return _UNSAFE.sub("-", label)[-60:].strip("-.") or "session"


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
