"""Parse JSON lines, documents and sidecar files, and read fields whose types are not certain.

A line that cannot be read becomes a warning; a document, which is one value, is refused whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec

from foldline.core.log.entries import dated
from foldline.dialects.payload import fields_of, is_deep, items_of
from foldline.errors import FormatError
from foldline.transcripts.records import MAX_DEPTH, MAX_LINE, MAX_WHOLE, FactRecord, WarningRecord

R = TypeVar("R")

_BOM = b"\xef\xbb\xbf"
_MEBIBYTE = 1024 * 1024
_decoder = msgspec.json.Decoder()


class Line(NamedTuple):
    """A line without its line break; `ended` is False for a last line that has none."""

    number: int
    raw: bytes
    ended: bool


class Row(dict[str, Any]):
    """A JSON object of a file and its line; nested objects have the same line.

    Its methods read fields of unknown type: a value of another type than requested counts as missing.
    """

    __slots__ = ("line",)

    def __init__(self, fields: Any = (), line: int = 0) -> None:
        super().__init__(fields)
        self.line = line

    def text(self, key: str, default: str = "") -> str:
        """Return the text of a field."""
        return text_or(self.get(key), default)

    def count(self, key: str) -> int | None:
        """Return the whole number of a field if it is at least 0."""
        return count_or_none(self.get(key))

    def time(self, key: str) -> float | None:
        """Return the Unix time of a field."""
        return moment(self.get(key))

    def inner(self, *keys: str) -> Row:
        """Return the object at a path of fields; an empty one if there is none."""
        value: Any = self
        for key in keys:
            value = fields_of(fields_of(value).get(key))
        return Row(value, self.line)

    def rows(self, key: str) -> list[Row]:
        """Return the objects in a field's list, with an empty one for each other value."""
        return [Row(fields_of(value), self.line) for value in items_of(self.get(key))]

    def only(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the given fields that are not empty."""
        return {key: self[key] for key in keys if self.get(key)}

    def facts(self, **fields: str) -> Iterator[FactRecord]:
        """Yield a fact of each kind whose field has text: `facts(title="name")`."""
        for kind, field in fields.items():
            if self.text(field):
                yield FactRecord(kind, {kind: self[field]}, self.line)

    def without(self, *keys: str) -> dict[str, Any]:
        """Return all fields but these."""
        return {key: value for key, value in self.items() if key not in keys}


class Unreadable(Exception):
    """Raised for a line or document that is not JSON; `line` is its first bad line."""

    def __init__(self, why: str, line: int = 1) -> None:
        super().__init__(why)
        self.line = line


def lines(stream: BinaryIO, limit: int = MAX_LINE) -> Iterator[Line | WarningRecord]:
    """Yield the non-blank lines, in O(line) memory; a line longer than `limit` bytes becomes a warning."""
    number = 0
    while raw := stream.readline(limit + 1):
        number += 1
        if len(raw) > limit and not raw.endswith(b"\n"):
            size = len(raw) + _skip(stream)
            yield WarningRecord(number, f"skipped: {size:,} bytes; longer than {limit // _MEBIBYTE} MiB")
            continue
        ended = raw.endswith(b"\n")
        body = raw.strip()
        if number == 1:
            body = body.removeprefix(_BOM).lstrip()
        if body:
            yield Line(number, body, ended)


def _skip(stream: BinaryIO) -> int:
    """Skip to the end of the line; return the number of bytes."""
    size = 0
    while piece := stream.readline(_MEBIBYTE):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def parse(raw: bytes) -> tuple[Any, str | None]:
    """Parse JSON bytes; return the value, and what had to be repaired (None: nothing).

    Lone surrogates survive; NaN and infinities become null, invalid UTF-8 the replacement character.
    Raises Unreadable.
    """
    try:
        value = _decoder.decode(raw)
    except RecursionError:
        raise Unreadable("nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        value, note = _parse_slowly(raw)
    else:
        note = None
    if is_deep(value, MAX_DEPTH):
        raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
    return value, note


def _parse_slowly(raw: bytes) -> tuple[Any, str | None]:
    """Parse JSON that the strict parser refuses but real files contain."""
    notes: list[str] = []
    if raw[:1] == b"\0" or raw[-1:] == b"\0":  # left by a crash after the file was extended
        notes.append("NUL bytes around it skipped")
        raw = raw.strip(b"\0 \t\r\n")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", "replace")
        notes.append(f"byte {error.start + 1} is not UTF-8; replaced")

    def constant(name: str) -> None:
        notes.append(f"{name} is not JSON; read as null")

    def number(digits: str) -> float | None:
        value = float(digits)
        return value if value - value == 0 else constant(digits)

    try:
        value = json.loads(text, parse_constant=constant, parse_float=number)
    except RecursionError:
        raise Unreadable("nested too deep") from None
    except json.JSONDecodeError as error:
        if not raw:
            raise Unreadable("only NUL bytes") from None
        why = f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}"
        raise Unreadable(why, error.lineno) from None
    except ValueError:
        raise Unreadable(f"a number of more than {sys.get_int_max_str_digits():,} digits") from None
    return value, "; ".join(dict.fromkeys(notes)) or None


def read_rows(stream: BinaryIO) -> Iterator[Row | WarningRecord]:
    """Yield the JSON objects of a JSON lines stream from its position on, one line in memory at a time.

    An unreadable line becomes a `WarningRecord`.
    """
    for line in lines(stream):
        if isinstance(line, WarningRecord):
            yield line
        else:
            yield from _read_row(line)


def take_rows(stream: BinaryIO, take: Callable[[Row], Iterable[R]]) -> Iterator[R | WarningRecord]:
    """Yield what `take` makes of each JSON object of a stream, and the warnings about other lines."""
    for item in read_rows(stream):
        if isinstance(item, WarningRecord):
            yield item
        else:
            yield from take(item)


def scan_rows(stream: BinaryIO, take: Callable[[Row], None]) -> None:
    """Pass every JSON object of a stream to `take`, then rewind the stream to its position."""
    start = stream.tell()
    for item in read_rows(stream):
        if isinstance(item, Row):
            take(item)
    stream.seek(start)


def count_fact(kind: str, counts: dict[str, Any]) -> Iterator[FactRecord]:
    """Yield a fact with counts of what was left out, unless all are 0."""
    if any(counts.values()):
        yield FactRecord(kind, counts)


def _read_row(line: Line) -> Iterator[Row | WarningRecord]:
    """Yield the object on a line, after a warning if it was repaired; or only a warning."""
    try:
        value, note = parse(line.raw)
    except Unreadable as error:
        consequence = "the file ends inside this line" if not line.ended else "left out"
        yield WarningRecord(line.number, f"{error} ({consequence})")
        return
    if note:
        yield WarningRecord(line.number, note)
    if isinstance(value, dict):
        yield Row(value, line.number)
    else:
        yield WarningRecord(line.number, f"holds a JSON {_kind(value)}, not an object (left out)")


def _kind(value: Any) -> str:
    """Return JSON's name for the type of a value."""
    names: dict[type, str] = {str: "string", bool: "boolean", type(None): "null"}
    return "list" if isinstance(value, list) else names.get(value.__class__, "number")


def read_document(stream: BinaryIO, name: str) -> tuple[Any, str | None]:
    """Load one JSON document of at most 256 MiB; return the value, and what had to be repaired.

    Raises FormatError with the line that cannot be parsed.
    """
    raw = stream.read(MAX_WHOLE + 1)
    if len(raw) > MAX_WHOLE:
        raise FormatError(
            f"larger than {MAX_WHOLE // _MEBIBYTE} MiB, the limit of a JSON document; use JSON lines",
            where=name,
        )
    raw = raw.removeprefix(_BOM).strip()
    try:
        return parse(raw)
    except Unreadable as error:
        raise FormatError(str(error), where=name, line=error.line) from None


def read_messages_document(stream: BinaryIO, name: str) -> Generator[WarningRecord, None, Row]:
    """Return a file's JSON object with `messages`; yield a warning if it had to be repaired.

    Raises FormatError if it has no list of messages.
    """
    value, note = read_document(stream, name)
    if note:
        yield WarningRecord(1, note)
    document = Row(fields_of(value), 1)
    if not isinstance(document.get("messages"), list):
        raise FormatError('needs a list of messages under "messages"', where=name)
    return document


def stem_of(path: Path) -> str:
    """Return a session file's name without `.jsonl` and `.gz`: the stem of its sidecar's name."""
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def read_sidecar(path: Path) -> Row | WarningRecord:
    """Read the JSON object in a file ({} if there is no file); return a warning if it cannot be read."""
    try:
        with path.open("rb") as stream:
            value, note = read_document(stream, str(path))
    except FileNotFoundError:
        return Row()
    except OSError as error:
        return WarningRecord(0, f"{path} next to it cannot be read: {error.strerror or error}")
    except FormatError as error:
        return WarningRecord(0, f"next to it, {error} (left out)")
    if note:
        return WarningRecord(0, f"{path} next to it is damaged: {note} (left out)")
    if not isinstance(value, dict):
        return WarningRecord(0, f"{path} next to it is not a JSON object (left out)")
    return Row(fields_of(value))


def moment(value: Any) -> float | None:
    """Return Unix time in seconds from ISO 8601 text, seconds or milliseconds (above 1e11); else None.

    Times before 1970 or after 9999 count as None.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return dated(value / (1000 if value > 1e11 else 1)) if abs(value) < 1e17 else None
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return dated((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())


def date_of(when: float | None) -> datetime | None:
    """Return a Unix time as a date; None for None, or if it is out of range."""
    valid = dated(when)
    return None if valid is None else datetime.fromtimestamp(valid, UTC)


def text_or(value: Any, default: str = "") -> str:
    """Return the value if it is a string, else the default."""
    return value if isinstance(value, str) else default


def count_or_none(value: Any) -> int | None:
    """Return the value if it is a whole number of at least 0, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
