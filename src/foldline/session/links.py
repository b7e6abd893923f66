"""Sessions that belong together, linked by notes: hand-offs and forks begin one, a sub-agent has its own."""

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
from foldline.session.shared import Shared
from foldline.session.state import NOTE, known_live
from foldline.stores.base import Store

LINK: Final = "link"  # the kind of note that links two sessions
HEAD: Final = 64  # entries at the beginning of a session among which the link to its origin stands
CHAIN: Final = 16  # sessions that are followed back
SUBAGENTS: Final = "sub-agents"  # the name of the live state that lists those that are running

How = Literal["handoff", "subagent", "fork", "compacted"]
Way = Literal["from", "to"]


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session that this one came `from` or led `to`: a hand-off, a sub-agent, or a copy of its path.

    Where a client of the gateway went on with a summary of its own, it is `compacted`.

    `entry` is the leaf that the older session had then, `goal` what the newer one is for.
    """

    session: str
    how: How
    way: Way
    entry: str | None = None
    goal: str = ""


prepared(Link)


class Links:
    """Begins sessions from one session, and tells which belong to it."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def handoff(
        self, goal: str | None = None, *, to: str | None = None, text: str | None = None
    ) -> str:
        """Begin a new session for a goal (default: the newest request) with what serves it here.

        It starts with a checkpoint: the user's rules, pins and live state are in it; this session stays as it
        is. `to` is its id, `text` the checkpoint as the user edited it (see `preview_handoff`). Both sessions
        share a store. Raises InputError where nothing was said yet or the id is taken, FloorExceeded.
        """
        state, boundary = await self._planned(goal, text)
        path = state.entries()
        link = Link(self._shared.id, "handoff", "from", path[-1].id if path else None, goal or "")
        session = await self._begun(to, link, opening(start_of(state, noted(link)), boundary))
        self._shared.events.emit(HandedOff(session=session))
        return session

    async def preview_handoff(self, goal: str | None = None) -> str:
        """Return the checkpoint's summary that `handoff` would write, for editing; begins nothing."""
        _, boundary = await self._planned(goal, None)
        return boundary.checkpoint.summary

    async def _planned(self, goal: str | None, text: str | None) -> tuple[ViewState, Compacted]:
        """Return the view state that a hand-off is planned on, and the checkpoint that it begins with."""
        shared = self._shared
        counter = shared.model.setup.counter
        async with shared.locked() as cursor:
            state = ViewState(cursor.state.entries(), counter=counter)  # appends may go on meanwhile
            ask, prefix = await shared.live.onto(shared.model.ask("manual"), state), shared.prefix()
        ask = msgspec.structs.replace(ask, goal=goal)
        link = noted(Link(shared.id, "handoff", "from"))
        steps = handoff(CompactionInput(state, ask, counter), start_of(state, link), text=text)
        made = await execute(steps, shared.summarizer, aside=True, prefix=prefix)
        if not isinstance(made, Compacted):
            why = made.why if isinstance(made, Nothing) else "nothing to fold"
            raise InputError(f"session {shared.id} has nothing to hand off ({why})")
        return state, made

    async def fork(self, to: str | None = None, *, at: str | None = None) -> str:
        """Begin a new session with a copy of the path up to an entry (default: the leaf).

        `to` is its id. Holds the path in memory and writes it in one commit. Raises InputError where the id
        is taken, for no entry of the session, and where nothing was said yet.
        """
        shared = self._shared
        async with shared.locked() as cursor:
            end = at or cursor.leaf
            if end is None or await shared.store.entry(shared.id, end) is None:
                raise InputError(f"no entry {at!r} in session {shared.id}" if at else "nothing was said yet")
            path = [entry async for entry in shared.store.path(shared.id, end)]
        link = Link(shared.id, "fork", "from", end)
        return await self._begun(to, link, [*path, chained(noted(link), end)])

    async def subagent(self, goal: str, *, to: str | None = None) -> str:
        """Begin a session of a sub-agent, linked to this one; `to` is its id.

        No threshold compacts it, an overflow does. Until `finished(id)` the live state lists it as running.
        Raises InputError where the id is taken.
        """
        shared = self._shared
        await shared.follow()
        link = Link(shared.id, "subagent", "from", shared.cursor.leaf, goal)
        session = await self._begun(to, link, [chained(noted(link), None)])
        await self._note_subagents(lambda running: with_child(running, session, redact(goal)))
        return session

    async def finished(self, session: str) -> None:
        """Say that a sub-agent has ended: the live state no longer lists it."""
        await self._note_subagents(lambda running: without_child(running, session))

    async def _note_subagents(self, change: Callable[[str], str]) -> None:
        async with self._shared.locked() as cursor:
            running = known_live(cursor.state).get(SUBAGENTS, "")
            await cursor.write(Noted("", None, NOTE, {SUBAGENTS: change(running)}, at=time.time()))

    async def _begun(self, to: str | None, link: Link, entries: Sequence[Entry]) -> str:
        """Write the first entries of a new session, note it here as well, and return its id."""
        session = to or f"{self._shared.id}-{uuid4().hex[:8]}"
        await begin(self._shared.store, session, entries)
        async with self._shared.locked() as cursor:
            await cursor.write(noted(msgspec.structs.replace(link, session=session, way="to")))
        return session

    async def links(self) -> list[Link]:
        """Return the sessions that this one came from or led to; reads the path."""
        return await links(self._shared.store, self._shared.id)


# ---- the notes that link sessions


def noted(link: Link) -> Noted:
    """Return the note of a link, not chained yet; its goal without secrets."""
    link = msgspec.structs.replace(link, goal=redact(link.goal))
    return Noted("", None, LINK, cast("dict[str, Any]", msgspec.to_builtins(link)), at=time.time())


def linked(entry: Entry) -> Link | None:
    """Return the link that an entry notes; None where it notes none that can be read."""
    if not isinstance(entry, Noted) or entry.kind != LINK:
        return None
    try:
        return msgspec.convert(entry.data, Link)
    except msgspec.ValidationError:
        return None


async def links(store: Store, session: str) -> list[Link]:
    """Return the links noted on the path, in order."""
    return [
        link for entry in await store.marks(session, kinds=["noted"]) if (link := linked(entry)) is not None
    ]


async def origin(store: Store, session: str) -> Link | None:
    """Return the link to the session that this one came from; reads its beginning alone."""
    count = 0
    async for entry in store.path(session):
        link = linked(entry)
        if link is not None and link.way == "from":
            return link
        count += 1
        if count >= HEAD or (isinstance(entry, Said) and entry.message.role not in ("system", "developer")):
            return None
    return None


async def handed_from(store: Store, session: str) -> list[str]:
    """Return the session and those whose work it goes on with in a summary, the newest first."""
    chain = [session]
    while len(chain) <= CHAIN:
        link = await origin(store, chain[-1])
        if link is None or link.how not in ("handoff", "compacted") or link.session in chain:
            break
        chain.append(link.session)
    return chain


async def begin(store: Store, session: str, entries: Sequence[Entry]) -> None:
    """Write the first entries of a new session; raises InputError where there is one of that id."""
    taken = InputError(f"a session {session!r} exists already: give another id")
    if await store.info(session) is not None:
        raise taken
    try:
        await store.append(session, entries, seen=None)
    except LeafMoved as error:
        raise taken from error


async def is_start(store: Store, session: str, boundary: str) -> bool:
    """Whether a boundary is the checkpoint that a hand-off began with: there is nothing before it."""
    entry = await store.entry(session, boundary)
    before = await store.entry(session, entry.parent) if entry is not None and entry.parent else None
    link = linked(before) if before is not None else None
    return isinstance(entry, Compacted) and link is not None and link.way == "from"


def with_child(running: str, child: str, goal: str) -> str:
    """Return the list of running sub-agents with one more."""
    return "\n".join([*without_child(running, child).splitlines(), f"- {child}: {' '.join(goal.split())}"])


def without_child(running: str, child: str) -> str:
    """Return the list of running sub-agents without one."""
    return "\n".join(line for line in running.splitlines() if not f"{line} ".startswith(f"- {child}: "))
