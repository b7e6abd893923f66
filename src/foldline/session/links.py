"""Sessions that belong together: a hand-off begins a new one, a sub-agent has its own; both are linked by notes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, Literal, cast
from uuid import uuid4

import msgspec

from foldline.core.log.entries import Compacted, Entry, Noted, Said
from foldline.errors import InputError, LeafMoved
from foldline.stores.base import Store

LINK: Final = "link"  # the kind of note that links two sessions
HEAD: Final = 64  # entries at the beginning of a session among which the link to its origin stands
CHAIN: Final = 16  # hand-offs that are followed back
SUBAGENTS: Final = "sub-agents"  # the name of the live state that lists those that are running

How = Literal["handoff", "subagent"]
Way = Literal["from", "to"]


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """A session that this one came `from` or led `to`, by a hand-off or as a sub-agent.

    `entry` is the leaf that the older session had then, `goal` what the newer one is for.
    """

    session: str
    how: How
    way: Way
    entry: str | None = None
    goal: str = ""


def noted(link: Link) -> Noted:
    """Return the note of a link, not chained yet."""
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
    """Return the links noted on the path, in order; reads the path once."""
    return [link async for entry in store.path(session) if (link := linked(entry)) is not None]


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
    """Return the session and those that it was handed off from, the newest first."""
    chain = [session]
    while len(chain) <= CHAIN:
        link = await origin(store, chain[-1])
        if link is None or link.how != "handoff" or link.session in chain:
            break
        chain.append(link.session)
    return chain


async def begin(store: Store, session: str, entries: Sequence[Entry]) -> None:
    """Write the first entries of a new session; raises InputError where there is one of that id."""
    try:
        await store.append(session, entries, seen=None)
    except LeafMoved as error:
        raise InputError(f"there is a session {session!r} already: give another id") from error


def new_id(session: str) -> str:
    """Return an id for a session that comes from another one."""
    return f"{session}-{uuid4().hex[:8]}"


async def is_start(store: Store, session: str, boundary: str) -> bool:
    """Whether a boundary is the checkpoint that a hand-off began with: nothing stands before it to go back to."""
    entry = await store.entry(session, boundary)
    before = await store.entry(session, entry.parent) if entry is not None and entry.parent else None
    link = linked(before) if before is not None else None
    return isinstance(entry, Compacted) and link is not None and link.way == "from"


def with_child(running: str, child: str, goal: str) -> str:
    """Return the list of running sub-agents with one more."""
    return "\n".join([*without_child(running, child).splitlines(), f"- {child}: {' '.join(goal.split())}"])


def without_child(running: str, child: str) -> str:
    """Return the list of running sub-agents without one."""
    return "\n".join(line for line in running.splitlines() if not line.startswith(f"- {child}:"))
