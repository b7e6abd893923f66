"""Open a transcript: a path, standard input or an open stream; gzip is unpacked."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import tempfile
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from foldline.errors import FormatError

_GZIP = b"\x1f\x8b"
_SPOOL = 16 * 1024 * 1024  # standard input up to this size stays in memory


def open_transcript(source: str | Path) -> BinaryIO:
    """Open a session file for reading; `-` is standard input. The stream can be rewound.

    Raises FormatError if it cannot be opened: missing, a directory, unreadable, broken gzip.
    """
    if str(source) == "-":
        return make_rewindable(sys.stdin.buffer, "standard input")
    path = Path(source)
    if path.is_dir():
        raise FormatError("this is a directory; name a session file", where=str(path))
    try:
        stream = path.open("rb")
        try:
            return make_rewindable(stream, str(path))
        except BaseException:
            stream.close()
            raise
    except FileNotFoundError:
        raise FormatError("no such file", where=str(path)) from None
    except OSError as error:
        raise FormatError(f"cannot be opened: {error.strerror or error}", where=str(path)) from error


def make_rewindable(stream: BinaryIO, name: str = "") -> BinaryIO:
    """Return a stream that can be read twice, unpacked if it is gzip.

    A stream that cannot seek (a pipe) is copied to a temporary file first, to keep memory small.
    """
    if not _seeks(stream):
        spool = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_SPOOL))  # noqa: SIM115
        shutil.copyfileobj(stream, spool, 1024 * 1024)
        spool.seek(0)
        stream = spool
    start = stream.tell()
    magic = stream.read(2)
    stream.seek(start)
    if magic != _GZIP:
        return stream
    return cast("BinaryIO", io.BufferedReader(_Unzipped(stream, name), 1024 * 1024))


def is_cut_off(stream: BinaryIO) -> bool:
    """Return whether a stream, read to its end, is a gzip file whose own end is missing."""
    raw = getattr(stream, "raw", None)
    return isinstance(raw, _Unzipped) and raw.cut_off


def path_of(stream: BinaryIO) -> Path | None:
    """Return the path of the file that a stream reads; None if it has no name."""
    name = getattr(stream, "name", None)
    return Path(name) if isinstance(name, str) and name else None


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
