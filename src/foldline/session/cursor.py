"""A session's position in its log: the entries of its view, the leaf it last saw, and every append."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial

from foldline.core.cut.notes import UNANSWERED
from foldline.core.log.entries import Compacted, Entry, Noted, Pinned, Pruned, Said
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Message, Text, ToolResult
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.view import ViewState
from foldline.errors import InputError, LeafMoved, SessionNotFound, StoreCorrupt
from foldline.stores.base import Store
from foldline.waiting import MESSAGE_BYTES, run_off_loop

AT_ONCE = 1_000  # messages pushed into the view before yielding to the event loop
RETRIES = 8  # attempts of an append while only boundaries, pins or notes come between


class Cursor:
    """The entries of a session's view, synchronised with its store."""

    def __init__(self, store: Store, session: str, counter: Counter) -> None:
        self.store = store
        self.session = session
        self.counter = counter
        self.state = ViewState(counter=counter)
        self.leaf: str | None = None
        self.dialect: str | None = None  # of the newest message, even if it is folded
        self.has_news = False  # entries of other writers were loaded and not handled yet
        self._key = ""
        self._loaded = False
        self._was_loaded = False

    async def ready(self) -> None:
        """Load the session at its first use."""
        if not self._loaded:
            await self.reload()

    @property
    def said_key(self) -> str:
        """Key of all messages up to the leaf; boundaries, pins and notes do not change it."""
        return self._key

    async def follow(self) -> None:
        """Reload if another writer has appended or moved the leaf; sets `has_news`."""
        if not self._loaded or await self.store.leaf(self.session) != self.leaf:
            await self.reload()

    async def reload(self) -> None:
        """Reload the view; if cancelled, it reloads at the next use."""
        self._loaded = False
        leaf = await self.store.leaf(self.session)
        entries = await self.store.active(self.session, leaf) if leaf is not None else []
        self.state = ViewState(entries, counter=self.counter)
        self.has_news = self.has_news or (self._was_loaded and leaf != self.leaf)
        self.leaf = leaf
        newest = await self._find_newest(entries, leaf)
        self._key, self.dialect = "", None
        if newest is not None:
            self._newest(newest)
        self._loaded = self._was_loaded = True

    def _newest(self, entry: Said) -> None:
        """Remember the newest message's key and dialect."""
        native = entry.message.native
        self._key = entry.said_key
        self.dialect = native.dialect if native is not None else None

    async def _find_newest(self, entries: Sequence[Entry], leaf: str | None) -> Said | None:
        """Return the newest message of the path, which may be folded while older ones stay in the view."""
        loaded = {entry.id: entry for entry in entries}
        at = leaf
        while at is not None:
            try:
                entry = loaded.get(at) or await self.store.entry(self.session, at)
            except StoreCorrupt:  # a damaged boundary: the messages before it can still be read
                return next((entry for entry in reversed(entries) if isinstance(entry, Said)), None)
            if entry is None or isinstance(entry, Said):
                return entry
            at = entry.parent
        return None

    async def say(
        self,
        messages: Sequence[Message],
        notes: Sequence[Noted] = (),
        caught_up: Callable[[], None] = lambda: None,
    ) -> list[Said]:
        """Append notes and messages in one commit; return the entries of the messages.

        They include synthetic results for open calls. Retries if only boundaries, pins or notes came
        between, after `caught_up`, which may replace messages of the list; otherwise raises LeafMoved.
        """
        for _ in range(RETRIES):
            noted: list[Noted] = []
            for note in notes:
                noted.append(chained(note, noted[-1].id if noted else self.leaf))
            behind = noted[-1].id if noted else self.leaf
            entries = await run_off_loop(_size(messages), partial(self._chain, messages, behind))
            try:
                await self._append([*noted, *entries])
            except LeafMoved:
                await self._catch_up()
                caught_up()
                continue
            for note in noted:
                self.state.push(note)
                self.leaf = note.id
            await self._push_all(entries)
            return entries
        raise self.too_fast()

    async def _append(self, entries: Sequence[Entry]) -> None:
        """Append after the leaf; if cancelled, the session reloads at the next use."""
        try:
            await self.store.append(self.session, entries, seen=self.leaf)
        except asyncio.CancelledError:
            self._loaded = False
            raise

    def _chain(self, messages: Sequence[Message], parent: str | None) -> list[Said]:
        """Chain messages after an entry; calls that the user interrupts get a result first."""
        entries: list[Said] = []
        key = self._key
        # a single result does not need the open calls, of which there may be thousands
        needs_open = len(messages) > 1 or any(message.is_prompt for message in messages)
        still_open = dict.fromkeys(self.state.open_calls if needs_open else ())
        for message in messages:
            answered = {result.call_id for result in message.results}
            for call in answered:
                still_open.pop(call, None)
            cut_short = bool(still_open) and message.is_prompt
            for part in (*([interrupted(tuple(still_open))] if cut_short else []), message):
                tokens = message_tokens(part, self.counter)
                entry = said(part, parent=parent, said_key=key, tokens=tokens, at=time.time())
                entries.append(entry)
                parent, key = entry.id, entry.said_key
            if message.role == "assistant":
                still_open = dict.fromkeys(call.id for call in message.calls if call.id not in answered)
            elif cut_short:
                still_open = {}
        return entries

    async def _push_all(self, entries: Sequence[Said]) -> None:
        """Push appended messages into the view, yielding to the event loop between batches."""
        for number, entry in enumerate(entries, 1):
            self._push(entry)
            if number % AT_ONCE == 0:
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    self._loaded = False
                    raise

    def _push(self, entry: Said) -> None:
        self.state.push(entry)
        self.leaf = entry.id
        self._newest(entry)

    async def _catch_up(self) -> None:
        """Load what others appended; raises LeafMoved if they appended a message or moved the leaf."""
        before = self.leaf
        at = await self.store.leaf(self.session)
        while at is not None and at != before:
            entry = await self.store.entry(self.session, at)
            if entry is None or isinstance(entry, Said):
                await self.reload()
                raise LeafMoved(
                    f"another writer appended to session {self.session}: read its context again",
                    leaf=self.leaf,
                )
            at = entry.parent
        await self.reload()
        if at != before:
            raise LeafMoved(
                f"the leaf of session {self.session} was moved: read its context again", leaf=self.leaf
            )

    async def write(self, entry: Entry, *, once: bool = False) -> bool:
        """Append an entry that is not a message, after the current leaf.

        If another writer has appended, the view is reloaded; then `once` returns False. Raises
        SessionNotFound if the session was purged meanwhile, so that no part of it is recreated.
        """
        for _ in range(RETRIES):
            try:
                placed = chained(entry, self.leaf)
            except (TypeError, RecursionError) as error:
                raise InputError(f"the entry cannot be stored as JSON: {error}") from error
            try:
                await self._append([placed])
            except LeafMoved:
                await self.reload()
                if self.leaf is None and await self.store.info(self.session) is None:
                    raise SessionNotFound(f"session {self.session} was deleted") from None
                if once:
                    return False
                continue
            self.leaf = placed.id
            if isinstance(placed, Noted | Pinned):
                self.state.push(placed)
            else:
                await self.reload()
            return True
        raise self.too_fast()

    async def move(self, leaf: str | None) -> None:
        """Move the leaf to an entry of the session, or before the first (None), and reload the view.

        Raises LeafMoved and moves nothing if another writer appended or moved it.
        """
        self._loaded = False  # also where this is cancelled
        await self.store.move(self.session, leaf, seen=self.leaf)
        self.leaf = leaf
        await self.reload()

    async def commit(
        self, boundary: Compacted | Pruned, notes: Sequence[Noted] = (), after: ViewState | None = None
    ) -> str | None:
        """Append a boundary and its notes after the leaf that this cursor saw; return the boundary's id.

        `after` is the view state including the boundary, if already computed. Returns None and writes nothing
        if another writer appended: the view is reloaded, and the boundary may not fit it.
        """
        entries: list[Entry] = []
        for entry in (boundary, *notes):
            entries.append(chained(entry, entries[-1].id if entries else self.leaf))
        try:
            await self._append(entries)
        except LeafMoved:
            await self.reload()
            return None
        state = after or self.state.with_boundary(boundary)
        placed = entries[0]
        assert isinstance(placed, Compacted | Pruned)
        state.set_id(placed)
        for note in entries[1:]:
            state.push(note)
        self.state, self.leaf = state, entries[-1].id
        return placed.id

    def too_fast(self) -> LeafMoved:
        """Return the error after too many attempts of an append."""
        return LeafMoved(f"session {self.session} changes too fast to append to: try again", leaf=self.leaf)


def _size(messages: Sequence[Message]) -> int:
    return sum(
        MESSAGE_BYTES + (len(message.native.raw) if message.native is not None else 0) for message in messages
    )


def interrupted(call_ids: Sequence[str]) -> Message:
    """Return results that say that these calls were interrupted."""
    return Message("tool", tuple(ToolResult(call, (Text(UNANSWERED),), is_error=True) for call in call_ids))
