"""Tools by which the model looks after its context: recall, figures and compaction, and sub-agents."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from foldline.agent.tools.toolbox import AgentTool, Arguments, text
from foldline.session.session import Session
from foldline.session.tools import COMPACT, COMPACT_TOOL, RECALL_TOOLS, STATS_TOOL, Tool


def context(session: Callable[[], Session]) -> list[AgentTool]:
    """Return the session's own tools; `session` gives the present one."""

    def made(tool: Tool) -> AgentTool:
        async def run(given: Arguments) -> str:
            return await session().call_tool(tool.name, given)

        return AgentTool(tool, run, reads=tool.name != COMPACT)

    return [made(tool) for tool in (*RECALL_TOOLS, STATS_TOOL, COMPACT_TOOL)]


def task(work: Callable[[str], Awaitable[str]]) -> AgentTool:
    """Return the tool that has a sub-agent work on a goal; `work` returns its report."""

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
