"""A replay as a process of its own: its command, how far it is, what it wrote, and the folder of all of them.

The folder is locked as long as its service lives, so that the next one can remove what a killed one left.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from foldline.core.log.codec import encode_utf8
from foldline.files import safe_name
from foldline.service.jobs.replay_records import PLOTS, REPORT, ReplayProgress, ReplayWish
from foldline.service.jobs.replay_table import ReplayDocument, compared
from foldline.terminal import clean

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

TAIL: Final = 4_096  # bytes of what a process tells, in which its progress stands
LONGEST: Final = 2_000  # characters of an error
NOTES: Final = "notes.txt"
PREFIX: Final = "foldline-replays-"
LOCK: Final = "lock"
YOUNG: Final = 60.0  # seconds: a folder that is about to be locked


class ReplayFailed(Exception):
    """The command gave no report; the text says why."""


class CommandError(msgspec.Struct, frozen=True):
    """The error of a command as `--json` writes it."""

    message: str


class CommandFailure(msgspec.Struct, frozen=True):
    """What a command writes that failed."""

    error: CommandError


class ReplayProcess:
    """The command that replays the file in a folder."""

    def __init__(self, wish: ReplayWish, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "given" / safe_name(wish.label)
        self._wish = wish

    @property
    def progress(self) -> ReplayProgress:
        """How far it is, by what it last wrote."""
        try:
            with (self.folder / NOTES).open("rb") as stream:
                stream.seek(max(0, stream.seek(0, 2) - TAIL))
                lines = stream.read().splitlines()
        except OSError:
            return ReplayProgress()
        return next((found for line in reversed(lines) if (found := _progress(line))), ReplayProgress())

    async def run(self) -> dict[str, Any]:
        """Run it to its end, and return what it found, for the record; raises ReplayFailed.

        A task that is cancelled takes it along.
        """
        with (self.folder / REPORT).open("wb") as report, (self.folder / NOTES).open("wb") as notes:
            process = await asyncio.create_subprocess_exec(
                *self._command(), stdin=asyncio.subprocess.DEVNULL, stdout=report, stderr=notes
            )
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return await asyncio.to_thread(self._found, code)

    def _command(self) -> list[str]:
        window = [f"--window={self._wish.window}"] if self._wish.window else []
        drawn = [f"--plot={self.folder / name}" for name in PLOTS] if can_draw() else []
        asked = [f"--policy={','.join(self._wish.policies)}", *window, *drawn, "--progress", "--json"]
        # -P: no module is taken from the folder in which the service runs
        return [sys.executable, "-P", "-m", "foldline", "replay", *asked, "--", str(self.file)]

    def _found(self, code: int) -> dict[str, Any]:
        """Read what it wrote, and name the session in it as a person knows it."""
        raw = (self.folder / REPORT).read_bytes()
        notes = (self.folder / NOTES).read_text("utf-8", "replace").splitlines()
        if code:
            raise ReplayFailed(self._shown(_why(code, raw, notes)))
        found = msgspec.json.decode(raw, type=ReplayDocument).sessions[0]
        named = msgspec.structs.replace(found, session=self._wish.label)
        whole = msgspec.json.format(encode_utf8(ReplayDocument([named])), indent=2)
        (self.folder / REPORT).write_bytes(whole + b"\n")
        warnings = [self._shown(line) for line in notes if line.startswith("warning:")]
        return {"window": found.window, "rows": compared(found), "warnings": warnings}

    def _shown(self, text: str) -> str:
        """Return a text of the command with the name that a person knows in place of the file's."""
        return clean(text.replace(str(self.file), self._wish.label))[:LONGEST]


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


# ---- the folder of a service's replays


class ReplayFolder:
    """A temporary folder for its owner alone, locked as long as the process lives."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        _locked(self._lock)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_stale() -> None:
    """Remove the folders of services that are gone: those of this user whose lock is free."""
    if fcntl is None:  # nothing says that a service lives
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            known = folder.lstat()
            if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.getuid():
                continue
            if time.time() - known.st_mtime < YOUNG:
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # gone meanwhile, or not made by us
            continue
        try:
            if _locked(lock):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _locked(file: int) -> bool:
    """Lock an open file; False where another process has it."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
