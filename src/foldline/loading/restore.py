"""Put a log that was loaded into a store: what the store lacks is appended, branches included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from foldline.core.log.entries import Entry, Noted, Said
from foldline.errors import LeafMoved, SessionDiverged
from foldline.stores.base import Store

PAGE: Final = 500  # entries in one commit
TRIES: Final = 5  # times that the rest is computed again because another process imports the same session


async def restore(
    store: Store, session: str, log: list[Entry], leaf: str, tick: Callable[[int], None] = lambda _: None
) -> int:
    """Append the entries of a log that the store lacks, branches included; return their number.

    `log` is in append order; afterwards the session's leaf is `leaf`. Raises SessionDiverged if the stored
    session continued differently.
    """
    new = 0
    for left in range(TRIES, 0, -1):
        try:
            have = {entry.id async for entry in store.all(session)}
            await _check_same(store, session, log)
            missing = [entry for entry in log if entry.id not in have]
            await _append(store, session, missing, tick)
            new += len(missing)
            at = await store.leaf(session)
            if at != leaf and (
                missing or at == log[-1].id
            ):  # the latter: the process was killed just before the move
                await store.move(session, leaf, seen=at)
        except LeafMoved:
            if left == 1:
                raise
        else:
            break
    return new


async def _append(store: Store, session: str, entries: list[Entry], tick: Callable[[int], None]) -> None:
    """Append entries, one commit for each page of a chain, moving the leaf to where a branch grows."""
    at = await store.leaf(session)
    start = 0
    while start < len(entries):
        end = start + 1
        while end < min(start + PAGE, len(entries)) and entries[end].parent == entries[end - 1].id:
            end += 1
        parent = entries[start].parent
        if at != parent:
            await store.move(session, parent, seen=at)
        await store.append(session, entries[start:end], seen=parent)
        at, start = entries[end - 1].id, end
        tick(end)


async def _check_same(store: Store, session: str, log: list[Entry]) -> None:
    """Raise SessionDiverged if the newest message of the stored session is not in this log."""
    path = [entry async for entry in store.path(session)]
    newest = next((entry for entry in reversed(path) if not isinstance(entry, Noted)), None)
    if newest is None or any(entry.id == newest.id for entry in log):
        return
    if isinstance(newest, Said) and any(_goes_on(newest, entry) for entry in log):
        return
    raise SessionDiverged(f"session {session!r} exists and continued differently: choose another id")


def _goes_on(old: Said, new: Entry) -> bool:
    """Return whether a stored message was incomplete: the new one has the same parts and more."""
    return (
        isinstance(new, Said)
        and (new.parent, new.message.role) == (old.parent, old.message.role)
        and old.message.role == "assistant"
        and new.message.parts[: len(old.message.parts)] == old.message.parts
    )
