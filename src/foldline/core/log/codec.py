"""The one serialisation of the log: JSON bytes in which every Python string survives.

Real sessions hold lone surrogates (half an emoji cut by a byte limit), which UTF-8 cannot carry. In the log
those texts are written with ASCII escapes; everything else is plain UTF-8. Whatever leaves it (a view, a
prompt, an answer, an export) has U+FFFD in their place: no API takes them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, cast

import msgspec

_encoder = msgspec.json.Encoder()
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""A pair of surrogates, one without its other half, or any other escape."""


def prepared(kind: type[msgspec.Struct]) -> None:
    """Have msgspec learn a struct, and those in it, where it is defined: done for each that is read later.

    Version 0.22 crashes the process where several threads are the first to read one.
    """
    msgspec.json.Decoder(kind)


def encode(value: Any) -> bytes:
    """Serialise a JSON-like value once: compact, key order kept.

    Bytes become base64. Raises TypeError for objects that JSON cannot hold.
    """
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return json.dumps(_finite(msgspec.to_builtins(value)), separators=(",", ":")).encode("ascii")


def encode_utf8(value: Any) -> bytes:
    """Serialise a JSON-like value for others: as `encode`, with U+FFFD for each lone surrogate."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return encode(in_utf8(msgspec.to_builtins(value)))


def pretty(value: Any) -> bytes:
    """Serialise a JSON-like value to be read by people: indented by two, without a line break at its end."""
    return msgspec.json.format(encode_utf8(value), indent=2)


def in_utf8(value: Any) -> Any:
    """Return a JSON-like value that UTF-8 can carry: U+FFFD for each lone surrogate; the same one without."""
    try:
        _encoder.encode(value)
    except (ValueError, OverflowError, TypeError):  # a lone surrogate, or what JSON cannot hold beside one
        return _mended(value)
    return value


def text_in_utf8(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate; two that belong together become their character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return text_in_utf8(value)
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {_mended(key): _mended(item) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in cast("list[Any]", value)]
    return value


def whole_escapes(raw: bytes) -> bytes:
    r"""Return JSON bytes with `\ufffd` for each escape of a lone surrogate: what strict parsers refuse."""
    return _ESCAPE.sub(_whole, raw) if _HALF.search(raw) else raw


def _whole(found: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if found["half"] else found[0]


def _finite(value: Any) -> Any:
    """Return a value in which numbers that JSON does not have are null, as in the plain encoding."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast("list[Any]", value)]
    return value


def decode(raw: bytes) -> Any:
    """Parse what `encode` wrote, or bytes as a provider sent them."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(raw)
