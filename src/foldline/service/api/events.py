"""A session as a stream of events, one for each entry that any worker or client appends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.responses import Response

from foldline.core.log.entries import Compacted, Entry, Lifted, Pinned, Pruned, Said
from foldline.service.api.operation import (
    PING_SECONDS,
    SEND_SECONDS,
    STREAM,
    ApiCall,
    operation,
    sent_event,
)
from foldline.service.api.sessions import AT
from foldline.service.feed import figures
from foldline.stores.base import Store, backwards

LOOK_SECONDS: Final = 1.0  # between two polls of the store
MOST: Final = 1_000  # new entries sent as events; with more, the client is told to read the session again


class EventQuery(msgspec.Struct, frozen=True):
    """The entry after which to begin (`Last-Event-ID` takes precedence); default: only new entries."""

    after: str | None = None


@operation("GET", f"{AT}/events", media=STREAM)
async def follow_session(call: ApiCall, query: EventQuery) -> Response:
    """Follow a session: server-sent events for messages, folds, undos, pins and titles."""
    after = call.request_headers.get("last-event-id") or query.after or call.session.leaf
    events = _events(call, call.session.id, after)
    return EventSourceResponse(events, ping=PING_SECONDS, send_timeout=SEND_SECONDS)


async def _events(call: ApiCall, session: str, leaf: str | None) -> AsyncGenerator[ServerSentEvent]:
    store = call.tenant.store
    while True:  # until the client disconnects, its token is revoked, or the service stops
        now = await store.leaf(session)
        if not call.is_allowed():
            return
        if now is None and await store.info(session) is None:
            yield ServerSentEvent("{}", event="deleted")
            return
        if now != leaf:
            new = await _since(store, session, leaf, now)
            if new is None:
                yield sent_event("moved", {"entry": now}, now)
            for entry in new or ():
                if (event := _event(entry)) is not None:
                    yield sent_event(event[0], {"entry": entry.id, **event[1]}, entry.id)
            leaf = now
        await asyncio.sleep(LOOK_SECONDS)


async def _since(store: Store, session: str, known: str | None, leaf: str | None) -> list[Entry] | None:
    """Return the entries between a known one and `leaf`; None if it is not among the last `MOST`."""
    new: list[Entry] = []
    async for entry in backwards(store, session, leaf=leaf):
        if entry.id == known:
            return new[::-1]
        if len(new) == MOST:
            return None
        new.append(entry)
    return new[::-1] if known is None else None


def _event(entry: Entry) -> tuple[str, dict[str, Any]] | None:
    """Return the name and the data of an entry's event; None for an internal note."""
    if isinstance(entry, Said):
        return "message", {"role": entry.message.role, "tokens": entry.tokens}
    if isinstance(entry, Compacted | Pruned):
        return ("compacted" if isinstance(entry, Compacted) else "pruned"), figures(entry.receipt)
    if isinstance(entry, Lifted):
        return ("undone" if entry.lifted else "redone"), {"boundary": entry.target}
    if isinstance(entry, Pinned):
        return ("pinned" if entry.on else "unpinned"), {"of": entry.target}
    return ("titled", {"title": entry.data.get("title")}) if entry.kind == "title" else None
