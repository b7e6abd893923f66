"""A session file of any known format, from an open stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import msgspec

from foldline.core.measure.tokens import OFFLINE, Counter
from foldline.errors import FormatError, InputError
from foldline.loading.loaded import Loaded
from foldline.loading.own import from_own
from foldline.loading.records import from_records
from foldline.transcripts import Record, read

HEADER: Final = 64 * 1024  # bytes that the header line of our own form may have
Through = Callable[[Iterator[Record]], Iterator[Record]]


class _Header(msgspec.Struct):
    format: str


def from_stream(
    stream: BinaryIO,
    name: str,
    *,
    from_start: bool = False,
    counter: Counter = OFFLINE,
    through: Through = lambda records: records,
) -> Loaded:
    """Read a session of any known format; `through` sees the records of other tools' files go by.

    `from_start` leaves out the compactions that the file holds. Raises FormatError (place and line) for what
    cannot be read, InputError where there is no message.
    """
    if not from_start and _is_own(stream, name):
        loaded = from_own(stream, name)
    else:
        loaded = from_records(through(read(stream, name=name)), counter, from_start=from_start)
    if not loaded.entries:
        raise InputError(f"{name}: no message in this file")
    return loaded


def _is_own(stream: BinaryIO, name: str) -> bool:
    try:
        header = stream.readline(HEADER)
        stream.seek(0)
    except OSError as error:
        raise FormatError(f"cannot be read: {error.strerror or error}", where=name) from error
    try:
        return msgspec.json.decode(header, type=_Header).format == "foldline"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
