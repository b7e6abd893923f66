"""One agent's conversation: the session that is kept of it, in step with the history that the agent sends.

What is known of it here is a cache: `catch_up` reads what other workers have stored since.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.core.log.entries import Compacted, Entry, Pruned, Receipt, Said
from foldline.core.log.log import resent_key
from foldline.core.log.messages import Message, Native
from foldline.core.view import AddedItem, Item, native_items
from foldline.dialects import get
from foldline.dialects.in_turn import in_turn
from foldline.errors import CallsOpen, CompactionFailed, FloorExceeded
from foldline.service.gateway.compaction_item import sealed
from foldline.service.gateway.request import AgentRequest, Unit
from foldline.session.events import CompactionDone, PruneDone
from foldline.session.session import Session
from foldline.session.view import ContextMessages
from foldline.stores.tree import SERVED
from foldline.summarizers import Summarizer
from foldline.waiting import EACH, aside

log = logging.getLogger("foldline")

ITEM_TOKENS: Final = 40_000  # the most that a view behind a compaction item is to take
NEWEST: Final = 64  # entries of the path that are read to find what is new


class Told(msgspec.Struct):
    """A message that client and session have in common, in the client's newest bytes."""

    raw: bytes
    key: str
    entry: str
    reply: bool


class AskedModel(msgspec.Struct, frozen=True):
    """The model that a request asks: as it names it, as it is known, and as who writes summaries."""

    asked: str
    known: str | None
    summarizer: Summarizer


class AgentSession:
    """A session and the history by which its client knows it; use it while holding `lock`."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.lock = asyncio.Lock()
        self.is_read = False  # what is stored of it, for the first time
        self.model: AskedModel | None = None  # of the newest request
        self.applies_template = False  # it is not the vendor's own server that answers
        self.begun_by: object = None  # the exchange that stored its first message, if no other has used it
        self.untold: list[Receipt] = []  # folds that no response has told yet
        self._told: list[Told] = []
        # entries of the path, in order: how many messages were told by then
        self._places: dict[str, int] = {}
        self._leaf: str | None = None  # up to which the stored path is known
        self._user = ""
        self._folds: set[str] = set()  # boundaries that are untold, or were told
        for name in ("compacted", "pruned"):
            session.on(name, self._heard)

    def _heard(self, event: CompactionDone | PruneDone) -> None:
        """Keep the receipt of a fold: many are made behind a reply, when there is no request to tell."""
        self._fold(event.entry, event.receipt)

    def _fold(self, entry: str, receipt: Receipt) -> None:
        if entry not in self._folds:
            self._folds.add(entry)
            self.untold.append(receipt)

    async def catch_up(self) -> bool:
        """Read what is stored of the session and not known here; False where it is gone from the store."""
        store, name = self.session.store, self.session.id
        leaf = await store.leaf(name)
        if leaf == self._leaf:
            self.is_read = True
            return True
        ends = leaf is not None and self._leaf is not None
        newest = await store.tail(name, NEWEST, leaf=leaf) if ends else []
        place = next((n for n, entry in enumerate(newest) if entry.id == self._leaf), None)
        if place is not None:
            for entry in newest[place + 1 :]:
                self._read(entry)
        else:
            self._told, self._places, self.untold = [], {}, []
            if leaf is not None:
                async for entry in store.path(name, leaf):
                    self._read(entry)
        gone, self._leaf = leaf is None and self._leaf is not None, leaf
        self.is_read = True
        return not gone

    def _read(self, entry: Entry) -> None:
        """Take an entry: only what the client sent, or was sent; a reply has told what was folded before."""
        if isinstance(entry, Compacted | Pruned):
            self._fold(entry.id, entry.receipt)
        elif isinstance(entry, Said) and entry.message.native is not None:
            self._tell(entry.message.native.raw, entry.message, resent_key(entry.message), entry.id)
            if entry.message.role == "assistant":
                self.untold.clear()
        self._places[entry.id] = len(self._told)

    def _tell(self, raw: bytes, message: Message, key: str, entry: str) -> None:
        self._told.append(Told(raw, key, entry, message.role == "assistant"))
        self._places[entry] = len(self._told)

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it was stored when it was last read."""
        return self._leaf is None

    @property
    def tip(self) -> str | None:
        """The entry of the newest message."""
        return self._told[-1].entry if self._told else None

    def common(self, asked: AgentRequest) -> int:
        """Return how many messages from the first on are the same; they are in the client's new bytes now."""
        found = 0
        behind = self._places.get(asked.at or "", 0)
        for told, unit in zip(self._told[behind:] if behind else self._told, asked.units, strict=False):
            if told.raw != unit.raw:
                after = asked.units[found - 1] if found else None
                if told.key != resent_key(asked.decode([unit], after)[0]):
                    break
                told.raw = unit.raw
            found += 1
        return found

    def has_reply(self, count: int) -> bool:
        """Return whether one of the first `count` messages is the model's."""
        return any(told.reply for told in self._told[:count])

    async def follow(self, asked: AgentRequest) -> bool:
        """Store what is new in a request; what the client edited becomes a branch.

        False where nothing is in common with what is stored: that is another conversation.
        """
        await self.catch_up()
        if self.session.leaf != self._leaf:
            await self.session.follow()
        common = self.common(asked)
        here = common + self._places.get(asked.at or "", 0)
        if here < len(self._told):
            back = self._told[here - 1].entry if common else asked.at
            if back is None:
                return False
            await self._go_back(back)
        new, after = asked.units[common:], asked.units[common - 1] if common else None
        await self._say(new, await aside(_size(new), lambda: asked.decode(new, after)))
        return True

    async def _go_back(self, entry: str) -> None:
        """Go on from an entry of the path: what stood behind it is another branch."""
        self._leaf = await self.session.branch(entry)
        for one in reversed(list(self._places)):
            if one == entry:
                break
            del self._places[one]
        del self._told[self._places[entry] :]

    async def resume(self, asked: AgentRequest) -> AgentRequest:
        """Return a request that goes on from a compaction item of this session, as the session has it."""
        assert asked.resumed is not None
        at = asked.resumed.at
        await self.catch_up()
        if at not in self._places:  # of a branch that was left
            await self.session.follow()
            await self.session.branch(at)
            await self.catch_up()
        return asked.resuming({told.key for told in self._told[: self._places[at]]})

    async def _say(self, units: Sequence[Unit], messages: Sequence[Message]) -> None:
        if not units:
            return
        entries = await self.session.append(*messages)
        keys = await aside(_size(units), lambda: [resent_key(one) for one in messages])
        for unit, message, key, entry in zip(units, messages, keys, entries, strict=True):
            self._tell(unit.raw, message, key, entry)
        self._leaf = entries[-1]

    async def answered(self, message: Message, after: str | None) -> None:
        """Store a model's reply, unless the client has gone on elsewhere since."""
        if self.tip != after or not message.parts:
            return
        raw = message.native.raw if message.native is not None else b""
        await self._say([Unit(raw, 0)], [message])

    async def belongs_to(self, user: str) -> None:
        """Note whose the session is, where that is new."""
        if not user or user == self._user:
            return
        info = await self.session.store.info(self.session.id)
        if info is None or info.user != user:
            await self.session.note(SERVED, user=user)
            await self.catch_up()
        self._user = user

    def folded(self, asked: AgentRequest, view: ContextMessages) -> list[Any] | None:
        """Return the messages to send instead of the client's own; None where those are the whole view."""
        changed = view.token or asked.at is not None or self.session.in_turn
        return self._rendered(asked) if changed else None

    def _rendered(self, asked: AgentRequest) -> list[Any]:
        """Return the view as it stands, in the client's bytes."""
        items = self.session.view()
        newest = {told.entry: told.raw for told in self._told}
        dialect = asked.endpoint.dialect
        fresh = [_fresh(item, newest, dialect) for item in items]
        messages = get(dialect).render(native_items(fresh), whole=True).messages
        return in_turn(messages, dialect) if self.applies_template or self.session.in_turn else messages

    async def compact(self, asked: AgentRequest) -> dict[str, Any]:
        """Fold because the client asks for it, and return the compaction item that stands for the view.

        How much the client's window holds is not known here: it asks because the history is too large for it,
        so two fifths of that are wanted, and no more than the policy leaves of a large window. Where nothing
        can be folded the item stands for the view as it is.
        """
        overhead = self.session.setup.overhead.system + self.session.setup.overhead.tools
        said = self.session.view_tokens - overhead
        for target in (overhead + min(said * 2 // 5, ITEM_TOKENS), None):
            try:
                await self.session.compact(target=target)
                break
            except (FloorExceeded, CompactionFailed, CallsOpen) as error:
                log.info("session %s: nothing was folded for its client: %s", self.session.id, error)
        await self.catch_up()
        return sealed(self.session.id, self.session.leaf or "", self._rendered(asked))

    def take_untold(self) -> list[Receipt]:
        """Return the folds that no response has told yet: the next one does."""
        found, self.untold = self.untold, []
        return found

    async def context(self) -> ContextMessages:
        """Fold what must be folded before the next request."""
        view = await self.session.context(shared=True)  # the bytes that go out are the client's
        await self.catch_up()  # another worker may have made what is folded
        return view


def _size(units: Sequence[Unit]) -> int:
    return sum(EACH + len(unit.raw) for unit in units)


def _fresh(item: Item, newest: dict[str, bytes], dialect: str) -> Item:
    """Return an item in the bytes in which its client sent it last: cache marks move."""
    if isinstance(item, AddedItem) or item.entry.id not in newest:
        return item
    message = item.entry.message
    native = Native(dialect, newest[item.entry.id])
    if message.native is not None and message.native.mended:
        return item
    entry = msgspec.structs.replace(item.entry, message=msgspec.structs.replace(message, native=native))
    return msgspec.structs.replace(item, entry=entry)
