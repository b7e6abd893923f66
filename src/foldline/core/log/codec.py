"""The serialisation of the log: JSON bytes that preserve every Python string.

Real sessions contain lone surrogates (half an emoji cut by a byte limit), which UTF-8 cannot encode. The log
writes those texts with ASCII escapes and everything else as plain UTF-8. In all output (a view, a prompt, an
answer, an export) U+FFFD replaces them, since no API accepts them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

_encoder = msgspec.json.Encoder()
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""A pair of surrogates, one without its other half, or any other escape."""


def prepared(kind: type[msgspec.Struct]) -> None:
    """Prepare msgspec for decoding a struct; call it where the struct is defined.

    msgspec 0.22 crashes the process if several threads decode a type for the first time.
    """
    msgspec.json.Decoder(kind)


def encode(value: Any) -> bytes:
    """Serialise a JSON-like value: compact, key order kept.

    Bytes become base64. Raises TypeError for objects that JSON cannot hold.
    """
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError):
        finite = _mapped(msgspec.to_builtins(value), _finite)
        return json.dumps(finite, separators=(",", ":")).encode("ascii")


def encode_utf8(value: Any) -> bytes:
    """Serialise a JSON-like value for output: as `encode`, with U+FFFD for each lone surrogate."""
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return encode(in_utf8(msgspec.to_builtins(value)))


def pretty(value: Any) -> bytes:
    """Serialise a JSON-like value for people: indented by two, without a final line break."""
    return msgspec.json.format(encode_utf8(value), indent=2)


def in_utf8(value: Any) -> Any:
    """Return a JSON-like value with U+FFFD for each lone surrogate; the same object if there is none."""
    try:
        _encoder.encode(value)
    except (ValueError, OverflowError, TypeError):  # a lone surrogate, or a value that JSON cannot hold
        return _mapped(value, lambda leaf: text_in_utf8(leaf) if isinstance(leaf, str) else leaf)
    return value


def text_in_utf8(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate; a pair of surrogates becomes its character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON-like value with every key and every value that holds no others changed."""
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {change(key): _mapped(item, change) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, change) for item in cast("list[Any]", value)]
    return change(value)


def whole_escapes(raw: bytes) -> bytes:
    r"""Return JSON bytes with `\ufffd` for each escape of a lone surrogate, which strict parsers refuse."""
    if not _HALF.search(raw):
        return raw
    return _ESCAPE.sub(lambda escape: b"\\ufffd" if escape["half"] else escape[0], raw)


def _finite(value: Any) -> Any:
    """Return null for NaN and infinities, as in the plain encoding, and any other value as it is."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def decode(raw: bytes) -> Any:
    """Parse what `encode` wrote, or bytes as a provider sent them."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(raw)
