"""Bytes in Converse's blocks: boto3 takes and gives Python bytes, the API's own JSON has them in base64.

A log holds JSON, so bytes are kept as an object around their base64 and are bytes again in what is sent; a
string stays the string that it was.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final, cast

KEPT: Final = "base64"
_HOLDERS: Final = (
    "content", "image", "document", "video", "audio", "toolResult", "guardContent", "reasoningContent",
    "source",
)  # fmt: skip
_BLOBS: Final = ("bytes", "redactedContent")


def with_kept(value: Any) -> Any:
    """Return a message whose bytes are in the form that JSON can hold; the same object without bytes."""
    return _changed(value, _keep)


def with_bytes(value: Any) -> Any:
    """Return a message whose bytes are bytes again; the same object where none are kept."""
    return _changed(value, _give)


def base64_of(value: Any) -> str | None:
    """Return the base64 of a blob in any of its forms; None for anything else."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    text = cast("dict[str, Any]", value).get(KEPT) if isinstance(value, dict) else value
    return text if isinstance(text, str) else None


def kept(data: str) -> Any:
    """Return base64 as bytes that are kept; None where it is none."""
    return {KEPT: data} if _decoded(data) else None


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a value with each of its blobs changed; what has none stays the same object."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        new = [_changed(item, change) for item in items]
        return new if any(one is not old for one, old in zip(new, items, strict=True)) else items
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    made: dict[str, Any] = {}
    for key in fields.keys() & {*_HOLDERS, *_BLOBS}:
        new = change(fields[key]) if key in _BLOBS else _changed(fields[key], change)
        if new is not fields[key]:
            made[key] = new
    return {**fields, **made} if made else fields


def _keep(value: Any) -> Any:
    return {KEPT: base64_of(value)} if isinstance(value, bytes | bytearray) else value


def _give(value: Any) -> Any:
    data = None if isinstance(value, str) else _decoded(base64_of(value))
    return cast("Any", value) if data is None else data


def _decoded(data: str | None) -> bytes | None:
    try:
        return None if data is None else base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
