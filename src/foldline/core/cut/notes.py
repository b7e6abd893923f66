"""What stands in a session and is no content: the notes that a fold leaves, and what recall puts in.

No fact is taken from either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Part, ToolCall, ToolResult

CLEARED = "[Old tool result cleared "
TAKEN_OUT = "[taken out of the context by the user; entry "
HELD = "; it held: "
IMAGE_LEFT_OUT = "[Old image left out "
UNANSWERED = "[No result was recorded for this call: it was interrupted.]"
LATE = "[Late result of tool call {}, quoted as data]"
LATE_REPLY = "[Late reply to an earlier message, quoted as data; it called no tools]"
SYSTEM = "[System message]"
STORED = "[Result of tool call {}, which its provider keeps]"


def is_cleared(text: str) -> bool:
    """Whether a text is what stands in the place of a result that was blanked or taken out."""
    return text.startswith((CLEARED, TAKEN_OUT)) and text.endswith("]") and "\n" not in text


def error_in(text: str) -> str:
    """Return the telling line that the note of a blanked error carries, "" where it has none."""
    told = text.removesuffix("]").partition(HELD)[0] if text.startswith(CLEARED) else ""
    return told.rpartition("; ")[2] if "; " in told else ""


def with_held(note: str, held: str) -> str:
    """Return the note of a blanked result with a line of what the result held."""
    return f"{note.removesuffix(']')}{HELD}{held}]"


# ---- recall's own: it was all said before, so an old value that is looked up again is not a new one


MARK: Final = "[Recall] "  # what every answer that quotes the past begins with
WINDOW_MARK: Final = "[Context window] "  # what every answer about the window begins with
TOOLS: Final = ("recall_search", "recall_read", "recall_list", "context_stats", "compact_context")
OF_SERVER: Final = ("mcp__foldline__", "foldline__", "foldline_")  # as agents name tools of `foldline mcp`


def is_recall(message: Message) -> bool:
    """Whether a message is recall's own: calls of its tools and nothing else, or their answers."""
    return bool(message.parts) and all(_is_own(part, {}) for part in message.parts)


def without_recall(entries: Sequence[Said]) -> Sequence[Said]:
    """Return the entries without recall's own parts; those of which nothing is left are left out.

    An answer is recall's where its call is; how it begins tells only where its call is not here.
    """
    calls: dict[str, bool] = {}
    found: list[Said] = []
    same = True
    for entry in entries:
        parts = tuple(part for part in entry.message.parts if not _is_own(part, calls))
        if len(parts) == len(entry.message.parts):
            found.append(entry)
            continue
        same = False
        if parts:
            message = msgspec.structs.replace(entry.message, parts=parts, native=None)
            found.append(msgspec.structs.replace(entry, message=message))
    return entries if same else found


def _is_own(part: Part, calls: dict[str, bool]) -> bool:
    """Whether a part is recall's own; `calls` are those that were met, by id, and whether they are."""
    if isinstance(part, ToolCall):
        calls[part.id] = part.name in TOOLS or part.name.startswith(OF_SERVER)
        return calls[part.id]
    if not isinstance(part, ToolResult):
        return False
    known = calls.get(part.call_id)
    return part.text.startswith((MARK, WINDOW_MARK)) if known is None else known
