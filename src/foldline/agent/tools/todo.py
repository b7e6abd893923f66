"""todo: the list of what is to be done, which every checkpoint carries on."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from foldline.agent.tools.toolbox import AgentTool, Arguments
from foldline.errors import InputError
from foldline.session.tools import Tool

NAME: Final = "todos"  # of the live state
MARKS: Final = {"pending": " ", "in_progress": "~", "done": "x"}
_LINE = re.compile(r"- \[([ ~x])\] (.+)")


class Todos:
    """A list of tasks and how far each is."""

    def __init__(self) -> None:
        self.items: list[tuple[str, str]] = []  # what, and its status

    def render(self) -> str:
        """Return the list as text, one line a task."""
        return "\n".join(f"- [{MARKS[status]}] {what}" for what, status in self.items)

    def restore(self, text: str) -> None:
        """Take the list from its text."""
        statuses = {mark: status for status, mark in MARKS.items()}
        found = (_LINE.fullmatch(line) for line in text.splitlines())
        self.items = [(one.group(2), statuses[one.group(1)]) for one in found if one]


def _item(given: Any) -> tuple[str, str]:
    """Return a task and its status; raises InputError for what is none. A text alone is a pending task."""
    item = cast("dict[str, Any]", given) if isinstance(given, dict) else {"task": given}
    what, status = item.get("task"), item.get("status", "pending")
    if not isinstance(what, str) or not what.strip() or status not in MARKS:
        raise InputError(f"each item has a task and a status, one of {', '.join(MARKS)}")
    return " ".join(what.split()), status


def make(todos: Todos) -> AgentTool:
    """Return the tool."""

    async def run(given: Arguments) -> str:
        items = [_item(given_item) for given_item in given["items"]]
        todos.items = items
        return todos.render() or "The list is empty."

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
