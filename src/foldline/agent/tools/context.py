"""Tools by which the model looks after its context: recall, compaction, hand-off, rewind, sub-agents.

Recall, figures and compaction are the session's own; hand-off and rewind change what comes next, so they are
done when the batch that asked for them is answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from foldline.agent.tools.toolbox import AgentTool, Arguments, text
from foldline.core.log.messages import Message, Text
from foldline.errors import InputError
from foldline.session.session import Session
from foldline.session.tools import COMPACT, COMPACT_TOOL, RECALL_TOOLS, STATS_TOOL, Tool

After = Callable[[], Awaitable[None]]


class ContextTools:
    """The context tools of one session, and what they left to be done."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._current = session
        self._after: list[After] = []

    @property
    def _session(self) -> Session:
        return self._current()

    def all(self) -> list[AgentTool]:
        """Return the tools."""
        own = [self._own(tool) for tool in (*RECALL_TOOLS, STATS_TOOL, COMPACT_TOOL)]
        return [*own, self._handoff(), self._rewind()]

    async def settle(self) -> None:
        """Do what was left to be done, now that every call has its result."""
        after, self._after = self._after, []
        for work in after:
            await work()

    def _own(self, tool: Tool) -> AgentTool:
        async def run(given: Arguments) -> str:
            return await self._session.call_tool(tool.name, given)

        return AgentTool(tool, run, reads=tool.name != COMPACT)

    def _handoff(self) -> AgentTool:
        async def run(given: Arguments) -> str:
            draft = await self._session.preview_handoff(given["goal"])
            new = await self._session.handoff(given["goal"], text=draft)
            return f"Session {new.id} is ready, with what it needs to know. Tell the user: /resume {new.id}"

        about = Tool(
            "handoff",
            "Prepare a new session for the next task with what of this one serves it. The user goes there.",
            {"goal": text("What the new session is for.")},
            ("goal",),
        )
        return AgentTool(about, run)

    def _rewind(self) -> AgentTool:
        async def run(given: Arguments) -> str:
            place = given.get("entry") or await self._newest_prompt()
            session = self._session
            if await session.store.entry(session.id, place) is None:
                raise InputError(f"there is no entry {place!r}: take the id that recall_search gives")

            async def back() -> None:
                await session.branch(place)
                told = "You went back to here from an attempt that is left. What you noted of it:"
                note = f"{told} {given['note']}"
                await session.append(Message("user", (Text(note),), injected=True))

            self._after.append(back)
            return "Going back. Files stay as they are."

        about = Tool(
            "rewind",
            "Leave the attempt that you are in and go back to the user's newest message, with a note of what "
            "you learnt. Use it where the way led nowhere. Files stay as they are.",
            {
                "note": text("What you learnt and will do instead."),
                "entry": text("Go back to this entry instead, by its id; every call before it is answered."),
            },
            ("note",),
        )
        return AgentTool(about, run)

    async def _newest_prompt(self) -> str:
        infos = await self._session.entries()
        return next(one.entry for one in reversed(infos) if one.role == "user")


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
    return AgentTool(about, run, reads=True, uses=lambda given: given["goal"])
