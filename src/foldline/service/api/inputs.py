"""What a request says beside its body: its query, and its conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from foldline.errors import InputError

_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')


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
