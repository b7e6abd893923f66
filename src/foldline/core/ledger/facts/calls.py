"""The arguments of calls, whatever a tool names them: plain keys, rows, strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from foldline.core.log.messages import ToolCall


@lru_cache(maxsize=4_096)
def plain(key: str) -> str:
    """Reduce an argument's or a tool's name to its letters and digits, lower case."""
    return re.sub(r"[^a-z0-9]", "", key.lower())


def arguments(call: ToolCall) -> dict[str, Any]:
    """Return the call's arguments by plain key; a call that carries bare text has it under "input"."""
    if isinstance(call.arguments, str):
        return {"input": call.arguments}
    return by_plain_key(call.arguments)


def by_plain_key(row: Any) -> dict[str, Any]:
    """Return a JSON object with its keys made plain."""
    return {plain(str(key)): value for key, value in row.items()}


def as_list(value: Any) -> list[Any]:
    """Return a JSON list as it is, and of anything else an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def rows_of(value: Any, most: int = 200) -> list[dict[str, Any]]:
    """Return the objects in a JSON list with their keys made plain, the first `most` of them."""
    return [by_plain_key(row) for row in as_list(value)[:most] if isinstance(row, dict)]


def strings(value: Any, depth: int = 4) -> Iterator[str]:
    """Yield the strings in a JSON value, to a depth."""
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, dict):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]  JSON has no narrower type
            yield from strings(inner, depth - 1)
    elif depth and isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from strings(inner, depth - 1)
