"""The conversations of a tenant: which one a request goes on with, found by the history that it sends."""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, cast

import msgspec

from foldline.service.gateway.agent_session import AgentSession
from foldline.service.gateway.likeness import likeness
from foldline.service.gateway.own_summary import beginning_of, goes_on_from
from foldline.service.gateway.request import AgentRequest
from foldline.service.open_sessions import Opener, OpenSessions
from foldline.session.links import LINK, Link
from foldline.session.session import Session

_MADE: Final = re.compile(r"([0-9a-f]{16})-[0-9a-f]{8}")  # ids that begin with their first message's key
_NAMED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")  # what a client may name a session
CANDIDATES: Final = 32  # conversations with the same first message that are looked at, the newest first


class SessionFinder:
    """Finds the conversation of a request, or begins one."""

    def __init__(self, sessions: OpenSessions, most: int) -> None:
        self._sessions = sessions
        self._most = most
        self._known: OrderedDict[str, AgentSession] = OrderedDict()
        self._by_first: dict[str, list[str]] | None = None

    async def find(self, asked: AgentRequest, name: str | None, opener: Opener) -> AgentSession:
        """Return the conversation that a request goes on with: the one with the longest common history.

        At least one reply must be in common; where two have as much in common, a new one begins. `name` is a
        session that the client names: it is that one, or, where nothing is in common with it (the client has
        compacted by itself), the newest that follows it. `opener` opens a session by its id.
        """
        first = likeness(asked.decode(asked.units[:1])[0])[:16]
        index = await self._index()
        if name is not None:
            candidates = sorted((one for one in index.get(name, [])), key=_generation, reverse=True)
        else:
            candidates = index.get(first, [])[-CANDIDATES:]
        best, most, tied = None, 0, False
        for session in candidates:
            talk = await self._open(session, opener)
            common = talk.common(asked)
            if (name is None and not talk.has_reply(common)) or not common:
                continue
            if common >= most:
                best, most, tied = talk, common, common == most
        if best is not None and not (tied and name is None):
            return best
        origin = await self._origin(asked, candidates if name is not None else None, opener)
        talk = await self._begin(first, name, opener)
        if origin is not None:
            await _link(origin.session, talk.session)
        return talk

    async def _origin(
        self, asked: AgentRequest, named: Sequence[str] | None, opener: Opener
    ) -> AgentSession | None:
        """Return the conversation that a client has compacted by itself, and goes on with in a new one.

        That is the newest of those that it names; without a name, the one whose newest reply it carries on.
        """
        if named is not None:
            return await self._open(named[0], opener) if named else None
        beginning = beginning_of(asked)
        recent = islice(reversed(self._known.values()), CANDIDATES)
        return next((talk for talk in recent if goes_on_from(talk.newest_reply, beginning)), None)

    async def _begin(self, first: str, name: str | None, opener: Opener) -> AgentSession:
        index = await self._index()
        if name is None:
            session = f"{first}-{secrets.token_hex(4)}"
        else:
            taken = len(index.get(name, []))
            session = f"{name}.{taken + 1}" if taken else name
        index.setdefault(name or first, []).append(session)
        return await self._open(session, opener)

    async def _open(self, session: str, opener: Opener) -> AgentSession:
        talk = self._known.get(session)
        if talk is None:
            talk = AgentSession(self._sessions.take(session, opener))
            await talk.load()
            if session in self._known:  # another request has opened it meanwhile
                talk.close()
                self._sessions.release(session)
            talk = self._known.setdefault(session, talk)
        self._known.move_to_end(session)
        self._let_go()
        return talk

    def _let_go(self) -> None:
        """Forget conversations that were not used for long; they are read from the store again."""
        idle = [name for name, one in self._known.items() if not one.users]
        for name in idle[: max(0, len(self._known) - self._most)]:
            self._known.pop(name).close()
            self._sessions.release(name)

    async def _index(self) -> dict[str, list[str]]:
        """Return the sessions by what their ids begin with, the oldest first."""
        if self._by_first is None:
            index: dict[str, list[str]] = {}
            for info in reversed(await self._sessions.store.sessions()):
                made = _MADE.fullmatch(info.id)
                for key in {made[1]} if made else {info.id, _without_generation(info.id)}:
                    index.setdefault(key, []).append(info.id)
            self._by_first = index
        return self._by_first


async def _link(origin: Session, child: Session) -> None:
    """Note in both sessions that the client went on in the second with a summary of its own."""
    link = Link(origin.id, "compacted", "from", origin.leaf)
    to = msgspec.structs.replace(link, session=child.id, way="to")
    await child.note(LINK, **cast("dict[str, Any]", msgspec.to_builtins(link)))
    await origin.note(LINK, **cast("dict[str, Any]", msgspec.to_builtins(to)))


def valid_name(name: str) -> bool:
    """Return whether a client may name a session so."""
    return bool(_NAMED.fullmatch(name)) and not _MADE.fullmatch(name)


def _generation(session: str) -> int:
    tail = session.rpartition(".")[2]
    return int(tail) if tail.isdecimal() else 1


def _without_generation(session: str) -> str:
    head, _, tail = session.rpartition(".")
    return head if head and tail.isdecimal() else session
