"""What recall puts into a session: calls that search the past, and answers that quote it.

It was all said before, so no fact is taken from it: an old value that is looked up again is not a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Part, ToolCall, ToolResult

MARK: Final = "[Recall] "  # what every answer that quotes the past begins with
WINDOW_MARK: Final = "[Context window] "  # what every answer about the window begins with
TOOLS: Final = ("recall_search", "recall_read", "recall_list", "context_stats", "compact_context")


def is_recall(message: Message) -> bool:
    """Whether a message is recall's own: calls of its tools and nothing else, or their answers."""
    return bool(message.parts) and all(map(_is_own, message.parts))


def without_recall(entries: Sequence[Said]) -> Sequence[Said]:
    """Return the entries without recall's own parts; those of which nothing is left are left out."""
    if not any(_is_own(part) for entry in entries for part in entry.message.parts):
        return entries
    found: list[Said] = []
    for entry in entries:
        parts = tuple(part for part in entry.message.parts if not _is_own(part))
        if parts == entry.message.parts:
            found.append(entry)
        elif parts:
            message = msgspec.structs.replace(entry.message, parts=parts, native=None)
            found.append(msgspec.structs.replace(entry, message=message))
    return found


def _is_own(part: Part) -> bool:
    if isinstance(part, ToolCall):
        return part.name in TOOLS
    return isinstance(part, ToolResult) and part.text.startswith((MARK, WINDOW_MARK))
