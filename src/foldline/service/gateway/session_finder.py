"""Finds the conversation that a request continues, by the history that it sends."""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Final, cast

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.log import resent_key
from foldline.errors import FoldlineError
from foldline.service.gateway.agent_session import AgentSession
from foldline.service.gateway.request import AgentRequest
from foldline.service.open_sessions import Opener, OpenSessions
from foldline.session.links import LINK, Link
from foldline.session.session import Session
from foldline.waiting import run_off_loop

log = logging.getLogger("foldline")

MADE: Final = re.compile(r"([0-9a-f]{16})-[0-9a-f]{8}")  # ids that begin with the first message's key
CANDIDATES: Final = 32  # conversations that are compared: the newest, besides open ones
GENERATIONS: Final = 1_000  # conversations with one name
BEHIND: Final = 8  # last entries of a session searched for its newest message
BEGINNING: Final = 8  # first messages of a history that may have the client's own summary
LINE: Final = 40  # characters of a line that counts: shorter ones occur anywhere
LEAST: Final = 200  # characters that must be the same


class SessionFinder:
    """Finds or begins the conversation of one request; it stays open until `cleanup` is closed."""

    def __init__(self, sessions: OpenSessions, opener: Opener, cleanup: AsyncExitStack) -> None:
        self._sessions = sessions
        self._opener = opener
        self._cleanup = cleanup

    async def resume(self, request: AgentRequest) -> tuple[AgentSession, AgentRequest] | None:
        """Return the conversation whose compaction item a request continues, and the request as it has it.

        None without such an item, or if its session is not stored here. An entry's id is a hash of the
        history up to it: a client that has the id knows that history.
        """
        item = request.resumed
        if item is None or await self._sessions.store.entry(item.session, item.at) is None:
            return None
        conversation = await self._open(item.session)
        if conversation is None:
            return None
        async with conversation.lock:
            return conversation, await conversation.resume(request)

    async def find(self, request: AgentRequest, name: str | None) -> AgentSession:
        """Return the conversation that a request continues: the one with the longest common history.

        At least one reply must be common; if two match equally, a new one begins. With a `name` given by the
        client, it is the conversation of that name, or, if nothing is common with it (the client has
        compacted the history), the newest one that followed it.
        """
        first = (
            await run_off_loop(len(request.raw), lambda: resent_key(request.decode(request.units[:1])[0]))
        )[:16]
        candidates = await (self._of_name(name) if name is not None else self._beginning_with(first))
        if (best := await self._best(request, candidates, named=name is not None)) is not None:
            return best
        origin = await self._find_origin(request, candidates if name is not None else None)
        child = await self._begin(first, name, candidates)
        if origin is not None:
            link = await _link_from(origin.session, child)
            self._cleanup.push_async_callback(_link_to, origin.session, child.session, link)
        return child

    async def _best(
        self, request: AgentRequest, candidates: list[str], *, named: bool
    ) -> AgentSession | None:
        """Return the candidate with the longest common history; only that one stays open.

        Those that another worker has deleted are removed from `candidates`.
        """
        best, most, tied = None, 0, False
        with ExitStack() as opened:
            for session in list(candidates):
                conversation = await self._open(session, opened)
                if conversation is None:
                    candidates.remove(session)
                    continue
                common = conversation.common(request)
                if not common:
                    continue
                answered = conversation.has_reply(common)
                if common >= most and (answered or named):
                    best, most, tied = conversation, common, common == most
                if answered and named:  # older ones begin differently
                    break
            if best is None or (tied and not named):
                return None
            self._cleanup.enter_context(self._sessions.use(best.session.id, self._opener))
            return best

    async def _beginning_with(self, first: str) -> list[str]:
        """Return the conversations whose first message has this key: open ones and the newest."""
        open_ids = [name for name in self._sessions if name.startswith(f"{first}-")][-CANDIDATES:]
        newest = await self._sessions.store.ids(f"{first}-", CANDIDATES)
        return [name for name in dict.fromkeys([*open_ids, *newest]) if MADE.fullmatch(name)]

    async def _of_name(self, name: str) -> list[str]:
        """Return the conversations of a name, newest generation first, including those not stored yet."""
        store = self._sessions.store
        ids = await store.ids(f"{name}.", GENERATIONS)
        stored = [session for session in ids if _generation_of(session, name)]
        if name not in stored and await store.info(name) is not None:
            stored.append(name)
        open_ids = [session for session in self._sessions if session == name or _generation_of(session, name)]
        return sorted({*stored, *open_ids}, key=lambda session: _generation(session, name), reverse=True)

    async def _find_origin(self, request: AgentRequest, named: Sequence[str] | None) -> AgentSession | None:
        """Return the conversation that the client has compacted and continues in a new one.

        That is the newest with the client's name; without a name, the one whose last reply is in its summary.
        """
        if named is not None:
            return await self._open(named[0]) if named else None
        beginning = await run_off_loop(len(request.raw), lambda: beginning_of(request))
        if len(beginning) < LEAST:
            return None
        for info in await self._sessions.store.sessions(limit=CANDIDATES):
            if goes_on_from(await self._newest_reply(info.id), beginning):
                return await self._open(info.id)
        return None

    async def _newest_reply(self, session: str) -> str:
        """Return the text of a session's newest message if that is a reply."""
        newest = await self._sessions.store.tail(session, BEHIND)
        message = next((entry.message for entry in reversed(newest) if isinstance(entry, Said)), None)
        return message.text if message is not None and message.role == "assistant" else ""

    async def _begin(self, first: str, name: str | None, candidates: Sequence[str]) -> AgentSession:
        session = f"{first}-{secrets.token_hex(4)}" if name is None else name
        if name is not None and candidates:
            session = f"{name}.{_generation(candidates[0], name) + 1}"
        conversation = await self._open(session)
        assert conversation is not None  # a new session cannot have been deleted
        return conversation

    async def _open(
        self, session: str, cleanup: ExitStack | AsyncExitStack | None = None
    ) -> AgentSession | None:
        """Return a conversation as stored now, open until `cleanup` is closed (default: the finder's).

        None if another worker has deleted it.
        """
        (cleanup or self._cleanup).enter_context(self._sessions.use(session, self._opener))
        conversation = self._sessions.beside(session, AgentSession)
        if conversation.is_read and conversation.lock.locked():  # the holder of the lock catches up
            return conversation
        async with conversation.lock:
            if await conversation.catch_up():
                return conversation
        self._sessions.forget(session)
        return None


async def _link_from(origin: Session, child: AgentSession) -> Link:
    """Store in a child that its client continued in it with a summary it wrote itself."""
    link = Link(origin.id, "compacted", "from", origin.leaf)
    await child.session.note(LINK, **cast("dict[str, Any]", msgspec.to_builtins(link)))
    child.link = child.session.leaf
    return link


async def _link_to(origin: Session, child: Session, link: Link) -> None:
    """Store the link in the origin too, after the request: if that failed, the child was deleted."""
    link = msgspec.structs.replace(link, session=child.id, way="to")
    try:
        if await child.store.info(child.id) is not None:
            await origin.note(LINK, **cast("dict[str, Any]", msgspec.to_builtins(link)))
    except FoldlineError as error:
        log.warning("session %s: its link to %s is not stored: %s", origin.id, child.id, error)


def _generation(session: str, name: str) -> int:
    return 1 if session == name else int(session.rpartition(".")[2])


def _generation_of(session: str, name: str) -> bool:
    head, _, tail = session.rpartition(".")
    return head == name and tail.isdecimal()


# ---- clients that compact the history themselves


def goes_on_from(reply: str, beginning: str) -> bool:
    """Return whether a text contains a reply: at least a quarter of its lines and 200 characters.

    Clients strip tags from a summary, or keep only a part of it, and add their own text around it.
    """
    lines = [line for text in reply.splitlines() if len(line := text.strip()) >= LINE]
    common = [line for line in lines if line in beginning]
    return sum(map(len, common)) >= LEAST and 4 * len(common) >= len(lines)


def beginning_of(request: AgentRequest) -> str:
    """Return the text of a request's first messages, without replies."""
    first = request.decode(request.units[:BEGINNING])
    return "\n".join(message.text for message in first if message.role != "assistant")
