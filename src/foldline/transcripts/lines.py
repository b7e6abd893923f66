"""Lines of bytes -> JSON objects. What cannot be read becomes a warning that names the line."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from foldline.errors import FormatError
from foldline.transcripts.base import MAX_DEPTH, MAX_LINE, MAX_WHOLE, Warned

_BOM = b"\xef\xbb\xbf"
_MEBIBYTE = 1024 * 1024
_decoder = msgspec.json.Decoder()


class Line(NamedTuple):
    """A line without its line end; `ended` is False for a last line that no line break closes."""

    number: int
    raw: bytes
    ended: bool


class Row(NamedTuple):
    """A JSON object and the line it stands on."""

    number: int
    value: dict[str, Any]


class Unreadable(Exception):
    """Why a line is no JSON."""


def lines(stream: BinaryIO, limit: int = MAX_LINE) -> Iterator[Line | Warned]:
    """Yield the lines that hold something, in O(line) memory; longer ones than `limit` bytes as warnings."""
    number = 0
    while raw := stream.readline(limit + 1):
        number += 1
        if len(raw) > limit and not raw.endswith(b"\n"):
            size = len(raw) + _skip(stream)
            yield Warned(
                number, f"passed over: {size:,} bytes, more than the {limit // _MEBIBYTE} MiB of one line"
            )
            continue
        ended = raw.endswith(b"\n")
        body = raw.strip()
        if number == 1:
            body = body.removeprefix(_BOM).lstrip()
        if body:
            yield Line(number, body, ended)


def _skip(stream: BinaryIO) -> int:
    """Read to the end of the line; return the bytes passed."""
    size = 0
    while piece := stream.readline(_MEBIBYTE):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def parse(raw: bytes) -> tuple[Any, str | None]:
    """Parse JSON bytes: the value, and what had to be mended to read it (None: nothing).

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
    if not shallow(value):
        raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
    return value, note


def _parse_slowly(raw: bytes) -> tuple[Any, str | None]:
    """Parse what strict JSON refuses and real files hold."""
    notes: list[str] = []
    if raw[:1] == b"\0" or raw[-1:] == b"\0":  # what a crash leaves where a write was promised
        notes.append("NUL bytes around it passed over")
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
    except ValueError as error:
        if not raw:
            raise Unreadable("nothing but NUL bytes") from None
        place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg.removesuffix(" at") if isinstance(error, json.JSONDecodeError) else str(error)
        raise Unreadable(f"not JSON: {reason}{place}") from None
    return value, "; ".join(dict.fromkeys(notes)) or None


def shallow(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether a parsed value is nested at most `limit` levels; never recurses."""
    level = [value]
    for _ in range(limit + 1):
        level = [item for node in level for item in _inner(node) if isinstance(item, dict | list)]
        if not level:
            return True
    return False


def _inner(node: Any) -> Any:
    """What a JSON object or list holds."""
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()  # pyright: ignore[reportUnknownVariableType]


def rows(stream: BinaryIO, wanted: Container[int] | None = None) -> Iterator[Row | Warned]:
    """Yield the JSON objects of a JSON-lines stream from where it stands, one line in memory at a time.

    `wanted` limits parsing to those line numbers. A line that cannot be read is a `Warned`.
    """
    for line in lines(stream):
        if isinstance(line, Warned):
            yield line
        elif wanted is None or line.number in wanted:
            yield from row(line)


def row(line: Line) -> Iterator[Row | Warned]:
    """Yield the object on a line, after a warning where it had to be mended; or the warning alone."""
    try:
        value, note = parse(line.raw)
    except Unreadable as error:
        cut = "the file ends inside this line" if not line.ended else "left out"
        yield Warned(line.number, f"{error} ({cut})")
        return
    if note:
        yield Warned(line.number, note)
    if isinstance(value, dict):
        yield Row(line.number, value)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield Warned(line.number, f"holds a JSON {_kind(value)}, not an object (left out)")


def _kind(value: Any) -> str:
    """JSON's name for the type of a value."""
    names: dict[type, str] = {str: "string", bool: "boolean", type(None): "null"}
    return "list" if isinstance(value, list) else names.get(value.__class__, "number")


def whole(stream: BinaryIO, name: str) -> tuple[Any, str | None]:
    """Load one JSON document of at most 256 MiB: the value, and what had to be mended.

    Raises FormatError with the line where it breaks.
    """
    raw = stream.read(MAX_WHOLE + 1)
    if len(raw) > MAX_WHOLE:
        raise FormatError(
            f"is one JSON document of more than {MAX_WHOLE // _MEBIBYTE} MiB; give it as JSON lines, one message a line",
            where=name,
        )
    raw = raw.removeprefix(_BOM).strip()
    try:
        return parse(raw)
    except Unreadable as error:
        raise FormatError(str(error), where=name, line=_broken_at(raw)) from None


def _broken_at(raw: bytes) -> int:
    """The 1-based line on which a JSON document breaks."""
    try:
        json.loads(raw.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        return error.lineno
    except (RecursionError, ValueError):
        return 1
    return 1
