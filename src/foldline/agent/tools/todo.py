"""todo: the list of what is to be done, which every checkpoint carries on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from foldline.agent.tools.toolbox import AgentTool, Arguments
from foldline.errors import InputError
from foldline.session.session import Session
from foldline.session.state import NOTE
from foldline.session.tools import Tool

NAME: Final = "todos"  # of the live state
MARKS: Final = {"pending": " ", "in_progress": "~", "done": "x"}


def _item(given: Any) -> tuple[str, str]:
    """Return a task and its status; raises InputError for what is none. A text alone is a pending task."""
    item = cast("dict[str, Any]", given) if isinstance(given, dict) else {"task": given}
    what, status = item.get("task"), item.get("status", "pending")
    if not isinstance(what, str) or not what.strip() or status not in MARKS:
        raise InputError(f"each item has a task and a status, one of {', '.join(MARKS)}")
    return " ".join(what.split()), status


def make(session: Callable[[], Session]) -> AgentTool:
    """Return the tool; the list is kept in the log."""

    async def run(given: Arguments) -> str:
        items = [_item(given_item) for given_item in given["items"]]
        text = "\n".join(f"- [{MARKS[status]}] {what}" for what, status in items)
        await session().note(NOTE, **{NAME: text})
        return text or "The list is empty."

    item = {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "What is to be done."},
            "status": {"type": "string", "enum": list(MARKS)},
        },
        "required": ["task", "status"],
    }
    about = Tool(
        "todo",
        "Write the list of tasks anew: all of them, in order, with status. For work of several steps.",
        {"items": {"type": "array", "items": item, "description": "All tasks, done ones included."}},
        ("items",),
    )
    return AgentTool(about, run)
