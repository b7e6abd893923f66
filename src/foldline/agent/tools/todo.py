"""todo: a list of tasks that every checkpoint keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from foldline.agent.tools.toolbox import AgentTool, Arguments
from foldline.errors import InputError
from foldline.session.definitions import Tool
from foldline.session.hooks import NOTE
from foldline.session.session import Session

NAME: Final = "todos"  # of the live state
MARKS: Final = {"pending": " ", "in_progress": "~", "done": "x"}


def _task(value: Any) -> tuple[str, str]:
    """Return a task and its status; a plain string is a pending task. Raises InputError for anything else."""
    item = cast("dict[str, Any]", value) if isinstance(value, dict) else {"task": value}
    task, status = item.get("task"), item.get("status", "pending")
    if not isinstance(task, str) or not task.strip() or status not in MARKS:
        raise InputError(f"each item needs a task and a status, one of {', '.join(MARKS)}")
    return " ".join(task.split()), status


def make(session: Callable[[], Session]) -> AgentTool:
    """Return the tool; the list is stored in the log."""

    async def run(arguments: Arguments) -> str:
        tasks = map(_task, arguments["items"])
        text = "\n".join(f"- [{MARKS[status]}] {task}" for task, status in tasks)
        await session().note(NOTE, **{NAME: text})
        return text or "The list is empty."

    item = {
        "type": "object",
        "properties": {
            "task": {"type": "string", "description": "What to do."},
            "status": {"type": "string", "enum": list(MARKS)},
        },
        "required": ["task", "status"],
    }
    about = Tool(
        "todo",
        "Replace the list of tasks: all of them, in order, with status. For work of several steps.",
        {"items": {"type": "array", "items": item, "description": "All tasks, including done ones."}},
        ("items",),
    )
    return AgentTool(about, run)
