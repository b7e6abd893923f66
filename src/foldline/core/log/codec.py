"""The one serialisation of the log: JSON bytes in which every Python string survives.

Real sessions hold lone surrogates (half an emoji cut by a byte limit), which UTF-8 cannot carry. Those
texts are written with ASCII escapes; everything else is plain UTF-8.
"""

from __future__ import annotations

import json
import math
from typing import Any, cast

import msgspec

_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """Serialise a JSON-like value once: compact, key order kept.

    Bytes become base64. Raises TypeError for objects that JSON cannot hold.
    """
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, OverflowError, ValueError):
        return json.dumps(_finite(msgspec.to_builtins(value)), separators=(",", ":")).encode("ascii")


def pretty(value: Any) -> bytes:
    """Serialise a JSON-like value to be read by people: indented by two, without a line break at its end."""
    try:
        return msgspec.json.format(encode(value), indent=2)
    except msgspec.DecodeError:  # half a character, which only JSON's escapes can write
        return json.dumps(_finite(msgspec.to_builtins(value)), indent=2).encode("ascii")


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
