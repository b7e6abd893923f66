"""Open files without hanging or following links, and write them atomically.

A path under `inside` is walked folder by folder without following links: a link that replaces a folder
meanwhile raises an error, and cannot lead outside.
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
    """Combine the flags of `os.open` that this system has."""
    return sum(getattr(os, f"O_{name}", 0) for name in names)


_FOLDER: Final = _flags("DIRECTORY", "PATH", "CLOEXEC")
# without NONBLOCK, opening a pipe blocks until it has a writer
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
        return _open_regular(path, None, 0)
    with _open_folder(path.parent, inside) as folder:
        return _open_regular(path, folder, _NOFOLLOW)


def content(path: Path, most: int, *, inside: Path | None = None) -> bytes:
    """Read a file of at most `most` bytes; raises as `opened` does, and InputError for a larger file."""
    with opened(path, inside=inside) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"{path} is larger than {most:,} bytes")
    return data


@contextmanager
def written(path: Path, *, inside: Path | None = None, mode: int | None = None) -> Generator[BinaryIO]:
    """Yield a temporary file that replaces `path` when the block succeeds; creates missing folders.

    A replaced file keeps its permissions; a new file gets `mode` (None: the umask's default). Raises OSError,
    and InputError if `path` is a pipe, a socket or a device.
    """
    name = f".{path.name[:60]}.{secrets.token_hex(8)}.part"
    with _open_folder(path.parent, inside, make=0o777 if mode is None else _OWNER) as folder:
        old_mode = _permissions(path, folder) if mode is None else None
        handle = os.open(name, _TO_MAKE, 0o666 if mode is None else mode, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                if old_mode is not None:
                    os.fchmod(handle, old_mode)
                os.fsync(handle)
            os.replace(name, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, accessible to their owner only."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        missing.mkdir(mode=_OWNER, exist_ok=True)


def create_private(path: Path) -> None:
    """Create a file and its folders if missing, accessible to their owner only. Raises OSError."""
    make_private(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE))


def append_private(path: Path) -> BinaryIO:
    """Open a file for appending; a new file and new folders are accessible to their owner only."""
    make_private(path.parent)
    return os.fdopen(os.open(path, _TO_APPEND, PRIVATE), "ab")


def _open_regular(path: Path, folder: int | None, flags: int) -> BinaryIO:
    handle = os.open(path if folder is None else path.name, _TO_READ | flags, dir_fd=folder)
    try:
        _check_is_file(path, os.fstat(handle))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _permissions(path: Path, folder: int) -> int | None:
    """Return the permissions of the file at a path; None for a link or a missing file."""
    try:
        info = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_is_file(path, info)
    return None if stat.S_ISLNK(info.st_mode) else stat.S_IMODE(info.st_mode)


def _check_is_file(path: Path, info: os.stat_result) -> None:
    kind = _KINDS.get(stat.S_IFMT(info.st_mode))
    if kind is not None:
        raise InputError(f"{path} is {kind}, not a file")
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))


@contextmanager
def _open_folder(path: Path, inside: Path | None, *, make: int | None = None) -> Generator[int]:
    """Yield a descriptor of a folder, reached from `inside` without following links."""
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
    """Expand `~` to the home folder. Raises InputError if the home folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise InputError(f"{path}: the home folder is unknown; set HOME, or give a full path") from error


def safe_name(label: str, most: int = 60) -> str:
    """Return a label as a file name of ASCII letters, digits and `._-`, never an option or another path."""
    return _UNSAFE.sub("-", label)[-most:].strip("-.") or "session"
