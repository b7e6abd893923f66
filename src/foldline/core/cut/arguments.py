"""Arguments of a call, made smaller: the same keys in the same order, still an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from foldline.core.cut.shorten import LEAST, way_back

Path = tuple[str | int, ...]

DEEPEST = 20  # levels that are looked into; what lies deeper gives way as a whole
SIDE = 2  # items kept at either end of a list


def string_leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield each string in a JSON-like value with the keys and indices that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif len(path) < DEEPEST:
        for key, inner in _items(value):
            yield from string_leaves(inner, (*path, key))


def put(value: Any, changed: Mapping[Path, str], path: Path = ()) -> Any:
    """Return the value with the strings at the given paths replaced; everything else is as it was."""
    if isinstance(value, str):
        return changed.get(path, value)
    if len(path) >= DEEPEST:
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: put(inner, changed, (*path, key)) for key, inner in fields.items()}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [put(inner, changed, (*path, index)) for index, inner in enumerate(items)]
    return value


def outlined(arguments: dict[str, Any], handle: str) -> dict[str, Any]:
    """Return the arguments, long lists cut to their ends, objects below the second level named only."""
    return {key: _outline(value, handle, 0) for key, value in arguments.items()}


def emptied(arguments: dict[str, Any], handle: str) -> dict[str, Any]:
    """Return the arguments with every list and object replaced by a note, keys and plain values kept."""
    return {
        key: _note(value, handle) if isinstance(value, dict | list) else value
        for key, value in arguments.items()
    }


def _outline(value: Any, handle: str, depth: int) -> Any:
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if depth > 1:
            return _note(items, handle)
        if len(items) > 2 * SIDE + 1:
            middle = f"[… {len(items) - 2 * SIDE:,} items left out{way_back(handle)} …]"
            ends = [*items[:SIDE], middle, *items[-SIDE:]]
            return [_outline(item, handle, depth + 1) for item in ends]
        return [_outline(item, handle, depth + 1) for item in items]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if depth > 1:
            return _note(fields, handle)
        return {key: _outline(inner, handle, depth + 1) for key, inner in fields.items()}
    return value


def _note(value: Any, handle: str) -> str:
    return f"[… {len(value):,} items left out{way_back(handle)} …]" if value else LEAST


def _items(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[str | int, Any]", value).items())
    if isinstance(value, list):
        return list(enumerate(cast("list[Any]", value)))
    return []
