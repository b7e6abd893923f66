"""Sessions linked by notes: hand-offs, forks and sub-agents."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, cast
from uuid import uuid4

import msgspec

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.handoff import handoff, opening, start_of
from foldline.core.decide.ask import Nothing
from foldline.core.log.codec import prepared
from foldline.core.log.entries import Compacted, Entry, Noted, Said
from foldline.core.log.log import chained
from foldline.core.secrets.redact import redact
from foldline.core.view import ViewState
from foldline.errors import InputError, LeafMoved
from foldline.executor import execute
from foldline.session.events import HandedOff
from foldline.session.hooks import NOTE, known_live
from foldline.session.shared import Shared
from foldline.stores.base import Store

LINK: Final = "link"  # kind of the note that links two sessions
HEAD: Final = 64  # first entries of a session searched for the link to its origin
CHAIN: Final = 16  # most hand-offs to follow back
SUBAGENTS: Final = "sub-agents"  # name of the live state that lists running sub-agents

How = Literal["handoff", "subagent", "fork", "compacted"]
Way = Literal["from", "to"]


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session that this one came `from` or led `to`.

    `compacted`: a client of the gateway continued with a summary that it wrote itself. `entry` is the older
    session's leaf at that time, `goal` the purpose of the newer one.
    """

    session: str
    how: How
    way: Way
    entry: str | None = None
    goal: str = ""


prepared(Link)


class Links:
    """Starts sessions from one session, and lists those linked to it."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def handoff(
        self, goal: str | None = None, *, to: str | None = None, text: str | None = None
    ) -> str:
        """Start a new session for a goal (default: the newest request) with what is relevant from this one.

        It starts with a checkpoint that includes the user's rules, pins and live state; this session is
        unchanged. `to` is its id, `text` the checkpoint as the user edited it (see `preview_handoff`). Both
        use the same store. Raises InputError if nothing was said yet or the id is taken, FloorExceeded.
        """
        if to is not None:  # before a summary is paid for
            await check_unused(self._shared.store, to)
        state, boundary = await self._plan_handoff(goal, text)
        path = state.entries()
        link = Link(self._shared.id, "handoff", "from", path[-1].id if path else None, goal or "")
        session = await self._begin(to, link, opening(start_of(state, link_note(link)), boundary))
        self._shared.events.emit(HandedOff(session=session))
        return session

    async def preview_handoff(self, goal: str | None = None) -> str:
        """Return the summary of the checkpoint that `handoff` would write, for editing; starts no session."""
        _, boundary = await self._plan_handoff(goal, None)
        return boundary.checkpoint.summary

    async def _plan_handoff(self, goal: str | None, text: str | None) -> tuple[ViewState, Compacted]:
        """Plan a hand-off; return the view state it is based on and its checkpoint."""
        shared = self._shared
        counter = shared.model.setup.counter
        async with shared.locked() as cursor:
            state = ViewState(
                cursor.state.entries(), counter=counter
            )  # a copy, as appends may change the original
            ask, prefix = await shared.live.complete(shared.model.ask("manual"), state), shared.prefix()
        ask = msgspec.structs.replace(ask, goal=goal)
        link = link_note(Link(shared.id, "handoff", "from"))
        steps = handoff(CompactionInput(state, ask, counter), start_of(state, link), text=text)
        boundary = await execute(steps, shared.summarizer, aside=True, prefix=prefix)
        if not isinstance(boundary, Compacted):
            why = boundary.why if isinstance(boundary, Nothing) else "nothing to fold"
            raise InputError(f"session {shared.id} has nothing to hand off ({why})")
        return state, boundary

    async def fork(self, to: str | None = None, *, at: str | None = None) -> str:
        """Start a new session with a copy of the path up to an entry (default: the leaf).

        `to` is its id. Holds the path in memory and writes it in one commit. Raises InputError if the id is
        taken, the session has no such entry, or nothing was said yet.
        """
        shared = self._shared
        async with shared.locked() as cursor:
            end = at or cursor.leaf
            if end is None or await shared.store.entry(shared.id, end) is None:
                raise InputError(f"no entry {at!r} in session {shared.id}" if at else "nothing was said yet")
            path = [entry async for entry in shared.store.path(shared.id, end)]
        link = Link(shared.id, "fork", "from", end)
        return await self._begin(to, link, [*path, chained(link_note(link), end)])

    async def subagent(self, goal: str, *, to: str | None = None) -> str:
        """Start a session for a sub-agent, linked to this one; `to` is its id.

        It is compacted only after an overflow. The live state lists it as running until `finished(id)`.
        Raises InputError if the id is taken.
        """
        shared = self._shared
        await shared.follow()
        link = Link(shared.id, "subagent", "from", shared.cursor.leaf, goal)
        session = await self._begin(to, link, [chained(link_note(link), None)])
        await self._note_subagents(lambda running: with_child(running, session, redact(goal)))
        return session

    async def finished(self, session: str) -> None:
        """Remove a finished sub-agent from the live state."""
        await self._note_subagents(lambda running: without_child(running, session))

    async def _note_subagents(self, change: Callable[[str], str]) -> None:
        async with self._shared.locked() as cursor:
            running = known_live(cursor.state).get(SUBAGENTS, "")
            await cursor.write(Noted("", None, NOTE, {SUBAGENTS: change(running)}, at=time.time()))

    async def _begin(self, to: str | None, link: Link, entries: Sequence[Entry]) -> str:
        """Write the first entries of a new session, note the link here too, and return the new id."""
        session = to or f"{self._shared.id}-{uuid4().hex[:8]}"
        await begin(self._shared.store, session, entries)
        async with self._shared.locked() as cursor:
            await cursor.write(link_note(msgspec.structs.replace(link, session=session, way="to")))
        return session

    async def links(self) -> list[Link]:
        """Return the sessions that this one came from or led to; reads the path."""
        return await links(self._shared.store, self._shared.id)


# ---- link notes


def link_note(link: Link) -> Noted:
    """Return the note of a link, not chained yet, with secrets redacted from its goal."""
    link = msgspec.structs.replace(link, goal=redact(link.goal))
    return Noted("", None, LINK, cast("dict[str, Any]", msgspec.to_builtins(link)), at=time.time())


def link_in(entry: Entry) -> Link | None:
    """Return the link in an entry; None if it holds none or cannot be read."""
    if not isinstance(entry, Noted) or entry.kind != LINK:
        return None
    try:
        return msgspec.convert(entry.data, Link)
    except msgspec.ValidationError:
        return None


async def links(store: Store, session: str) -> list[Link]:
    """Return the links noted on the path, in order."""
    return [
        link for entry in await store.marks(session, kinds=["noted"]) if (link := link_in(entry)) is not None
    ]


async def origin(store: Store, session: str) -> Link | None:
    """Return the link to the session that this one came from; reads only the first entries."""
    count = 0
    async for entry in store.path(session):
        link = link_in(entry)
        if link is not None and link.way == "from":
            return link
        count += 1
        if count >= HEAD or (isinstance(entry, Said) and entry.message.role not in ("system", "developer")):
            return None
    return None


async def handed_from(store: Store, session: str) -> list[str]:
    """Return the session and those whose work it continues from a summary, newest first."""
    chain = [session]
    while len(chain) <= CHAIN:
        link = await origin(store, chain[-1])
        if link is None or link.how not in ("handoff", "compacted") or link.session in chain:
            break
        chain.append(link.session)
    return chain


async def begin(store: Store, session: str, entries: Sequence[Entry]) -> None:
    """Write the first entries of a new session; raises InputError if the id is taken."""
    await check_unused(store, session)
    try:
        await store.append(session, entries, seen=None)
    except LeafMoved as error:
        raise _taken(session) from error


async def check_unused(store: Store, session: str) -> None:
    """Raise InputError if a session with this id exists."""
    if await store.info(session) is not None:
        raise _taken(session)


def _taken(session: str) -> InputError:
    return InputError(f"a session {session!r} exists already: give another id")


async def is_start(store: Store, session: str, boundary: str) -> bool:
    """Whether a boundary is the checkpoint that a hand-off started with."""
    entry = await store.entry(session, boundary)
    before = await store.entry(session, entry.parent) if entry is not None and entry.parent else None
    link = link_in(before) if before is not None else None
    return isinstance(entry, Compacted) and link is not None and (link.how, link.way) == ("handoff", "from")


def with_child(running: str, child: str, goal: str) -> str:
    """Add a sub-agent to the list of running ones."""
    return "\n".join([*without_child(running, child).splitlines(), f"- {child}: {' '.join(goal.split())}"])


def without_child(running: str, child: str) -> str:
    """Remove a sub-agent from the list of running ones."""
    return "\n".join(line for line in running.splitlines() if not f"{line} ".startswith(f"- {child}: "))
