"""Marks for a provider's cache: a request takes four, so the newest of a view stay.

Anthropic's is a field of what it ends with, that of Bedrock's Converse API a block by itself.

Agents mark the end of each request and store their messages with the marks; they belong to the request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from foldline.core.log.codec import encode
from foldline.dialects.payload import to_plain

MARKS_OF = ("cache_control", "cachePoint")
LEVELS = 6  # a list, a message, its blocks, a block, the blocks of a result, one of them
MARKS = 4  # in one request, system prompt and tools included (API reference)

Block = dict[str, Any]


def marks(*values: Any) -> int:
    """Count the cache marks of messages, of a system prompt or of tools."""
    return sum(1 for value in values for holder in _holders(value) if _is_marked(holder))


def _is_marked(block: Block) -> bool:
    return any(block.get(mark) for mark in MARKS_OF)


def written_marks(messages: Sequence[Any]) -> int:
    """Return how many cache marks messages hold at most: as many as their JSON has such fields."""
    try:
        raw = encode(messages)
    except TypeError:  # objects of an SDK, given back as they came
        raw = encode(to_plain(messages))
    return sum(raw.count(f'"{mark}":'.encode()) for mark in MARKS_OF)


def within_marks(messages: Sequence[Any], *beside: Any) -> list[Any]:
    """Return messages with their newest marks, as many as `beside` (system prompt, tools) leaves of four.

    What is given stays as it is; a message that loses none is the same object.
    """
    left = MARKS - marks(*beside)
    if written_marks(messages) <= left:
        return list(messages)
    found: list[Any] = []
    for message in reversed(messages):
        own = marks(message)
        found.append(message if own <= left else _stripped(message, own - max(left, 0))[0])
        left -= own
    return found[::-1]


def _holders(value: Any, levels: int = LEVELS) -> Iterator[Block]:
    """Yield the objects that may have a mark: messages, tools, blocks, and the blocks of results."""
    if not levels:
        return
    if isinstance(value, list | tuple):
        for item in cast("Sequence[Any]", value):
            yield from _holders(item, levels - 1)
    elif isinstance(value, dict):
        block = cast("Block", value)
        yield block
        yield from _holders(block.get("content"), levels - 1)


def _stripped(value: Any, most: int) -> tuple[Any, int]:
    """Return a value without its first `most` marks, and how many are left to take out."""
    if isinstance(value, list):
        items: list[Any] = []
        for item in cast("list[Any]", value):
            new, most = _stripped(item, most)
            if new or not item:  # a block that was a mark and nothing else goes with it
                items.append(new)
        return items, most
    if not isinstance(value, dict) or most <= 0:
        return cast("Any", value), most
    block = dict(cast("Block", value))
    if _is_marked(block):
        block = {key: held for key, held in block.items() if key not in MARKS_OF}
        most -= 1
    if "content" in block:
        block["content"], most = _stripped(block["content"], most)
    return block, most
