"""Put a loaded log into a store: entries that the store lacks are appended, branches included."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from foldline.core.log.entries import Compacted, Entry, Noted, Said
from foldline.core.log.messages import Part, Text, Thinking, ToolCall
from foldline.errors import LeafMoved, SessionDiverged, StoreError
from foldline.stores.base import Store
from foldline.stores.key_values import KeyValues

AGENTS: Final = "agent"  # the key-value space that holds the agent of each session
KEPT_SECONDS: Final = 10 * 365 * 86_400.0  # how long values about a session are kept
PAGE: Final = 500  # entries in one commit
TRIES: Final = 5  # attempts while another process imports the same session


async def restore(
    store: Store,
    session: str,
    log: list[Entry],
    leaf: str,
    tick: Callable[[int], None] = lambda _: None,
    *,
    agent: str = "",
) -> int:
    """Append the entries of a log that the store lacks, branches included; return their number.

    `log` is in append order; afterwards the session's leaf is `leaf`. `agent` wrote the session;
    `tick` is called with the number of entries appended. Raises SessionDiverged if the stored session
    continued differently.
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
            killed_before_move = at == log[-1].id
            if at != leaf and (missing or killed_before_move):
                await store.move(session, leaf, seen=at)
        except LeafMoved:
            if left == 1:
                raise
        else:
            break
    if agent and (values := getattr(store, "key_values", None)):
        await note_agent(values, session, agent)
    return new


async def note_agent(values: KeyValues, session: str, agent: str) -> None:
    """Store the agent of a session, for lists of sessions; do nothing if the store refuses."""
    with suppress(StoreError):
        await values.put_all(AGENTS, {session: agent.encode()}, seconds=KEPT_SECONDS)


async def agents_of(store: Store) -> dict[str, str]:
    """Return the agent of each session in a store, by session id, where one is known."""
    values: KeyValues | None = getattr(store, "key_values", None)
    agents = {} if values is None else await values.values(AGENTS)
    return {session: agent.decode("utf-8", "replace") for session, agent in agents.items()}


async def _append(store: Store, session: str, entries: list[Entry], tick: Callable[[int], None]) -> None:
    """Append entries, one commit per page of a chain; move the leaf to where each branch starts."""
    at = await store.leaf(session)
    start = 0
    while start < len(entries):
        end = start + 1
        while end < min(start + PAGE, len(entries)) and entries[end].parent == entries[end - 1].id:
            end += 1
        parent = entries[start].parent
        if at != parent:
            await store.move(session, parent, seen=at)
        try:
            await store.append(session, entries[start:end], seen=parent)
        except BaseException:
            if at != parent:
                with suppress(StoreError):
                    await store.move(session, at, seen=parent)  # as it was
            raise
        at, start = entries[end - 1].id, end
        tick(end)


async def _check_same(store: Store, session: str, log: list[Entry]) -> None:
    """Raise SessionDiverged if the stored session is not an earlier state of this log."""
    path = [entry async for entry in store.path(session)]
    ids, stored = {entry.id for entry in log}, {entry.id for entry in path}
    absent = [entry for entry in path if entry.id not in ids and not isinstance(entry, Noted)]
    new = [entry for entry in log if entry.id not in stored]
    later = iter(new if absent and new and new[0].parent == absent[0].parent else [])
    if any(_is_imported(entry) for entry in new):  # some files have only their newest compaction
        absent = [entry for entry in absent if not _is_imported(entry)]
    if not all(any(_completes(old, entry) for entry in later) for old in absent):
        raise SessionDiverged(
            f"session {session!r} already exists with different messages: import under another id"
        )


def _is_imported(entry: Entry) -> bool:
    return isinstance(entry, Compacted) and entry.receipt.reason == "imported"


def _completes(old: Entry, new: Entry) -> bool:
    """Return whether a new entry is a stored message, perhaps with more than its file had of it then.

    An agent's file grows within a reply, and by the result of each of its calls.
    """
    if not (isinstance(old, Said) and isinstance(new, Said) and old.message.role == new.message.role):
        return False
    parts = iter(new.message.parts)
    return all(
        any(_goes_on(part, later) for later in parts) for part in old.message.parts if not _is_blank(part)
    )


def _goes_on(old: Part, new: Part) -> bool:
    """Return whether a part is the stored one, or that one with more text, or with a call's arguments."""
    if isinstance(old, Text | Thinking) and isinstance(new, Text | Thinking):
        return type(old) is type(new) and new.text.startswith(old.text.rstrip())
    if isinstance(old, ToolCall) and isinstance(new, ToolCall):
        return (old.id, old.name) == (new.id, new.name)
    return old == new


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()
