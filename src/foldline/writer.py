"""A session's place in its log: what its view needs, the leaf that it saw, and every append."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec

from foldline.core.fold.notes import UNANSWERED
from foldline.core.log.entries import Compacted, Entry, Lifted, Noted, Pruned, Said
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Message, Text, ToolResult
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.view import Fold
from foldline.errors import LeafMoved
from foldline.stores.base import Store

RETRIES = 8  # times that an append is chained anew because only boundaries, pins or notes came between


class Writer:
    """The entries that a session's view needs, kept in step with its store."""

    def __init__(self, store: Store, session: str, counter: Counter) -> None:
        self.store = store
        self.session = session
        self.counter = counter
        self.fold = Fold(counter=counter)
        self.leaf: str | None = None
        self.dialect: str | None = None  # of the newest message, as it was loaded
        self._key = ""
        self._loaded = False

    async def ready(self) -> None:
        """Load the session at its first use."""
        if not self._loaded:
            await self.reload()

    async def reload(self) -> None:
        """Read again what the view needs."""
        leaf = await self.store.leaf(self.session)
        entries = await self.store.active(self.session, leaf) if leaf is not None else []
        self.fold = Fold(entries, counter=self.counter)
        self.leaf = leaf
        newest = await self._newest_said(entries, leaf)
        self._key = newest.said_key if newest is not None else ""
        native = newest.message.native if newest is not None else None
        self.dialect = native.dialect if native is not None else None
        self._loaded = True

    async def _newest_said(self, entries: Sequence[Entry], leaf: str | None) -> Said | None:
        """Return the newest message of the path; it may be folded, while older ones stay in the view."""
        here = {entry.id: entry for entry in entries}
        at = leaf
        while at is not None:
            entry = here.get(at) or await self.store.entry(self.session, at)
            if entry is None or isinstance(entry, Said):
                return entry
            at = entry.parent
        return None

    async def say(self, messages: Sequence[Message]) -> list[Said]:
        """Append messages in one commit; return their entries, synthetic results for open calls included.

        Tries again where only boundaries, pins or notes came between, else raises LeafMoved.
        """
        for _ in range(RETRIES):
            entries = self._chain(messages)
            try:
                await self._append(entries)
            except LeafMoved:
                await self._catch_up()
                continue
            for entry in entries:
                self._take(entry)
            return entries
        raise self._too_fast()

    async def _append(self, entries: Sequence[Entry]) -> None:
        """Append behind the leaf; where that is cancelled, what is stored is read again at the next use."""
        try:
            await self.store.append(self.session, entries, seen=self.leaf)
        except asyncio.CancelledError:
            self._loaded = False
            raise

    def _chain(self, messages: Sequence[Message]) -> list[Said]:
        """Chain messages behind the leaf; calls that the user cuts short are answered first."""
        entries: list[Said] = []
        parent, key = self.leaf, self._key
        still_open = self.fold.open_calls
        for message in messages:
            answered = {result.call_id for result in message.results}
            left = tuple(call for call in still_open if call not in answered)
            cut_short = bool(left) and message.is_prompt
            for one in (*([interrupted(left)] if cut_short else []), message):
                tokens = message_tokens(one, self.counter)
                entry = said(one, parent=parent, said_key=key, tokens=tokens, at=time.time())
                entries.append(entry)
                parent, key = entry.id, entry.said_key
            calls = tuple(call.id for call in message.calls if call.id not in answered)
            still_open = calls if message.role == "assistant" else () if cut_short else left
        return entries

    def _take(self, entry: Said) -> None:
        self.fold.push(entry)
        self.leaf = entry.id
        self._key = entry.said_key

    async def _catch_up(self) -> None:
        """Take what others appended; raises LeafMoved where they said something or moved the leaf away."""
        before = self.leaf
        at = await self.store.leaf(self.session)
        while at is not None and at != before:
            entry = await self.store.entry(self.session, at)
            if entry is None or isinstance(entry, Said):
                await self.reload()
                raise LeafMoved(
                    f"somebody else wrote to session {self.session}: read its context again", leaf=self.leaf
                )
            at = entry.parent
        await self.reload()
        if at != before:
            raise LeafMoved(
                f"the leaf of session {self.session} was moved: read its context again", leaf=self.leaf
            )

    async def write(self, entry: Entry) -> None:
        """Append an entry that nobody said behind whatever is there now."""
        for _ in range(RETRIES):
            try:
                await self._append([chained(entry, self.leaf)])
            except LeafMoved:
                await self.reload()
                continue
            await self.reload()
            return
        raise self._too_fast()

    async def commit(self, boundary: Compacted | Pruned, seen: str | None) -> bool:
        """Append a boundary behind the leaf; what was said meanwhile stays in order before it.

        False, and nothing is written, where a boundary or a pin was added since the leaf `seen`.
        """
        for _ in range(RETRIES):
            try:
                await self._append([chained(boundary, self.leaf)])
            except LeafMoved:
                await self.reload()
                path = self.fold.entries()
                at = next((i for i, entry in enumerate(path) if entry.id == seen), None)
                if at is None or any(not isinstance(e, Said | Noted) for e in path[at + 1 :]):
                    return False
                boundary = keeping(boundary, path[at + 1 :])
                continue
            await self.reload()
            return True
        raise self._too_fast()

    def _too_fast(self) -> LeafMoved:
        return LeafMoved(
            f"session {self.session} is written to faster than it can be followed", leaf=self.leaf
        )


def keeping(boundary: Compacted | Pruned, since: Sequence[Entry]) -> Compacted | Pruned:
    """Return a boundary that keeps what was said since it was planned, where it would keep nothing."""
    first = next((entry.id for entry in since if isinstance(entry, Said)), None)
    if first is None or not isinstance(boundary, Compacted) or boundary.first_kept is not None:
        return boundary
    receipt = msgspec.structs.replace(boundary.receipt, first_kept=first)
    return msgspec.structs.replace(boundary, first_kept=first, receipt=receipt)


def interrupted(call_ids: Sequence[str]) -> Message:
    """Return results that say that these calls were cut short."""
    return Message("tool", tuple(ToolResult(call, (Text(UNANSWERED),), is_error=True) for call in call_ids))


def is_boundary(entry: Entry) -> bool:
    """Whether an entry is one that can be undone."""
    return isinstance(entry, Compacted | Pruned)


def lifted(path: Sequence[Entry]) -> set[str]:
    """Return the ids of the boundaries of a path that are undone."""
    state = {entry.target: entry.lifted for entry in path if isinstance(entry, Lifted)}
    return {target for target, out in state.items() if out}
