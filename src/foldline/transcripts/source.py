"""Open a transcript: a path, standard input or an open stream; gzip is unpacked."""

from __future__ import annotations

import gzip
import io
import os
import stat
import sys
import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from foldline.errors import FormatError

_GZIP = b"\x1f\x8b"
_SPOOL = 16 * 1024 * 1024  # standard input up to this size stays in memory
_BLOCK = 1024 * 1024
_LONGEST = 8 * 2**30  # bytes of a pipe after which it counts as endless
_LONGEST_LINE = 2**30  # the same, without a line break


def open_transcript(source: str | Path) -> BinaryIO:
    """Open a session file for reading; `-` is standard input. The stream can be rewound.

    Raises FormatError if it cannot be opened: missing, a directory, unreadable, broken gzip.
    """
    if str(source) == "-":
        return make_rewindable(sys.stdin.buffer, "standard input")
    path = Path(source)
    _check_kind(path)
    try:
        stream = path.open("rb")
        try:
            if not _seeks(stream):
                with stream:
                    return make_rewindable(_spooled(stream, str(path)), str(path))
            return make_rewindable(stream, str(path))
        except BaseException:
            stream.close()
            raise
    except FileNotFoundError:
        raise FormatError("no such file", where=str(path)) from None
    except OSError as error:
        raise FormatError(f"cannot be opened: {error.strerror or error}", where=str(path)) from error


def _check_kind(path: Path) -> None:
    """Raise FormatError for a path that is neither a file nor a pipe."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # opening it gives the error
    if stat.S_ISDIR(mode):
        raise FormatError("this is a directory; name a session file", where=str(path))
    is_input = path.resolve() == Path("/dev/stdin").resolve() if path.parent == Path("/dev") else False
    if (stat.S_ISCHR(mode) and not is_input) or stat.S_ISBLK(mode):
        raise FormatError("this is a device; name a session file", where=str(path))
    if stat.S_ISSOCK(mode):
        raise FormatError("this is a socket; name a session file, or pipe into `-`", where=str(path))


def make_rewindable(stream: BinaryIO, name: str = "") -> BinaryIO:
    """Return a stream that can be read twice, unpacked if it is gzip.

    A stream that cannot seek (a pipe) is copied to a temporary file first, to keep memory small.
    """
    if not _seeks(stream):
        stream = _spooled(stream, name)
    if not _is_gzip(stream, stream.tell()):
        return stream
    return cast("BinaryIO", io.BufferedReader(_Unzipped(stream, name), 1024 * 1024))


def _spooled(stream: BinaryIO, name: str) -> BinaryIO:
    """Copy a stream to a temporary file; raises FormatError if it is binary or endless."""
    spool = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_SPOOL))  # noqa: SIM115
    try:
        _copy(stream, spool, name)
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return spool


def _copy(stream: BinaryIO, spool: BinaryIO, name: str) -> None:
    size = breaks = 0
    while block := stream.read(_BLOCK):
        if size == 0 and block[:2] != _GZIP and block.count(0) > len(block) // 2:
            raise FormatError("this is binary data, not a session; name a session file", where=name)
        size, breaks = size + len(block), breaks + block.count(b"\n")
        if size > _LONGEST or (size > _LONGEST_LINE and not breaks and not _is_gzip(spool, 0)):
            raise FormatError(
                f"the input did not end within {size // 2**20:,} MB; save it to a file and name that",
                where=name,
            )
        spool.write(block)


def _is_gzip(stream: BinaryIO, start: int) -> bool:
    """Return whether a stream is gzip from `start` on; it keeps its position."""
    at = stream.tell()
    stream.seek(start)
    magic = stream.read(2)
    stream.seek(at)
    return magic == _GZIP


def is_cut_off(stream: BinaryIO) -> bool:
    """Return whether a stream, read to its end, is a truncated gzip file."""
    raw = getattr(stream, "raw", None)
    return isinstance(raw, _Unzipped) and raw.cut_off


def path_of(stream: BinaryIO) -> Path | None:
    """Return the path of the file that a stream reads; None for standard input, or if it has no name."""
    name = getattr(stream, "name", None)
    return Path(name) if isinstance(name, str) and name not in ("", "<stdin>") else None


def _seeks(stream: BinaryIO) -> bool:
    """Return whether the stream can be rewound."""
    try:
        return stream.seekable() and stream.seek(stream.tell()) >= 0
    except (OSError, AttributeError, ValueError):
        return False


class _Unzipped(io.RawIOBase):
    """The unpacked bytes of a gzip stream; a truncated one ends where its data end."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._where = name
        self._file = gzip.GzipFile(fileobj=stream, mode="rb")
        self.cut_off = False

    @property
    def name(self) -> object:
        return getattr(self._stream, "name", None)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: memoryview | bytearray) -> int:  # type: ignore[override]
        try:
            data = self._file.read1(len(buffer))  # read() would drop what it unpacked before a cut
        except EOFError:
            self.cut_off = True
            return 0
        except (OSError, zlib.error) as error:
            raise FormatError(f"broken gzip file: {error}", where=self._where) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        self._stream.close()
        super().close()
