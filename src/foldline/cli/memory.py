"""Check that a file fits into memory before it is read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from foldline.errors import InputError

TO_READ = (
    3  # bytes of memory per byte of session file, measured on 100 MB of JSON lines: 2.4 to read or store
)
TO_FOLD = 8  # 6.1 to fold
SMALL = 64 * 1024 * 1024  # never checked below this size

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def check_room(stream: BinaryIO, name: str, factor: int) -> None:
    """Raise InputError if `factor` times the size of an open file exceeds the free memory."""
    size = _size(stream)
    left = available() if size > SMALL else None
    if left is not None and size * factor > left:
        raise InputError(
            f"{name}: too large for this machine: {size / 1e9:,.1f} GB need about {size * factor / 1e9:,.0f} "
            "GB of memory, "
            f"and {left / 1e9:,.0f} GB are free. Split it, or use a larger machine; nothing was changed."
        )


def _size(stream: BinaryIO) -> int:
    """Return the bytes of a file on disk; 0 for one unpacked while it is read."""
    try:
        return os.fstat(stream.fileno()).st_size
    except OSError:
        return 0


def available() -> int | None:
    """Return the free bytes of memory; None if the system does not tell (not Linux)."""
    found = [left for left in (_of_system(), _of_group()) if left is not None]
    return min(found, default=None)


def _of_system() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _of_group() -> int | None:
    try:
        most, now = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # "max": no limit
        return None
    return most - now
