"""task: a sub-agent with a session of its own, which reports back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from foldline.agent.tools.tool import AgentTool, Arguments, text
from foldline.session.tools import Tool

Work = Callable[[str], Awaitable[str]]  # a goal -> the report


def make(work: Work) -> AgentTool:
    """Return the tool; `work` runs the sub-agent to its end."""

    async def run(given: Arguments) -> str:
        return await work(given["goal"])

    about = Tool(
        "task",
        "Have a sub-agent do a piece of work of its own, such as a search of many files, and get its "
        "report. It sees none of this conversation: say all that it needs to know.",
        {"goal": text("What it shall do, and what its report shall hold.")},
        ("goal",),
    )
    return AgentTool(about, run, reads=True)
