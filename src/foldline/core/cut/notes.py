"""Text in a session that is not content: the notes that a fold leaves, and the messages of recall.

No facts are taken from either.
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
    """Whether a text is the note of a result that was blanked or taken out."""
    return text.startswith((CLEARED, TAKEN_OUT)) and text.endswith("]") and "\n" not in text


def error_in(text: str) -> str:
    """Return the error line in the note of a blanked result, or ""."""
    note = text.removesuffix("]").partition(HELD)[0] if text.startswith(CLEARED) else ""
    return note.rpartition("; ")[2] if "; " in note else ""


def with_held(note: str, held: str) -> str:
    """Return the note of a blanked result with a line on what the result held."""
    return f"{note.removesuffix(']')}{HELD}{held}]"


# ---- messages of recall: they repeat the past, so a value in them is not a new one


MARK: Final = "[Recall] "  # begins every answer that quotes the past
WINDOW_MARK: Final = "[Context window] "  # begins every answer about the window
TOOLS: Final = ("recall_search", "recall_read", "recall_list", "context_stats", "compact_context")
# prefixes that agents give to the tools of `foldline mcp`
OF_SERVER: Final = ("mcp__foldline__", "foldline__", "foldline_")


def is_recall(message: Message) -> bool:
    """Whether a message holds only calls of recall's tools, or only their results."""
    return bool(message.parts) and all(_is_own(part, {}) for part in message.parts)


def without_recall(entries: Sequence[Said]) -> Sequence[Said]:
    """Return the entries without recall's own parts, and without entries that are then empty.

    A result belongs to recall if its call does. If the call is not here, the beginning of the result decides.
    """
    calls: dict[str, bool] = {}
    result: list[Said] = []
    unchanged = True
    for entry in entries:
        parts = tuple(part for part in entry.message.parts if not _is_own(part, calls))
        if len(parts) == len(entry.message.parts):
            result.append(entry)
            continue
        unchanged = False
        if parts:
            message = msgspec.structs.replace(entry.message, parts=parts, native=None)
            result.append(msgspec.structs.replace(entry, message=message))
    return entries if unchanged else result


def _is_own(part: Part, calls: dict[str, bool]) -> bool:
    """Whether a part belongs to recall; `calls` maps the ids of the calls so far to the same answer."""
    if isinstance(part, ToolCall):
        calls[part.id] = part.name in TOOLS or part.name.startswith(OF_SERVER)
        return calls[part.id]
    if not isinstance(part, ToolResult):
        return False
    own = calls.get(part.call_id)
    return part.text.startswith((MARK, WINDOW_MARK)) if own is None else own
