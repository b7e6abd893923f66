"""The conversations of a tenant: which one a request goes on with, found by the history that it sends."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Final, cast

import msgspec

from foldline.core.log.entries import Said
from foldline.core.log.log import resent_key
from foldline.service.gateway.agent_session import AgentSession
from foldline.service.gateway.request import AgentRequest
from foldline.service.open_sessions import Opener, OpenSessions
from foldline.session.links import LINK, Link
from foldline.session.session import Session
from foldline.waiting import aside

_MADE: Final = re.compile(r"([0-9a-f]{16})-[0-9a-f]{8}")  # ids that begin with their first message's key
_NAMED: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")  # what a client may name a session
CANDIDATES: Final = 32  # conversations that are looked at, those begun last, beside those in use
GENERATIONS: Final = 1_000  # conversations of one name
BEHIND: Final = 8  # entries among which the newest message of a session stands
BEGINNING: Final = 8  # messages of a new history in which its client's own summary may stand
LINE: Final = 40  # characters that a line of it must have: shorter ones may stand anywhere
LEAST: Final = 200  # characters that must be in common


class SessionFinder:
    """Finds the conversation of one request, or begins one, by `opener`, which opens a session by its id.

    What is found stays open until `ends` is closed.
    """

    def __init__(self, sessions: OpenSessions, opener: Opener, ends: AsyncExitStack) -> None:
        self._sessions = sessions
        self._opener = opener
        self._ends = ends

    async def resume(self, asked: AgentRequest) -> tuple[AgentSession, AgentRequest] | None:
        """Return the conversation whose compaction item a request goes on from, and the request as it has it.

        None where there is no such item, or it is of a session that is not stored here. An entry's id is a
        hash of all that was said up to it: who names it knows that.
        """
        item = asked.resumed
        if item is None or await self._sessions.store.entry(item.session, item.at) is None:
            return None
        talk = await self._open(item.session)
        if talk is None:
            return None
        async with talk.lock:
            return talk, await talk.resume(asked)

    async def find(self, asked: AgentRequest, name: str | None) -> AgentSession:
        """Return the conversation that a request goes on with: the one with the longest common history.

        At least one reply must be in common; where two have as much in common, a new one begins. `name` is a
        session that the client names: it is that one, or, where nothing is in common with it (the client has
        compacted by itself), the newest that follows it.
        """
        first = (await aside(len(asked.raw), lambda: resent_key(asked.decode(asked.units[:1])[0])))[:16]
        candidates = await (self._named(name) if name is not None else self._made(first))
        if (found := await self._best(asked, candidates, named=name is not None)) is not None:
            return found
        origin = await self._origin(asked, candidates if name is not None else None)
        begun = await self._begin(first, name, candidates)
        if origin is not None:
            await _link(origin.session, begun.session)
        return begun

    async def _best(
        self, asked: AgentRequest, candidates: Sequence[str], *, named: bool
    ) -> AgentSession | None:
        """Return the candidate with the longest common history; only that one is held beyond this."""
        best, most, tied = None, 0, False
        with ExitStack() as looked:
            for session in candidates:
                talk = await self._open(session, looked)
                common = talk.common(asked) if talk is not None else 0
                if talk is None or not common:
                    continue
                answered = talk.has_reply(common)
                if common >= most and (answered or named):
                    best, most, tied = talk, common, common == most
                if answered and named:  # the older ones begin otherwise
                    break
            if best is None or (tied and not named):
                return None
            self._ends.enter_context(self._sessions.use(best.session.id, self._opener))
            return best

    async def _made(self, first: str) -> list[str]:
        """Return the conversations that begin with a message, by its key: those in use, and the newest."""
        used = [one for one in self._sessions if one.startswith(f"{first}-")][-CANDIDATES:]
        newest = await self._sessions.store.ids(f"{first}-", CANDIDATES)
        return [one for one in dict.fromkeys([*used, *newest]) if _MADE.fullmatch(one)]

    async def _named(self, name: str) -> list[str]:
        """Return the conversations of a name, the newest generation first; also those not stored yet."""
        store = self._sessions.store
        stored = [one for one in (await store.ids(f"{name}.", GENERATIONS)) if _generation_of(one, name)]
        if name not in stored and await store.info(name) is not None:
            stored.append(name)
        known = [one for one in self._sessions if one == name or _generation_of(one, name)]
        return sorted({*stored, *known}, key=lambda one: _generation(one, name), reverse=True)

    async def _origin(self, asked: AgentRequest, named: Sequence[str] | None) -> AgentSession | None:
        """Return the conversation that a client has compacted by itself, and goes on with in a new one.

        That is the newest of those that it names; without a name, the one whose newest reply it carries on.
        """
        if named is not None:
            return await self._open(named[0]) if named else None
        beginning = await aside(len(asked.raw), lambda: beginning_of(asked))
        if len(beginning) < LEAST:
            return None
        for info in await self._sessions.store.sessions(limit=CANDIDATES):
            if goes_on_from(await self._newest_reply(info.id), beginning):
                return await self._open(info.id)
        return None

    async def _newest_reply(self, session: str) -> str:
        """Return the text of a session's newest message, where that is a reply."""
        newest = await self._sessions.store.tail(session, BEHIND)
        said = next((entry.message for entry in reversed(newest) if isinstance(entry, Said)), None)
        return said.text if said is not None and said.role == "assistant" else ""

    async def _begin(self, first: str, name: str | None, candidates: Sequence[str]) -> AgentSession:
        session = f"{first}-{secrets.token_hex(4)}" if name is None else name
        if name is not None and candidates:
            session = f"{name}.{_generation(candidates[0], name) + 1}"
        begun = await self._open(session)
        assert begun is not None  # it cannot be gone: it was not there
        return begun

    async def _open(
        self, session: str, ends: ExitStack | AsyncExitStack | None = None
    ) -> AgentSession | None:
        """Return a conversation as it is stored now; None where another worker has deleted it.

        It stays open until `ends` is closed (default: the finder's own).
        """
        (ends or self._ends).enter_context(self._sessions.use(session, self._opener))
        talk = self._sessions.beside(session, AgentSession)
        if talk.is_read and talk.lock.locked():  # who holds it catches up
            return talk
        async with talk.lock:
            if await talk.catch_up():
                return talk
        self._sessions.forget(session)
        return None


async def _link(origin: Session, child: Session) -> None:
    """Note in both sessions that the client went on in the second with a summary of its own."""
    link = Link(origin.id, "compacted", "from", origin.leaf)
    to = msgspec.structs.replace(link, session=child.id, way="to")
    await child.note(LINK, **cast("dict[str, Any]", msgspec.to_builtins(link)))
    await origin.note(LINK, **cast("dict[str, Any]", msgspec.to_builtins(to)))


def valid_name(name: str) -> bool:
    """Return whether a client may name a session so."""
    return bool(_NAMED.fullmatch(name)) and not _MADE.fullmatch(name)


def _generation(session: str, name: str) -> int:
    return 1 if session == name else int(session.rpartition(".")[2])


def _generation_of(session: str, name: str) -> bool:
    head, _, tail = session.rpartition(".")
    return head == name and tail.isdecimal()


# ---- a client that compacts by itself


def goes_on_from(reply: str, beginning: str) -> bool:
    """Return whether a text carries on a reply: a quarter of its lines stand in it, and 200 characters.

    Clients take the tags off a summary, or only a part of it, and write words of their own around it.
    """
    lines = [line for one in reply.splitlines() if len(line := one.strip()) >= LINE]
    common = [line for line in lines if line in beginning]
    return sum(map(len, common)) >= LEAST and 4 * len(common) >= len(lines)


def beginning_of(asked: AgentRequest) -> str:
    """Return what the user's first messages of a request say."""
    first = asked.decode(asked.units[:BEGINNING])
    return "\n".join(message.text for message in first if message.role != "assistant")
