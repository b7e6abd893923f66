"""The notes that a fold leaves where content was. They are no content: no fact is taken from one."""

from __future__ import annotations

CLEARED = "[Old tool result cleared "
HELD = "; it held: "
UNANSWERED = "[No result was recorded for this call: it was interrupted.]"


def is_cleared(text: str) -> bool:
    """Whether a text is what stands in a blanked result's place."""
    return text.startswith(CLEARED) and text.endswith("]") and "\n" not in text


def error_in(text: str) -> str:
    """Return the telling line that the note of a blanked error carries, "" where it has none."""
    told = text.removesuffix("]").partition(HELD)[0]
    return told.rpartition("; ")[2] if "; " in told else ""


def with_held(note: str, held: str) -> str:
    """Return the note of a blanked result with a line of what the result held."""
    return f"{note.removesuffix(']')}{HELD}{held}]"
