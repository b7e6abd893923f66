"""Bytes in Converse's blocks: Python bytes in boto3, base64 in the API's JSON.

The log stores JSON: bytes are stored as an object around their base64, and rendered as bytes again. Strings
are not changed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final, cast

_BASE64: Final = "base64"
_HOLDERS: Final = (
    "content", "image", "document", "video", "audio", "toolResult", "guardContent", "reasoningContent",
    "source",
)  # fmt: skip
_BLOBS: Final = ("bytes", "redactedContent")


def with_kept(value: Any) -> Any:
    """Return a message with its bytes in the stored form; the same object if it has none."""
    return _map_blobs(value, _to_stored)


def with_bytes(value: Any) -> Any:
    """Return a message with its stored bytes as Python bytes; the same object if it has none."""
    return _map_blobs(value, _to_bytes)


def base64_of(value: Any) -> str | None:
    """Return the base64 of bytes in any form; None for other values."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    text = cast("dict[str, Any]", value).get(_BASE64) if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def stored_bytes(data: str) -> Any:
    """Return base64 in the stored form of bytes; None if it is invalid."""
    return {_BASE64: data} if _decoded(data) else None


def _map_blobs(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with all its blobs changed; the same object if it has none."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        new = [_map_blobs(item, change) for item in items]
        return new if any(after is not before for after, before in zip(new, items, strict=True)) else items
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    changed: dict[str, Any] = {}
    for key in fields.keys() & {*_HOLDERS, *_BLOBS}:
        new = change(fields[key]) if key in _BLOBS else _map_blobs(fields[key], change)
        if new is not fields[key]:
            changed[key] = new
    return {**fields, **changed} if changed else fields


def _to_stored(value: Any) -> Any:
    return {_BASE64: base64_of(value)} if isinstance(value, bytes | bytearray) else value


def _to_bytes(value: Any) -> Any:
    data = None if isinstance(value, str) else _decoded(base64_of(value))
    return cast("Any", value) if data is None else data


def _decoded(data: str | None) -> bytes | None:
    try:
        return None if data is None else base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
