"""Files, opened so that none hangs and none leads elsewhere, and written whole or not at all.

A path under `inside` is walked folder by folder without following links, so that one that is put in its
place meanwhile is an error, not a way out.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from foldline.errors import InputError

PRIVATE: Final = 0o600
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_OWNER: Final = 0o700


def _flags(*names: str) -> int:
    """Return flags of `os.open`, those that this system has."""
    return sum(getattr(os, f"O_{name}", 0) for name in names)


_FOLDER: Final = _flags("DIRECTORY", "PATH", "CLOEXEC")
# without NONBLOCK a pipe is waited for, until somebody writes into it
_TO_READ: Final = _flags("NONBLOCK", "NOCTTY", "CLOEXEC", "BINARY")
_TO_MAKE: Final = _flags("WRONLY", "CREAT", "EXCL", "NOFOLLOW", "CLOEXEC")
_TO_APPEND: Final = _flags("WRONLY", "APPEND", "CREAT", "CLOEXEC")
_NOFOLLOW: Final = _flags("NOFOLLOW")
_KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def opened(path: Path, *, inside: Path | None = None) -> BinaryIO:
    """Open a file to read it. Raises OSError, and InputError for a pipe, a socket or a device."""
    if inside is None:
        return _regular(path, None, 0)
    with _folder(path.parent, inside) as folder:
        return _regular(path, folder, _NOFOLLOW)


def content(path: Path, most: int, *, inside: Path | None = None) -> bytes:
    """Return what a file holds, of `most` bytes at most; raises as `opened` does, InputError for more."""
    with opened(path, inside=inside) as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise InputError(f"{path} is larger than {most:,} bytes")
    return found


@contextmanager
def written(path: Path, *, inside: Path | None = None, mode: int | None = None) -> Generator[BinaryIO]:
    """Give a file that becomes `path` when the block ends well; folders above it are made.

    It keeps the mode of the file that it replaces; a new one has `mode` (None: what the umask leaves). Raises
    OSError, and InputError where something stands there that is no file.
    """
    name = f".{path.name[:60]}.{secrets.token_hex(8)}.part"
    with _folder(path.parent, inside, make=0o777 if mode is None else _OWNER) as folder:
        kept = _mode(path, folder) if mode is None else None
        handle = os.open(name, _TO_MAKE, 0o666 if mode is None else mode, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                if kept is not None:
                    os.fchmod(handle, kept)
                os.fsync(handle)
            os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone."""
    for one in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        one.mkdir(mode=_OWNER, exist_ok=True)


def create_private(path: Path) -> None:
    """Make a file, if it is not there, and its folders for their owner alone. Raises OSError."""
    make_private(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))


def append_private(path: Path) -> BinaryIO:
    """Open a file to write behind what it holds; a new one, and new folders, are their owner's."""
    make_private(path.parent)
    return os.fdopen(os.open(path, _TO_APPEND, PRIVATE), "ab")


def _regular(path: Path, folder: int | None, flags: int) -> BinaryIO:
    handle = os.open(path if folder is None else path.name, _TO_READ | flags, dir_fd=folder)
    try:
        _check(path, os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _mode(path: Path, folder: int) -> int | None:
    """Return the permissions of the file at a path, None where there is none."""
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check(path, found)
    return None if stat.S_ISLNK(found.st_mode) else stat.S_IMODE(found.st_mode)


def _check(path: Path, found: os.stat_result) -> None:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind is not None:
        raise InputError(f"{path} is {kind}, not a file")
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


@contextmanager
def _folder(path: Path, inside: Path | None, *, make: int | None = None) -> Generator[int]:
    """Give a folder as a descriptor, reached from `inside` without links."""
    start = path if inside is None else inside
    if inside is None and make is not None:
        make_private(path) if make == _OWNER else path.mkdir(parents=True, exist_ok=True)
    handle = os.open(start, _FOLDER)
    try:
        for name in path.relative_to(start).parts:
            if make is not None:
                with suppress(FileExistsError):
                    os.mkdir(name, make, dir_fd=handle)
            below = os.open(name, _FOLDER | _NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def expanded(path: str) -> Path:
    """Return a path with the home folder that its `~` stands for. Raises InputError where there is none."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path}: there is no such home folder; set HOME, or give a full path") from error


def safe_name(label: str, most: int = 60) -> str:
    """Return a file's name with plain letters only, none of which steers a path, an option or a drawing."""
    return _UNSAFE.sub("-", label)[-most:].strip("-.") or "session"
