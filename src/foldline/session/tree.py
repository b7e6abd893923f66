"""The tree of a session: branches, rewinding to before a user's message, undo and redo of boundaries.

A branch is a new leaf in the same session: nothing is copied, and the branch that is left stays available.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from foldline.arguments import check
from foldline.core.ledger.text.origin import prompts
from foldline.core.log.entries import Compacted, Entry, Lifted, Pruned, Said
from foldline.core.log.log import undone
from foldline.core.log.messages import Message
from foldline.core.view import ViewState
from foldline.errors import FoldlineError, InputError, LeafMoved, StoreError
from foldline.executor import execute
from foldline.session.branch_summary import (
    left_behind,
    left_message,
    merged_into,
    merged_message,
    plan_summary,
    said_on_branch,
    summary_note,
)
from foldline.session.cursor import RETRIES
from foldline.session.drafts import Drafts
from foldline.session.events import Branched, Redone, Undone
from foldline.session.links import is_start
from foldline.session.shared import Shared
from foldline.stores.base import Store

LINE = 120  # characters of a message in a list of branches
FIRST = 20  # messages searched for the user's first words


class Branch(msgspec.Struct, frozen=True):
    """A path of the session's tree.

    `leaf` is its newest entry, `fork` the entry where it left another branch (None if it did not), `text` the
    user's newest message on it, `messages` their number, `at` the Unix time of its newest entry; `current`
    marks the session's own branch.
    """

    leaf: str
    fork: str | None
    text: str
    messages: int
    at: float | None
    current: bool


class Rewound(msgspec.Struct, frozen=True):
    """The result of a rewind: the user's text for editing, the message, and the leaf that was left."""

    text: str
    message: Message
    left: str


class SessionTree:
    """Moves one session's leaf in its tree."""

    def __init__(self, shared: Shared, drafts: Drafts) -> None:
        self._shared = shared
        self._drafts = drafts

    async def branches(self) -> list[Branch]:
        """Return the branches of the session's tree, the newest first; reads every entry."""
        leaf = await self._shared.follow()
        return await branches(self._shared.store, self._shared.id, leaf)

    async def branch(
        self, at: str | None, *, summarize: bool = False, instructions: str | None = None
    ) -> str | None:
        """Continue from an entry (None: before the first); the abandoned part stays as a branch.

        With `summarize`, its summary is appended as data; `instructions` tell what to focus on. Returns the
        new leaf. Raises InputError if the session has no such entry, LeafMoved if another writer appended
        meanwhile.
        """
        shared, cursor = self._shared, self._shared.cursor
        async with shared.locked(follow=False):
            if at is not None and await shared.store.entry(shared.id, at) is None:
                raise InputError(f"session {shared.id} has no entry {at!r}")
            seen, steps, prefix = cursor.said_key, None, None
            if summarize:
                left = await left_behind(shared.store, shared.id, cursor.state, at)
                ask = shared.model.ask("manual", instructions)
                steps, prefix = plan_summary("branch", left, ask, shared.model.setup.counter), shared.prefix()
        record = None
        if steps is not None:
            record = await execute(steps, shared.summarizer, aside=True, prefix=prefix)
        async with shared.locked(follow=False):
            if cursor.said_key != seen:  # a fold made meanwhile does not matter
                raise LeafMoved(f"something was appended to session {shared.id} meanwhile", leaf=cursor.leaf)
            left = cursor.leaf
            await self._move_leaf(at)
            if record is not None:
                try:
                    said = await cursor.say([left_message(record.text)], [summary_note(record)])
                except BaseException:
                    with suppress(FoldlineError):  # the summary was stored, or another writer went on
                        await self._move_leaf(left)
                    raise
                shared.emit_added(said)
            return cursor.leaf

    async def merge(self, other: str, *, instructions: str | None = None) -> str:
        """Append a summary of another branch, which stays unchanged; returns the entry of the summary.

        `other` is the leaf of a branch (`branches`), or another session of the store, such as a fork. The
        summary is data, and omits what is on this path or was merged into it before; `instructions` tell what
        to focus on. Raises InputError if there is no such branch, or nothing new on it.
        """
        check(other=other)
        shared = self._shared
        async with shared.locked() as cursor:
            counter = shared.model.setup.counter
            done, end = await said_on_branch(shared.store, shared.id, cursor.leaf, other, counter)
            steps = plan_summary("merge", done, shared.model.ask("manual", instructions), counter)
        record = await execute(steps, shared.summarizer, aside=True)
        if record is None:
            raise InputError(f"nothing was said on {other!r} that is not on this path or merged into it")
        async with shared.locked() as cursor:
            if cursor.leaf is not None and end in await merged_into(shared.store, shared.id, cursor.leaf):
                raise InputError(f"{other!r} was merged into this path meanwhile")
            (note,) = await cursor.say([merged_message(record.text)], [summary_note(record, merged=end)])
            shared.watch.said([note.message])
            shared.emit_added([note])
            return note.id

    async def rewind(self, at: str | None = None) -> Rewound:
        """Go back to before a user's message (default: the newest) and return its text for editing.

        The abandoned part stays as a branch: `branch(rewound.left)` returns to it. Raises InputError if the
        entry is not a user's message.
        """
        shared = self._shared
        async with shared.locked(follow=False) as cursor:
            prompt = await prompt_at(shared.store, shared.id, at, cursor.leaf)
            left = cursor.leaf or prompt.id
            await self._move_leaf(prompt.parent)
            return Rewound(prompt.message.text, prompt.message, left)

    async def _move_leaf(self, leaf: str | None) -> None:
        """Move the leaf and update what depends on the view; the lock is held."""
        shared = self._shared
        await shared.cursor.move(leaf)
        shared.watch.folded()
        shared.watch.view_changed()
        shared.model.load()
        shared.reply.lift()
        shared.events.emit(Branched(leaf=leaf))

    async def undo(self) -> str | None:
        """Undo the newest compaction, prune or exclusion; messages since then stay.

        Returns its id, or None without one; for a compaction by the provider's server, the id of the reply
        with it. The first checkpoint of a hand-off cannot be undone: what it folded is in the other session.
        """
        undone = await self._lift(self._to_undo, lift=True)
        if undone is not None:  # a draft of the old path is void
            await self._drafts.stop()
        return undone

    async def redo(self) -> str | None:
        """Restore the boundary undone last; returns its id, None without one or after a newer boundary."""
        return await self._lift(self._to_redo, lift=False)

    async def _to_undo(self) -> str | None:
        target = to_undo(self._shared.cursor.state)
        started = target is not None and await is_start(self._shared.store, self._shared.id, target)
        return None if started else target

    async def _to_redo(self) -> str | None:
        return to_redo(self._shared.cursor.state)

    async def _lift(self, find: Callable[[], Awaitable[str | None]], *, lift: bool) -> str | None:
        """Undo or redo what `find` returns; look again if another writer was first."""
        shared = self._shared
        async with shared.locked() as cursor:
            for _ in range(RETRIES):
                target = await find()
                if target is None:
                    return None
                if await cursor.write(Lifted("", None, target, lift, at=time.time()), once=True):
                    shared.watch.folded()
                    shared.respect_undo()
                    shared.events.emit(Undone(entry=target) if lift else Redone(entry=target))
                    return target
            raise cursor.too_fast()


# ---- branches


async def branches(store: Store, session: str, leaf: str | None) -> list[Branch]:
    """Return the branches of a session, the newest first; reads every entry once."""
    entries: dict[str, _Place] = {}
    async for entry in store.all(session):
        before = entries.get(entry.parent or "")
        if before is not None:
            before.children += 1
        entries[entry.id] = _placed(entry, before)
    ends = [id_ for id_, place in entries.items() if not place.children or id_ == leaf]
    return [
        Branch(
            leaf=id_,
            fork=_fork(entries, id_),
            text=entries[id_].prompt,
            messages=entries[id_].messages,
            at=entries[id_].at,
            current=id_ == leaf,
        )
        for id_ in reversed(ends)
    ]


class _Place(msgspec.Struct):
    parent: str | None
    messages: int
    prompt: str
    at: float | None
    children: int = 0


def _placed(entry: Entry, before: _Place | None) -> _Place:
    prompt, messages = (before.prompt, before.messages) if before is not None else ("", 0)
    if isinstance(entry, Said):
        messages += 1
        if entry.message.is_prompt:
            prompt = " ".join(entry.message.text.split())[:LINE]
    return _Place(entry.parent, messages, prompt, entry.at)


def _fork(entries: dict[str, _Place], leaf: str) -> str | None:
    at = entries[leaf].parent
    while at is not None and entries[at].children < 2:
        at = entries[at].parent
    return at


async def first_words(store: Store, session: str) -> str:
    """Return the user's first words in a session; "" if its first messages have none."""
    first: list[Said] = []
    with suppress(StoreError):  # damage is for `verify` to report; lists still work
        async for entry in store.path(session):
            if isinstance(entry, Said):
                first.append(entry)
            if len(first) == FIRST:
                break
    return next((span for _, spans in prompts(first) for span in spans), "")


async def prompt_at(store: Store, session: str, at: str | None, leaf: str | None) -> Said:
    """Return the user's message at an entry, or the newest on the path; raises InputError without one."""
    if at is not None:
        entry = await store.entry(session, at)
        if isinstance(entry, Said) and entry.message.is_prompt:
            return entry
        raise InputError(f"entry {at} is not a user message: rewind to one, or branch at any entry")
    here = leaf
    while here is not None:
        entry = await store.entry(session, here)
        if isinstance(entry, Said) and entry.message.is_prompt:
            return entry
        here = entry.parent if entry is not None else None
    raise InputError("there is no user message to rewind to")


# ---- undo and redo


def to_undo(state: ViewState) -> str | None:
    """Return the id of the newest effective boundary, or reply with a server's compaction; None without."""
    path = state.entries()
    out = undone(path)
    found = (
        entry for entry in reversed(path) if isinstance(entry, Compacted | Pruned) or entry is state.server
    )
    return next((entry.id for entry in found if entry.id not in out), None)


def to_redo(state: ViewState) -> str | None:
    """Return the id of the boundary undone last; None without one, or if a newer one is effective."""
    path = state.entries()
    out = undone(path)
    liftings = (e for e in reversed(path) if isinstance(e, Lifted) and e.lifted and e.target in out)
    found = next((e.target for e in liftings), None)
    order = [entry.id for entry in path]
    newest = to_undo(state)
    if found and newest and (found not in order or order.index(found) < order.index(newest)):
        return None  # an older one, which the newer boundary may have folded away
    return found
