"""The folder of a service's replays, and those that services left behind which were killed."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

PREFIX: Final = "foldline-replays-"
LOCK: Final = "lock"
YOUNG: Final = 60.0  # seconds: one that is about to be locked


class ReplayFolder:
    """A temporary folder for its owner alone, locked as long as the process lives."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
        _lock(self._lock)

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
            if _lock(lock):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _lock(file: int) -> bool:
    """Lock an open file; False where another process has it."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
