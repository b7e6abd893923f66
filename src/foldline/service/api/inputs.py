"""What a request says, decoded and checked: its body as JSON up to a depth, its query, its conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from foldline.core.log.codec import whole_escapes
from foldline.errors import InputError

DEPTH: Final = 64  # levels of nesting in a body
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')


def decoded_body(raw: bytes, kind: Any) -> Any:
    """Return a JSON body as its type; raises InputError that says what is wrong, and where."""
    try:
        value = msgspec.json.decode(whole_escapes(raw) or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise InputError(f"the body is not what this takes: {error}") from error
    except RecursionError as error:
        raise InputError(f"the body is nested too deep: {DEPTH} levels are read") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the body is not JSON: {error}") from error
    if too_deep(raw):
        raise InputError(f"the body is nested too deep: {DEPTH} levels are read")
    return value


def too_deep(raw: bytes, most: int = DEPTH) -> bool:
    """Return whether valid JSON is nested deeper than that many levels."""
    left = _TEXT.sub(b"", raw).translate(None, _NO_BRACKETS)
    for _ in range(most):
        if not left:
            return False
        left = left.replace(b"[]", b"").replace(b"{}", b"")
    return bool(left)


def decoded_query(query: Mapping[str, str], kind: Any) -> Any:
    """Return a query as its type; raises InputError for what is unknown or wrong."""
    unknown = set(query) - {field.encode_name for field in msgspec.structs.fields(kind)}
    if unknown:
        raise InputError(f"the query has no parameter {min(unknown)!r}")
    try:
        return msgspec.convert(dict(query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"the query is not what this takes: {error}") from error


def matches(condition: str | None, leaf: str | None) -> bool:
    """Return whether `If-Match` holds for a leaf; no condition always does, `*` for any leaf."""
    if condition is None or condition.strip() == "*":
        return True
    tags = [_TAG.fullmatch(one) for one in condition.split(",")]
    return any(tag is not None and not tag[1] and tag[2] == (leaf or "") for tag in tags)


def etag(leaf: str | None) -> str:
    """Return a leaf as an entity tag; that of an empty path is empty."""
    return f'"{leaf or ""}"'
