"""Keep a framework's history in sync with a session, and replace it by the view before each call of a model.

The framework keeps its whole history, and Foldline a log. Messages that the view keeps unchanged are returned
as the framework's own objects; the checkpoint and shortened messages are new objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from foldline.adapters.forms import FrameworkForm
from foldline.core.log.codec import encode
from foldline.core.log.entries import Said
from foldline.core.log.log import digest, normal_form, resent_key
from foldline.core.log.messages import Message
from foldline.core.view_items import Item, MessageItem, native_items
from foldline.dialects import get
from foldline.errors import InputError, LeafMoved
from foldline.session.definitions import arguments_of
from foldline.session.session import Session
from foldline.session.tools import RECALL_TOOLS, refused

T = TypeVar("T")
R = TypeVar("R")

TRIES: Final = 4  # attempts to compare a history with a session to which others append meanwhile
# the recall tools without the argument for another session, which may be another user's
OWN_TOOLS: Final = tuple(
    msgspec.structs.replace(
        tool, parameters={name: schema for name, schema in tool.parameters.items() if name != "session"}
    )
    for tool in RECALL_TOOLS
)


class RequestSetup(msgspec.Struct, frozen=True):
    """The system prompt, the tools, the model and its window of a framework's request."""

    system: Any = None
    tools: Any = None
    served: str | None = None
    window: int | None = None


class KnownMessage(msgspec.Struct):
    """A stored message of the framework: its last object, and the range of stored messages that it became.

    The range is empty for a message without content, or one that is part of another.
    """

    message: Any
    start: int
    end: int

    @property
    def is_part(self) -> bool:
        """Whether the message is part of another."""
        return self.start == self.end


class StoredMessage(msgspec.Struct):
    """A message on the session's path: its entry, its key for comparisons, and whether it is a reply."""

    entry: str
    key: str
    reply: bool


class FrameworkHistory(Generic[T]):
    """One conversation: a session, and the framework's messages in it.

    The state here is a cache of the session: each use reads what others have stored since. With `record` the
    framework keeps no other messages, and a call of a model never changes the session.
    """

    def __init__(
        self,
        session: Session,
        form: FrameworkForm[T],
        opener: Callable[[RequestSetup], Coroutine[Any, Any, Session]],
        *,
        record: bool = False,
    ) -> None:
        self.session = session
        self._opener = opener  # opens the session with the setup of its first call
        self._settled = False
        self._form = form
        self._record = record
        self._lock = asyncio.Lock()
        self._known: list[KnownMessage] = []
        self._stored: list[StoredMessage] | None = None
        self._key: str = ""  # the session's key of the stored messages
        self._saved = 0  # stored messages that the framework has saved or read
        self._early: list[str] = []  # keys of messages that a call stored before the framework saved them
        self._refused: tuple[int, list[T]] = (0, [])  # common messages and start of a refused history
        self._tools: dict[str, str] = {}  # the name of the tool of each call

    async def view(
        self, messages: Sequence[T], setup: Callable[[], RequestSetup], *, sure: bool
    ) -> list[T] | None:
        """Store what is new, fold where the policy says so, and return the messages to send.

        Returns None and stores nothing if the history is not this conversation's and `sure` is False.
        """
        async with self._lock:
            if not await self._follow(messages, setup, sure=sure):
                return None
            await self.session.context(shared=True)
            return self._view()

    async def compacted(
        self, messages: Sequence[T], setup: Callable[[], RequestSetup], *, harder: bool = False
    ) -> list[T]:
        """Store what is new, fold now (`harder`: to half of the view), and return what to send."""
        async with self._lock:
            await self._follow(messages, setup)
            await self.session.compact(target=self.session.view_tokens // 2 if harder else None)
            return self._view()

    async def overflowed(
        self, messages: Sequence[T], error: Exception, setup: Callable[[], RequestSetup], *, sure: bool
    ) -> list[T] | None:
        """Return what to send after a request that did not fit; raises `error` if it is not an overflow.

        None as in `view`. A framework cannot request a shorter reply, so the view is folded in any case.
        """
        async with self._lock:
            if not await self._follow(messages, setup, sure=sure):
                return None
            before = self.session.max_tokens
            await self.session.overflowed(error)
            if self.session.max_tokens not in (None, before):
                await self.session.overflowed(error)
            return self._view()

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run one of `OWN_TOOLS`; return its result."""
        tool = next((tool for tool in OWN_TOOLS if tool.name == name), None)
        if tool is None:
            raise InputError(f"unknown tool {name!r}; there are {', '.join(tool.name for tool in OWN_TOOLS)}")
        try:
            return await self.session.call_tool(name, arguments_of(tool, arguments))
        except InputError as error:
            return refused(tool, error)

    # ---- for a framework that keeps no history

    async def whole(self) -> list[T]:
        """Return every message."""
        async with self._lock:
            stored = await self._path()
            self._early += [message.key for message in stored[self._saved :]]
            self._saved = len(stored)
            return self._encode(await self.session.history())

    async def add(self, messages: Sequence[T]) -> None:
        """Store messages, except those that a call of the model has stored already."""
        async with self._lock:
            decoded = [message for group in self._form.decode(messages) for message in group]

            async def store() -> None:
                stored = await self._path()
                if self._matches(stored, self._saved, decoded):
                    self._saved += len(decoded)
                    return
                early = 0
                for key, message in zip(self._early, decoded, strict=False):
                    if key != _key(message):
                        break
                    early += 1
                await self._go_back(stored, self._saved)
                await self._append(stored, decoded[early:])
                self._saved, self._early = len(stored), []

            await self._retry_moved(store)

    async def pop(self) -> T | None:
        """Remove and return the newest message; None if there is none."""
        async with self._lock:
            stored = await self._path()
            entry = await self.session.store.entry(self.session.id, stored[-1].entry) if stored else None
            if not isinstance(entry, Said):
                return None
            messages = self._encode(get(self._form.dialect).render([(entry.message, ())]).messages)
            await self._go_back(stored, len(stored) - 1)
            decoded = self._form.decode(messages[:-1])
            await self._append(stored, [message for group in decoded for message in group])
            self._saved = len(stored)
            return messages[-1]

    async def clear(self) -> None:
        """Start anew; the messages stay as a branch."""
        async with self._lock:
            await self._go_back(await self._path(), 0)

    # ---- what is new

    async def _follow(
        self, messages: Sequence[T], setup: Callable[[], RequestSetup], *, sure: bool = True
    ) -> bool:
        """Store new messages; older ones that the framework changed become a branch.

        Returns False and stores nothing if the history is not this conversation's and `sure` is False.
        """

        async def store() -> bool:
            stored = await self._path()
            if not sure and self._was_refused(messages, stored):
                return False
            known, new = self._recognise(messages), list[tuple[T, list[Message]]]()
            if len(known) < len(messages):
                known, new = self._compare(messages, known, stored)
            end = known[-1].end if known else 0
            if not (sure or self._continues(stored, end)):
                # up to the first message that differs, and one more, which may be part of it
                self._refused = end, list(messages[: len(known) + 2])
                return False
            await self._settle(setup)
            self._known = known
            await self._go_back(stored, end)
            await self._append(stored, [message for _, group in new for message in group])
            end = len(stored) - sum(len(group) for _, group in new)
            for message, group in new:
                self._known.append(KnownMessage(message, end, end + len(group)))
                end += len(group)
            return True

        return await self._retry_moved(store)

    async def _settle(self, setup: Callable[[], RequestSetup]) -> None:
        """At the first call, reopen the session with its setup."""
        if not self._settled:
            bare, self.session = self.session, await self._opener(setup())
            self._settled = True
            await bare.close()
            if self.session.said_key != self._key:
                text = f"messages were appended to session {self.session.id} while it was opened"
                raise LeafMoved(text, leaf=self.session.leaf)

    async def _retry_moved(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Do some work on the current path; again if another writer has appended meanwhile."""
        for _ in range(TRIES - 1):
            try:
                return await work()
            except LeafMoved:
                continue
        return await work()

    def _was_refused(self, messages: Sequence[T], stored: Sequence[StoredMessage]) -> bool:
        """Whether a history starts like the refused one: it would be refused again without decoding."""
        end, start = self._refused
        return (
            1 < len(start) <= len(messages)
            and not self._continues(stored, end)
            and all(map(_same, start, messages))
        )

    def _continues(self, stored: Sequence[StoredMessage], end: int) -> bool:
        """Whether a history that starts with the first `end` stored messages continues this session.

        It does if these are all, or include a reply; with `record`, if they include all saved messages.
        """
        if self._record:
            return end >= self._saved
        return end == len(stored) or any(message.reply for message in stored[:end])

    async def _path(self) -> list[StoredMessage]:
        """Return the stored messages of the framework; read again if others have appended."""
        await self.session.follow()
        if self._stored is None or self.session.said_key != self._key:
            key, path = self.session.said_key, self.session.store.path(self.session.id)
            new = [
                _stored(entry.id, entry.message)
                async for entry in path
                if isinstance(entry, Said) and (self._record or entry.message.native is not None)
            ]
            old, self._stored, self._key = self._stored or [], new, key
            same = _common(old, new)
            self._known = [known for known in self._known if known.end <= same]
            self._early = [message.key for message in old[self._saved : same]] if self._record else []
            self._saved = len(self._stored)
        return self._stored

    async def _append(self, stored: list[StoredMessage], messages: Sequence[Message]) -> None:
        entries = await self.session.append(*messages) if messages else []
        if self._record and entries:
            stored += await self._inserted(entries[0], stored[-1].entry if stored else None)
        stored += [_stored(entry, message) for entry, message in zip(entries, messages, strict=True)]
        self._key = self.session.said_key
        self._note_tools(messages)

    def _note_tools(self, messages: Sequence[Message]) -> None:
        self._tools.update({call.id: call.name for message in messages for call in message.calls})

    async def _inserted(self, first: str, last: str | None) -> list[StoredMessage]:
        """Return the messages that the session inserted before an entry: results of unfinished calls."""
        store, name, inserted = self.session.store, self.session.id, list[StoredMessage]()
        entry = await store.entry(name, first)
        while entry is not None and entry.parent is not None and entry.parent != last:
            entry = await store.entry(name, entry.parent)
            if isinstance(entry, Said):
                inserted.insert(0, _stored(entry.id, entry.message))
        return inserted

    def _recognise(self, messages: Sequence[T]) -> list[KnownMessage]:
        """Return the known messages with which a history starts."""
        count = 0
        for known, message in zip(self._known, messages, strict=False):
            if not _same(known.message, message):
                break
            known.message = message
            count += 1
        # the parts of one message are decoded together
        while count and self._form.leads and self._known[count - 1].is_part:
            count -= 1
        while 0 < count < len(self._known) and not self._form.leads and self._known[count].is_part:
            count -= 1
        return self._known[:count]

    def _compare(
        self, messages: Sequence[T], known: list[KnownMessage], stored: Sequence[StoredMessage]
    ) -> tuple[list[KnownMessage], list[tuple[T, list[Message]]]]:
        """Return the known messages, also those that an earlier process stored, and the new ones decoded."""
        rest = list(messages[len(known) :])
        decoded = self._form.decode(rest)
        end = known[-1].end if known else 0
        old = 0
        for message, group in zip(rest, decoded, strict=True):
            if not self._matches(stored, end, group):
                break
            known.append(KnownMessage(message, end, end + len(group)))
            self._note_tools(group)
            end += len(group)
            old += 1
        return known, list(zip(rest[old:], decoded[old:], strict=True))

    @staticmethod
    def _matches(stored: Sequence[StoredMessage], start: int, messages: Sequence[Message]) -> bool:
        keys = [message.key for message in stored[start : start + len(messages)]]
        return keys == [_key(message) for message in messages]

    async def _go_back(self, stored: list[StoredMessage], count: int) -> None:
        """Turn the stored messages after the first `count` into a branch."""
        if count < len(stored):
            await self.session.branch(stored[count - 1].entry if count else None)
            del stored[count:]
            self._key = self.session.said_key
        self._known = [known for known in self._known if known.end <= count]
        if count < self._saved:
            self._saved, self._early = count, []

    # ---- the view

    def _view(self) -> list[T]:
        """Return the view: the framework's own objects for unchanged messages, new ones for the rest."""
        places = {message.entry: place for place, message in enumerate(self._stored or ())}
        groups = self._groups()
        items = self.session.view()
        kept = [_place(item, places) for item in items]
        view: list[T] = []
        changed: list[Item] = []  # consecutive items for which the framework has no message
        at = 0
        while at < len(items):
            end, messages = groups.get(kept[at], (0, []))
            count = end - kept[at]
            if messages and kept[at : at + count] == list(range(kept[at], end)):
                view += [*self._render(changed), *messages]
                changed = []
                at += count
            else:
                changed.append(items[at])
                at += 1
        return view + self._render(changed)

    def _groups(self) -> dict[int, tuple[int, list[T]]]:
        """Map the index of a stored message to the end of its range and the framework's messages of it."""
        groups: dict[int, tuple[int, list[T]]] = {}
        last: list[T] = []
        leading: list[T] = []  # parts of the next one
        for known in self._known:
            if known.is_part and self._form.leads:
                leading.append(known.message)
            elif known.is_part:
                last.append(known.message)
            else:
                last, leading = [*leading, known.message], []
                groups[known.start] = known.end, last
        return groups

    def _render(self, items: Sequence[Item]) -> list[T]:
        if not items:
            return []
        return self._encode(get(self._form.dialect).render(native_items(items)).messages)

    def _encode(self, payloads: Sequence[dict[str, Any]]) -> list[T]:
        for payload in payloads:
            if payload.get("role") == "tool":
                payload["name"] = self._tools.get(payload["tool_call_id"], "tool")
        return self._form.encode(payloads)


def _stored(entry: str, message: Message) -> StoredMessage:
    return StoredMessage(entry, _key(message), message.role == "assistant")


def _key(message: Message) -> str:
    """Return a key for comparing messages; it includes arguments of calls, since ids are reused."""
    return digest(encode(normal_form(message)[2])) if message.calls else resent_key(message)


def _same(left: Any, right: Any) -> bool:
    """Whether a framework's messages are equal; False if they cannot be compared."""
    try:
        return left is right or bool(left == right)
    except Exception:
        return False


def _common(old: Sequence[StoredMessage], new: Sequence[StoredMessage]) -> int:
    """Count the common messages at the start of both."""
    pairs = zip(old, new, strict=False)
    shorter = min(len(old), len(new))
    return next((at for at, (before, now) in enumerate(pairs) if before.entry != now.entry), shorter)


def _place(item: Item, places: Mapping[str, int]) -> int:
    """Return the index of the stored message that an item shows unchanged; -1 for none."""
    return places.get(item.entry.id, -1) if isinstance(item, MessageItem) and not item.edits else -1
