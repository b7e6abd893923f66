"""Marks for a provider's prompt cache: a request may have four, so only the newest of a view are kept.

Anthropic's mark is a field of a block, Bedrock's a block. Agents mark the end of each request and store the
marks with their messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from foldline.core.log.codec import encode
from foldline.dialects.payload import Fields, fields_of, to_plain, without

_MARK_KEYS = ("cache_control", "cachePoint")
_LEVELS = 6  # a list, a message, its blocks, a block, the blocks of a result, one of them
MARKS = 4  # in one request, system prompt and tools included (API reference)


def marks(*values: Any) -> int:
    """Count the cache marks of messages, of a system prompt or of tools."""
    return sum(1 for value in values for holder in _holders(value) if _is_marked(holder))


def _is_marked(block: Fields) -> bool:
    return any(block.get(mark) for mark in _MARK_KEYS)


def written_marks(messages: Sequence[Any]) -> int:
    """Return an upper bound of the cache marks in messages: the number of such fields in their JSON."""
    try:
        raw = encode(messages)
    except TypeError:  # objects of an SDK
        raw = encode(to_plain(messages))
    return sum(raw.count(f'"{mark}":'.encode()) for mark in _MARK_KEYS)


def within_marks(messages: Sequence[Any], *reserved: Any) -> list[Any]:
    """Return messages with only their newest marks: four, minus those of `reserved` (system prompt, tools).

    The arguments are not changed; a message that keeps all its marks is returned as the same object.
    """
    left = MARKS - marks(*reserved)
    if written_marks(messages) <= left:
        return list(messages)
    limited: list[Any] = []
    for message in reversed(messages):
        count = marks(message)
        limited.append(message if count <= left else _without_marks(message, count - max(left, 0))[0])
        left -= count
    return limited[::-1]


def _holders(value: Any, levels: int = _LEVELS) -> Iterator[Fields]:
    """Yield the objects that may have a mark: messages, tools, blocks, and blocks of results."""
    if not levels:
        return
    if isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _holders(item, levels - 1)
    elif isinstance(value, dict):
        block = fields_of(cast("Any", value))
        yield block
        yield from _holders(block.get("content"), levels - 1)


def _without_marks(value: Any, most: int) -> tuple[Any, int]:
    """Return a value without its first `most` marks, and the number of marks still to remove."""
    if isinstance(value, list):
        items: list[Any] = []
        for item in cast("list[Any]", value):
            new, most = _without_marks(item, most)
            if new or not item:  # drop a block that was only a mark
                items.append(new)
        return items, most
    if not isinstance(value, dict) or most <= 0:
        return cast("Any", value), most
    block = dict(fields_of(cast("Any", value)))
    if _is_marked(block):
        block = without(block, *_MARK_KEYS)
        most -= 1
    if "content" in block:
        block["content"], most = _without_marks(block["content"], most)
    return block, most
