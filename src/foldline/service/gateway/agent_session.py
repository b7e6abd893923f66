"""One agent's conversation: its stored session, kept in step with the history that the agent sends.

The state here is a cache: `catch_up` reads what other workers have stored since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.catalogue import ModelInfo
from foldline.core.log.entries import Compacted, Entry, Lifted, Pruned, Receipt, Said
from foldline.core.log.log import resent_key
from foldline.core.log.messages import Message, Native
from foldline.core.view_items import AddedItem, Item, native_items
from foldline.dialects import get
from foldline.dialects.in_turn import in_turn
from foldline.errors import CallsOpen, CompactionFailed, FloorExceeded
from foldline.service.gateway.compaction_item import make_item
from foldline.service.gateway.request import AgentRequest, Unit
from foldline.session.events import CompactionDone, PruneDone
from foldline.session.session import Session
from foldline.session.view import ContextMessages
from foldline.stores.tree import SERVED
from foldline.summarizers import Summarizer
from foldline.waiting import MESSAGE_BYTES, run_off_loop

log = logging.getLogger("foldline")

ITEM_TOKENS: Final = 40_000  # the limit for the view of a compaction item
NEWEST: Final = 64  # entries of the path that are read to find new ones


class SharedMessage(msgspec.Struct):
    """A message that both client and session have, in the client's newest bytes."""

    raw: bytes
    key: str
    entry: str
    reply: bool


class RequestModel(msgspec.Struct, frozen=True):
    """The model of a request: its name there, what the catalogue says of it, and its summarizer."""

    name: str
    info: ModelInfo
    summarizer: Summarizer


class AgentSession:
    """A session and the history that its client has; hold `lock` to use it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lock = asyncio.Lock()
        self.is_read = False  # whether the stored session was read once
        self.model: RequestModel | None = None  # of the newest request
        self.applies_template = False  # the server is not the vendor's own
        self.link: str | None = None  # the entry with the link to the session that it continues, if new
        self.begun_by: object = None  # the exchange that stored its first message, if no other has used it
        self.unreported: dict[str, Receipt] = {}  # folds not yet reported in a response, by entry
        self._shared: list[SharedMessage] = []
        # entries of the path, in order: the number of shared messages up to each
        self._places: dict[str, int] = {}
        self._leaf: str | None = None  # the last entry that was read
        self._user = ""
        self._folds: set[str] = set()  # boundaries whose receipts were added
        for name in ("compacted", "pruned"):
            session.on(name, self._on_fold)

    def _on_fold(self, event: CompactionDone | PruneDone) -> None:
        """Keep the receipt of a fold: many are made after a reply, when no request is running."""
        self._add_receipt(event.entry, event.receipt)

    def _add_receipt(self, entry: str, receipt: Receipt) -> None:
        if entry not in self._folds:
            self._folds.add(entry)
            self.unreported[entry] = receipt

    async def catch_up(self) -> bool:
        """Read stored entries that are not known here; return False if the session was deleted."""
        store, name = self.session.store, self.session.id
        leaf = await store.leaf(name)
        if leaf == self._leaf:
            self.is_read = True
            return True
        both_known = leaf is not None and self._leaf is not None
        newest = await store.tail(name, NEWEST, leaf=leaf) if both_known else []
        place = next((n for n, entry in enumerate(newest) if entry.id == self._leaf), None)
        if place is not None:
            for entry in newest[place + 1 :]:
                self._apply_entry(entry)
        else:
            self._shared, self._places, self.unreported = [], {}, {}
            if leaf is not None:
                async for entry in store.path(name, leaf):
                    self._apply_entry(entry)
        gone, self._leaf = leaf is None and self._leaf is not None, leaf
        self.is_read = True
        return not gone

    def _apply_entry(self, entry: Entry) -> None:
        """Apply an entry; a reply has reported the folds before it, and an undone one is not reported."""
        if isinstance(entry, Compacted | Pruned):
            self._add_receipt(entry.id, entry.receipt)
        elif isinstance(entry, Lifted):
            self.unreported.pop(entry.target, None)
        elif isinstance(entry, Said) and entry.message.native is not None:
            self._add_shared(entry.message.native.raw, entry.message, resent_key(entry.message), entry.id)
            if entry.message.role == "assistant":
                self.unreported.clear()
        self._places[entry.id] = len(self._shared)

    def _add_shared(self, raw: bytes, message: Message, key: str, entry: str) -> None:
        self._shared.append(SharedMessage(raw, key, entry, message.role == "assistant"))
        self._places[entry] = len(self._shared)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is stored but its link, as far as this worker knows."""
        return {self._leaf, self.session.leaf} <= {None, self.link}

    @property
    def tip(self) -> str | None:
        """The entry of the newest shared message."""
        return self._shared[-1].entry if self._shared else None

    async def is_at(self, entry: str | None) -> bool:
        """Return whether this is still the newest shared message, after what others have stored."""
        await self.catch_up()
        return self.tip == entry

    def common(self, request: AgentRequest) -> int:
        """Return how many first messages are the same."""
        count = 0
        for shared, unit in zip(self._shared_from(request), request.units, strict=False):
            if shared.raw != unit.raw:
                after = request.units[count - 1] if count else None
                if shared.key != resent_key(request.decode([unit], after)[0]):
                    break
            count += 1
        return count

    def _shared_from(self, request: AgentRequest) -> list[SharedMessage]:
        """Return the messages that a request may repeat."""
        start = self._places.get(request.at or "", 0)
        return self._shared[start:] if start else self._shared

    def has_reply(self, count: int) -> bool:
        """Return whether one of the first `count` messages is a reply."""
        return any(shared.reply for shared in self._shared[:count])

    async def follow(self, request: AgentRequest) -> bool:
        """Store the new messages of a request; a history that the client edited becomes a branch.

        Return False if it has nothing in common with the stored one: it is another conversation.
        """
        await self.catch_up()
        if self.session.leaf != self._leaf:
            await self.session.follow()
        if request.at is not None:  # another request may have gone elsewhere since `resume`
            await self._go_to(request.at)
        common = self.common(request)
        for shared, unit in zip(self._shared_from(request), request.units[:common], strict=False):
            shared.raw = unit.raw  # the client's newest bytes
        position = common + self._places.get(request.at or "", 0)
        if position < len(self._shared):
            last = self._shared[position - 1].entry if common else request.at
            if last is None:
                return False
            await self._branch_from(last)
        new, after = request.units[common:], request.units[common - 1] if common else None
        await self._append(new, await run_off_loop(_size(new), lambda: request.decode(new, after)))
        return True

    async def _branch_from(self, entry: str) -> None:
        """Continue from an earlier entry of the path, on a new branch."""
        self._leaf = await self.session.branch(entry)
        for other in reversed(list(self._places)):
            if other == entry:
                break
            del self._places[other]
        del self._shared[self._places[entry] :]

    async def resume(self, request: AgentRequest) -> AgentRequest:
        """Return a request that continues from a compaction item of this session, as the session has it."""
        assert request.resumed is not None
        at = request.resumed.at
        await self.catch_up()
        await self._go_to(at)
        return request.resuming({shared.key for shared in self._shared[: self._places[at]]})

    async def _go_to(self, entry: str) -> None:
        """Continue from an entry if it is on another branch."""
        if entry not in self._places:
            await self.session.follow()
            await self.session.branch(entry)
            await self.catch_up()

    async def _append(self, units: Sequence[Unit], messages: Sequence[Message]) -> None:
        if not units:
            return
        entries = await self.session.append(*messages)
        keys = await run_off_loop(_size(units), lambda: [resent_key(message) for message in messages])
        for unit, message, key, entry in zip(units, messages, keys, entries, strict=True):
            self._add_shared(unit.raw, message, key, entry)
        self._leaf = entries[-1]

    async def store_reply(self, message: Message, after: str | None) -> None:
        """Store a model's reply, unless the client has continued from another message since."""
        if self.tip != after or not message.parts:
            return
        raw = message.native.raw if message.native is not None else b""
        await self._append([Unit(raw, 0)], [message])

    async def set_user(self, user: str) -> None:
        """Store the user of the session if it changed."""
        if not user or user == self._user:
            return
        info = await self.session.store.info(self.session.id)
        if info is None or info.user != user:
            await self.session.note(SERVED, user=user)
            await self.catch_up()
        self._user = user

    def messages_to_send(self, request: AgentRequest, view: ContextMessages) -> list[Any] | None:
        """Return the messages to send instead of the client's; None if those are the view."""
        changed = view.token or request.at is not None or self.session.in_turn
        return self._render(request) if changed else None

    def _render(self, request: AgentRequest) -> list[Any]:
        """Return the current view in the client's bytes."""
        items = self.session.view()
        newest = {shared.entry: shared.raw for shared in self._shared}
        dialect = request.endpoint.dialect
        updated = [_with_newest_bytes(item, newest, dialect) for item in items]
        messages = get(dialect).render(native_items(updated), whole=True).messages
        return in_turn(messages, dialect) if self.applies_template or self.session.in_turn else messages

    async def compact(self, request: AgentRequest) -> dict[str, Any]:
        """Fold at the client's request, and return the compaction item for the view.

        The client's window is not known here, only that the history is too large for it: so the target is two
        fifths of the history, at most `ITEM_TOKENS`. If nothing can be folded, the item has the current view.
        """
        overhead = self.session.setup.overhead.system + self.session.setup.overhead.tools
        message_tokens = self.session.view_tokens - overhead
        for target in (overhead + min(message_tokens * 2 // 5, ITEM_TOKENS), None):
            try:
                await self.session.compact(target=target)
                break
            except (FloorExceeded, CompactionFailed, CallsOpen) as error:
                log.info("session %s: nothing folded at its client's request: %s", self.session.id, error)
        await self.catch_up()
        return make_item(self.session.id, self.session.leaf or "", self._render(request))

    def take_unreported(self) -> list[Receipt]:
        """Return and clear the folds that no response has reported yet."""
        receipts, self.unreported = self.unreported, {}
        return list(receipts.values())

    async def context(self) -> ContextMessages:
        """Fold what must be folded before the next request."""
        return await self.session.context(shared=True)  # the request is sent in the client's bytes


def _size(units: Sequence[Unit]) -> int:
    return sum(MESSAGE_BYTES + len(unit.raw) for unit in units)


def _with_newest_bytes(item: Item, newest: dict[str, bytes], dialect: str) -> Item:
    """Return an item in the bytes that its client sent last: cache marks move."""
    if isinstance(item, AddedItem) or item.entry.id not in newest:
        return item
    message = item.entry.message
    native = Native(dialect, newest[item.entry.id])
    if message.native is not None and message.native.mended:
        return item
    entry = msgspec.structs.replace(item.entry, message=msgspec.structs.replace(message, native=native))
    return msgspec.structs.replace(item, entry=entry)
