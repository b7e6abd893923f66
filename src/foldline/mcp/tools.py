"""The tools of the server, and their answers.

The recall tools are the session's. The others follow the same rules: an answer is redacted, no longer than
one of recall, and starts with recall's mark, so that recall does not find its own answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from foldline.core.cut.notes import MARK, WINDOW_MARK
from foldline.core.decide.ask import Nothing
from foldline.core.measure.tokens import OFFLINE
from foldline.core.secrets.redact import redact
from foldline.errors import InputError
from foldline.mcp.sessions import Caller, Sessions
from foldline.session.definitions import Tool, arguments_of
from foldline.session.session import Session
from foldline.session.tools import RECALL_TOOLS, RESULT_TOKENS, STATS_TOOL, capped, trimmed

LISTED: Final = 20  # sessions in one list
PIECE: Final = 6_000  # characters of a hand-off in one answer
Arguments = dict[str, Any]

_SESSION: Final = {
    "session": {
        "type": "string",
        "description": "The id of another session, from list_sessions; this conversation by default.",
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
    "Describe this session: where it is stored, its title, how long it is, how often it was folded.",
    _SESSION,
)
RULES: Final = Tool(
    "user_rules",
    "List the rules that the user stated in the session, word for word: those in force, and those that "
    "were lifted or replaced.",
    _SESSION,
)
HANDOFF: Final = Tool(
    "handoff_text",
    "Write a text with which a new session can continue the work: the user's rules, what was done, which "
    "files changed. Long texts come in pieces.",
    {
        "goal": {"type": "string", "description": "What the new session is for."},
        "offset": {"type": "integer", "minimum": 0, "description": "The character at which to continue."},
        **_SESSION,
    },
)
FOLD: Final = Tool(
    "fold_session",
    "WRITES: fold the stored session now. A checkpoint replaces old messages in what the model is sent; "
    "everything stays in the log and can be recalled, and the fold can be undone.",
    {"focus": {"type": "string", "description": "What the checkpoint should focus on."}, **_SESSION},
)


class ServedTool(NamedTuple):
    """A tool, the function that answers its calls, and whether they change the session."""

    tool: Tool
    answer: Callable[[Arguments, Caller], Awaitable[str]]
    writes: bool = False


class Answers:
    """Answers the calls of the tools; keeps the last hand-off, which is read in pieces."""

    def __init__(self, sessions: Sessions, *, read_only: bool) -> None:
        self._sessions = sessions
        self._handoff = ("", "", "")  # session, goal, text
        served = [ServedTool(tool, self._session_tool(tool)) for tool in RECALLED]
        served += [
            ServedTool(LIST, self._list),
            ServedTool(INFO, self._info),
            ServedTool(RULES, self._rules),
            ServedTool(HANDOFF, self._write_handoff),
        ]
        if sessions.writes and not read_only:
            served.append(ServedTool(FOLD, self._fold, writes=True))
        self.tools = {entry.tool.name: entry for entry in served}

    async def call(self, name: str, raw: Mapping[str, Any] | None, *, session: str, call: str) -> str:
        """Return the answer to a call; `session` and `call` are ids, "" if the agent does not send them.

        Raises InputError, with what to do, for an invalid call.
        """
        served = self.tools.get(name)
        if served is None:
            raise InputError(f"no tool {name!r}: there are {', '.join(self.tools)}")
        return await served.answer(
            arguments_of(served.tool, raw), Caller(name, raw or {}, served.writes, session, call)
        )

    async def _open(self, arguments: Arguments, caller: Caller) -> tuple[Session, str]:
        return await self._sessions.open(arguments.pop("session", None) or None, caller)

    def _session_tool(self, tool: Tool) -> Callable[[Arguments, Caller], Awaitable[str]]:
        async def answer(arguments: Arguments, caller: Caller) -> str:
            session, _ = await self._open(arguments, caller)
            return await session.call_tool(tool.name, arguments, raises=True)

        return answer

    async def _list(self, arguments: Arguments, _caller: Caller) -> str:
        lines = await self._sessions.listed(capped(arguments, "limit", LISTED))
        if not lines:
            return f"{MARK}There is no session yet."
        return _lines(f"{len(lines)} sessions, the last updated first:", lines)

    async def _info(self, arguments: Arguments, caller: Caller) -> str:
        session, where = await self._open(arguments, caller)
        stats, info = await session.stats(), await session.store.info(session.id)
        title = f" {redact(info.title)!r}" if info is not None and info.title else ""
        model = f" The model is {session.setup.model}." if session.setup.model else ""
        return (
            f"{MARK}Session {session.id}{title}, {where}. {stats.total_messages:,} messages, of which "
            f"{stats.active_messages:,} are in view; compactions so far: {stats.summaries}.{model}"
        )

    async def _rules(self, arguments: Arguments, caller: Caller) -> str:
        session, _ = await self._open(arguments, caller)
        rules = await session.constraints()
        standing = [f"- {redact(fact.told)} (entry {fact.entry})" for fact in rules.standing]
        ended = [
            f"- {redact(end.fact.told)} ({end.how} by: {redact(end.by.told)}, entry {end.by.entry})"
            for end in rules.ended
        ]
        head = (
            f"Rules of the user in force: {len(standing)}" if standing else "No rule of the user is in force."
        )
        return _lines(head, [*standing, *(["No longer in force:", *ended] if ended else [])])

    async def _write_handoff(self, arguments: Arguments, caller: Caller) -> str:
        session, _ = await self._open(arguments, caller)
        goal, offset = arguments.get("goal", ""), arguments.get("offset", 0)
        if offset == 0 or self._handoff[:2] != (session.id, goal):
            self._handoff = (session.id, goal, await session.preview_handoff(goal or None))
        text = self._handoff[2]
        size = PIECE
        while OFFLINE.count(text[offset : offset + size]) > RESULT_TOKENS and size > 1:
            size = size * 3 // 4
        end = offset + size
        rest = f"\n[{len(text) - end:,} more characters: handoff_text with offset {end}]"
        return f"{MARK}{text[offset:end]}{rest if end < len(text) else ''}"

    async def _fold(self, arguments: Arguments, caller: Caller) -> str:
        session, _ = await self._open(arguments, caller)
        receipt = await session.compact(arguments.get("focus") or None, reason="agent")
        if isinstance(receipt, Nothing):
            return f"{WINDOW_MARK}Nothing was folded: {receipt.words}"
        return (
            f"{WINDOW_MARK}Folded session {session.id}: {receipt.tokens_before:,} tokens before, "
            f"{receipt.tokens_after:,} after. Folded messages can be recalled."
        )


def _lines(head: str, lines: Sequence[str]) -> str:
    """Return a head and as many lines as fit into an answer."""

    def render(shown: Sequence[str]) -> str:
        left = len(lines) - len(shown)
        return "\n".join([f"{MARK}{head}", *shown, *([f"(and {left} more lines)"] if left else [])])

    return trimmed(lines, render, OFFLINE.count, newest=False)
