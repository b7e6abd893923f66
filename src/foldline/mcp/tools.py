"""The tools of the server, and what they answer.

Those of recall are a session's own, with its limits. The others keep to them: an answer is redacted, begins
with recall's mark, so that recall does not find itself, and is no longer than one of recall's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from foldline.core.cut.notes import MARK, WINDOW_MARK
from foldline.core.decide.ask import Nothing
from foldline.core.measure.tokens import OFFLINE
from foldline.core.secrets.redact import redact
from foldline.errors import InputError
from foldline.mcp.sessions import Caller, Sessions
from foldline.session.session import Session
from foldline.session.tools import (
    RECALL_TOOLS,
    RESULT_TOKENS,
    STATS_TOOL,
    Tool,
    arguments_of,
    capped,
    trimmed,
)

LISTED: Final = 20  # sessions that one list tells of
PIECE: Final = 6_000  # characters of a hand-off that one answer holds
Arguments = dict[str, Any]

_SESSION: Final = {
    "session": {
        "type": "string",
        "description": "The id of another session, as list_sessions tells it; this conversation by default.",
    }
}
RECALLED: Final = tuple(
    Tool(tool.name, tool.description, {**tool.parameters, **_SESSION}, tool.required)
    for tool in (*RECALL_TOOLS, STATS_TOOL)
)
LIST: Final = Tool(
    "list_sessions",
    "List the sessions that can be searched and read: their ids, the newest first.",
    {"limit": {"type": "integer", "minimum": 1, "maximum": LISTED}},
)
INFO: Final = Tool(
    "session_info",
    "Say which session this is: where it is kept, its title, how long it is, how often it was folded.",
    _SESSION,
)
RULES: Final = Tool(
    "user_rules",
    "List the rules that the user stated in the session, word for word: those that stand, and those that "
    "were lifted or replaced.",
    _SESSION,
)
HANDOFF: Final = Tool(
    "handoff_text",
    "Write a text from which a new session can go on with the work: the user's rules, what was done, which "
    "files changed. Long ones come in pieces.",
    {
        "goal": {"type": "string", "description": "What the new session is for."},
        "offset": {"type": "integer", "minimum": 0, "description": "The character at which to read on."},
        **_SESSION,
    },
)
FOLD: Final = Tool(
    "fold_session",
    "WRITES: fold the stored session now. A checkpoint replaces what is old in what the model is sent; "
    "everything stays in the log and can be recalled, and the fold can be undone.",
    {"focus": {"type": "string", "description": "What the checkpoint should look at first."}, **_SESSION},
)


class ServedTool(NamedTuple):
    """A tool, what answers its calls, and whether they change what is stored."""

    about: Tool
    answer: Callable[[Arguments, Caller], Awaitable[str]]
    writes: bool = False


class Answers:
    """Answers the calls of the tools; it holds the hand-off that was written last, to be read in pieces."""

    def __init__(self, sessions: Sessions, *, read_only: bool) -> None:
        self._sessions = sessions
        self._handoff: tuple[Session | None, str, str] = (None, "", "")  # of a session, for a goal
        served = [ServedTool(tool, self._own(tool)) for tool in RECALLED]
        served += [
            ServedTool(LIST, self._listed),
            ServedTool(INFO, self._info),
            ServedTool(RULES, self._rules),
            ServedTool(HANDOFF, self._handed),
        ]
        if sessions.writes and not read_only:
            served.append(ServedTool(FOLD, self._fold, writes=True))
        self.tools = {one.about.name: one for one in served}

    async def call(self, name: str, given: Mapping[str, Any] | None, *, session: str, call: str) -> str:
        """Return the answer to a call, whose agent may tell its session's id and the call's.

        Raises InputError, with what to do, for a wrong one.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise InputError(f"no tool {name!r}: there are {', '.join(self.tools)}")
        return await tool.answer(
            arguments_of(tool.about, given), Caller(name, given or {}, tool.writes, session, call)
        )

    async def _open(self, given: Arguments, caller: Caller) -> tuple[Session, str]:
        return await self._sessions.open(given.pop("session", None) or None, caller)

    def _own(self, tool: Tool) -> Callable[[Arguments, Caller], Awaitable[str]]:
        async def answer(given: Arguments, caller: Caller) -> str:
            session, _ = await self._open(given, caller)
            return await session.call_tool(tool.name, given, raises=True)

        return answer

    async def _listed(self, given: Arguments, _caller: Caller) -> str:
        found = await self._sessions.listed(capped(given, "limit", LISTED))
        lines = [f"- {one.id} {_when(one.updated)}, {one.about}" for one in found]
        if not lines:
            return f"{MARK}There is no session yet."
        return _lines(f"{len(found)} sessions, the last updated first:", lines)

    async def _info(self, given: Arguments, caller: Caller) -> str:
        session, where = await self._open(given, caller)
        stats, info = await session.stats(), await session.store.info(session.id)
        title = f" {redact(info.title)!r}" if info is not None and info.title else ""
        model = f" The model is {session.setup.model}." if session.setup.model else ""
        return (
            f"{MARK}Session {session.id}{title}, {where}. {stats.total_messages:,} messages, of which "
            f"{stats.active_messages:,} are in view; compactions so far: {stats.summaries}.{model}"
        )

    async def _rules(self, given: Arguments, caller: Caller) -> str:
        session, _ = await self._open(given, caller)
        rules = await session.constraints()
        standing = [f"- {redact(fact.told)} (entry {fact.entry})" for fact in rules.standing]
        ended = [
            f"- {redact(end.fact.told)} ({end.how} by: {redact(end.by.told)}, entry {end.by.entry})"
            for end in rules.ended
        ]
        head = "Rules of the user that stand" if standing else "The user stated no rule that stands"
        more = ["No longer in force:", *ended] if ended else []
        return _lines(f"{head}: {len(standing)}" if standing else f"{head}.", [*standing, *more])

    async def _handed(self, given: Arguments, caller: Caller) -> str:
        session, _ = await self._open(given, caller)
        goal, offset = given.get("goal", ""), given.get("offset", 0)
        if offset == 0 or self._handoff[:2] != (session, goal):
            self._handoff = (session, goal, await session.preview_handoff(goal or None))
        text = self._handoff[2]
        size = PIECE
        while OFFLINE.count(text[offset : offset + size]) > RESULT_TOKENS and size > 1:
            size = size * 3 // 4
        end = offset + size
        rest = f"\n[{len(text) - end:,} more characters: handoff_text with offset {end}]"
        return f"{MARK}{text[offset:end]}{rest if end < len(text) else ''}"

    async def _fold(self, given: Arguments, caller: Caller) -> str:
        session, _ = await self._open(given, caller)
        receipt = await session.compact(given.get("focus") or None, reason="agent")
        if isinstance(receipt, Nothing):
            return f"{WINDOW_MARK}Nothing was folded: {receipt.words}"
        return (
            f"{WINDOW_MARK}Folded session {session.id}: {receipt.tokens_before:,} tokens before, "
            f"{receipt.tokens_after:,} after. What is folded can be recalled."
        )


def _lines(head: str, lines: Sequence[str]) -> str:
    """Return lines under a head, as many as fit into an answer."""

    def tell(some: Sequence[str]) -> str:
        left = len(lines) - len(some)
        return "\n".join([f"{MARK}{head}", *some, *([f"(and {left} more lines)"] if left else [])])

    return trimmed(lines, tell, OFFLINE.count, newest=False)


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
