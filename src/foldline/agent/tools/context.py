"""Tools with which the model manages its context: recall, compaction, hand-off, rewind, sub-agents.

Recall, statistics and compaction are the session's own. A rewind happens only when all calls of the reply
have their results.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from foldline.agent.tools.toolbox import AgentTool, Arguments, Deferred, text
from foldline.core.log.messages import Message, Text
from foldline.errors import InputError
from foldline.session.definitions import Tool
from foldline.session.session import Session
from foldline.session.tools import COMPACT, COMPACT_TOOL, RECALL_TOOLS, STATS_TOOL


class ContextTools:
    """The context tools of one session; `deferred` is work for when all calls of the reply have results."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._current = session
        self.deferred: list[Deferred] = []

    @property
    def _session(self) -> Session:
        return self._current()

    def all(self) -> list[AgentTool]:
        """Return the tools."""
        own = [self._session_tool(tool) for tool in (*RECALL_TOOLS, STATS_TOOL, COMPACT_TOOL)]
        return [*own, self._handoff(), self._rewind()]

    def _session_tool(self, tool: Tool) -> AgentTool:
        async def run(arguments: Arguments) -> str:
            return await self._session.call_tool(tool.name, arguments)

        return AgentTool(tool, run, reads=tool.name != COMPACT)

    def _handoff(self) -> AgentTool:
        async def run(arguments: Arguments) -> str:
            draft = await self._session.preview_handoff(arguments["goal"])
            new = await self._session.handoff(arguments["goal"], text=draft)
            return f"Session {new.id} is ready. Tell the user: /resume {new.id}"

        about = Tool(
            "handoff",
            "Prepare a new session for the next task with what it needs from this one. The user resumes it.",
            {"goal": text("What the new session is for.")},
            ("goal",),
        )
        return AgentTool(about, run)

    def _rewind(self) -> AgentTool:
        async def run(arguments: Arguments) -> str:
            session = self._session
            if not (entry := arguments.get("entry")):
                infos = await session.entries()
                entry = next(info.entry for info in reversed(infos) if info.role == "user")
            if await session.store.entry(session.id, entry) is None:
                raise InputError(f"there is no entry {entry!r}: use an id that recall_search returns")

            async def rewind() -> None:
                await session.branch(entry)
                note = (
                    f"You came back here from an abandoned attempt. Your note about it: {arguments['note']}"
                )
                await session.append(Message("user", (Text(note),), injected=True))

            self.deferred.append(rewind)
            return "Going back. Files are not changed."

        about = Tool(
            "rewind",
            "Abandon the current attempt and go back to the user's newest message, with a note of what you "
            "learnt. Use it at a dead end. Files are not changed.",
            {
                "note": text("What you learnt and will do instead."),
                "entry": text("Go back to the entry with this id instead."),
            },
            ("note",),
        )
        return AgentTool(about, run)


def task(work: Callable[[str], Awaitable[str]]) -> AgentTool:
    """Return the tool that runs a sub-agent on a goal; `work` returns its report."""

    async def run(arguments: Arguments) -> str:
        return await work(arguments["goal"])

    about = Tool(
        "task",
        "Let a sub-agent do a separate piece of work, such as a search of many files, and get its report. It "
        "sees nothing of this conversation: tell it all that it needs to know.",
        {"goal": text("What it should do, and what its report should contain.")},
        ("goal",),
    )
    return AgentTool(about, run, reads=True, uses=lambda arguments: arguments["goal"])
