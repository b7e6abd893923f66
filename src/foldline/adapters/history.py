"""A framework's own history, kept in step with a session: before each call of a model it is given the view.

The framework keeps its whole history, and Foldline a log beside it. What the view keeps as received comes
back as the very objects that the framework gave; the checkpoint, and what a fold shortened, are new ones.
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
from foldline.core.view import Item, MessageItem, native_items
from foldline.dialects import get
from foldline.errors import InputError, LeafMoved
from foldline.session.session import Session
from foldline.session.tools import RECALL_TOOLS, arguments_of, refused

T = TypeVar("T")
R = TypeVar("R")

TRIES: Final = 4  # times that a history is compared with a session to which others say something meanwhile
# the tools that look back, without another session to look in: that may be somebody else's
OWN_TOOLS: Final = tuple(
    msgspec.structs.replace(
        tool, parameters={name: one for name, one in tool.parameters.items() if name != "session"}
    )
    for tool in RECALL_TOOLS
)


class RequestSetup(msgspec.Struct, frozen=True):
    """What a framework sends beside the messages, the model that it sends them to, and that one's window."""

    system: Any = None
    tools: Any = None
    served: str | None = None
    window: int | None = None


class KnownMessage(msgspec.Struct):
    """A message of the framework's that is stored: the object as given last, and which of the stored it is.

    One that says nothing by itself, or is one message with those before it, has none of its own.
    """

    message: Any
    start: int
    end: int

    @property
    def is_part(self) -> bool:
        """Whether it says nothing by itself."""
        return self.start == self.end


class StoredMessage(msgspec.Struct):
    """A message on the session's path: its entry, the key by which it is recognised, and if it is a reply."""

    entry: str
    key: str
    reply: bool


class FrameworkHistory(Generic[T]):
    """One conversation: a session, and the framework's messages by which it is known.

    What is known here of the session is a cache: each use reads what others have stored since. With `record`
    the session is all that the framework keeps: what a model is sent never changes it.
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
        self._opener = opener  # opens the session with what its first call sends beside the messages
        self._settled = False
        self._form = form
        self._record = record
        self._lock = asyncio.Lock()
        self._known: list[KnownMessage] = []
        self._stored: list[StoredMessage] | None = None
        self._key: str = ""  # the session's, of what is stored
        self._saved = 0  # how many of the stored ones the framework has asked to keep, or was given
        self._early: list[str] = []  # keys of those that it has not asked to keep yet, before others' came
        self._refused: tuple[int, list[T]] = (0, [])  # how a history that is another one began, and differed
        self._tools: dict[str, str] = {}  # the name of the tool of each call

    async def view(
        self, messages: Sequence[T], setup: Callable[[], RequestSetup], *, sure: bool
    ) -> list[T] | None:
        """Store what is new, fold where the policy says so, and return the messages to send.

        None, and nothing is stored, where it is not `sure` that the history is this one's, and it is not.
        """
        async with self._lock:
            if not await self._follow(messages, setup, sure=sure):
                return None
            await self.session.context(shared=True)
            return self._shown()

    async def compacted(
        self, messages: Sequence[T], setup: Callable[[], RequestSetup], *, harder: bool = False
    ) -> list[T]:
        """Store what is new, fold now (`harder`: to half of what is shown), and return what to send."""
        async with self._lock:
            await self._follow(messages, setup)
            await self.session.compact(target=self.session.view_tokens // 2 if harder else None)
            return self._shown()

    async def overflowed(
        self, messages: Sequence[T], error: Exception, setup: Callable[[], RequestSetup], *, sure: bool
    ) -> list[T] | None:
        """Return what to send after a request that did not fit; raises `error` where it is another one.

        None as in `view`. A framework cannot be told to ask for a shorter reply: then the view is folded.
        """
        async with self._lock:
            if not await self._follow(messages, setup, sure=sure):
                return None
            before = self.session.max_tokens
            await self.session.overflowed(error)
            if self.session.max_tokens not in (None, before):
                await self.session.overflowed(error)
            return self._shown()

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run one of `OWN_TOOLS`; return its result."""
        tool = next((one for one in OWN_TOOLS if one.name == name), None)
        if tool is None:
            raise InputError(f"unknown tool {name!r}; there are {', '.join(one.name for one in OWN_TOOLS)}")
        try:
            return await self.session.call_tool(name, arguments_of(tool, arguments))
        except InputError as error:
            return refused(tool, error)

    # ---- for a framework that keeps no history of its own

    async def whole(self) -> list[T]:
        """Return every message that was said."""
        async with self._lock:
            stored = await self._path()
            self._early += [one.key for one in stored[self._saved :]]
            self._saved = len(stored)
            return self._encoded(await self.session.history())

    async def add(self, messages: Sequence[T]) -> None:
        """Store messages, but those that a call of the model has stored already."""
        async with self._lock:
            read = [message for each in self._form.decode(messages) for message in each]

            async def keep() -> None:
                stored = await self._path()
                if self._matches(stored, self._saved, read):
                    self._saved += len(read)
                    return
                early = 0
                for key, one in zip(self._early, read, strict=False):
                    if key != _key(one):
                        break
                    early += 1
                await self._go_back(stored, self._saved)
                await self._append(stored, read[early:])
                self._saved, self._early = len(stored), []

            await self._on_the_newest(keep)

    async def pop(self) -> T | None:
        """Take the newest message back and return it; None where nothing was said."""
        async with self._lock:
            stored = await self._path()
            entry = await self.session.store.entry(self.session.id, stored[-1].entry) if stored else None
            if not isinstance(entry, Said):
                return None
            messages = self._encoded(get(self._form.dialect).render([(entry.message, ())]).messages)
            await self._go_back(stored, len(stored) - 1)
            await self._append(stored, [one for each in self._form.decode(messages[:-1]) for one in each])
            self._saved = len(stored)
            return messages[-1]

    async def clear(self) -> None:
        """Begin anew."""
        async with self._lock:
            await self._go_back(await self._path(), 0)

    # ---- what is new

    async def _follow(
        self, messages: Sequence[T], setup: Callable[[], RequestSetup], *, sure: bool = True
    ) -> bool:
        """Store the messages that are new; where the framework changed older ones, they become a branch.

        False, and nothing is stored, where it is not `sure` that the history is this one's, and it is not.
        """

        async def store() -> bool:
            stored = await self._path()
            if not sure and self._was_refused(messages, stored):
                return False
            known, new = self._recognised(messages), list[tuple[T, list[Message]]]()
            if len(known) < len(messages):
                known, new = self._compared(messages, known, stored)
            here = known[-1].end if known else 0
            if not (sure or self._goes_on(stored, here)):
                # the first message that is another one; with parts of it, which are read together
                self._refused = here, list(messages[: len(known) + 2])
                return False
            await self._settle(setup)
            self._known = known
            await self._go_back(stored, here)
            await self._append(stored, [message for _, each in new for message in each])
            here = len(stored) - sum(len(each) for _, each in new)
            for message, each in new:
                self._known.append(KnownMessage(message, here, here + len(each)))
                here += len(each)
            return True

        return await self._on_the_newest(store)

    async def _settle(self, setup: Callable[[], RequestSetup]) -> None:
        """At the first call, open the session with what that sends beside the messages."""
        if not self._settled:
            bare, self.session = self.session, await self._opener(setup())
            self._settled = True
            await bare.close()
            if self.session.said_key != self._key:
                told = f"something was said in session {self.session.id} while it was opened"
                raise LeafMoved(told, leaf=self.session.leaf)

    async def _on_the_newest(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Do some work on the path as it is: once more where somebody else has said something meanwhile."""
        for _ in range(TRIES - 1):
            try:
                return await work()
            except LeafMoved:
                continue
        return await work()

    def _was_refused(self, messages: Sequence[T], stored: Sequence[StoredMessage]) -> bool:
        """Whether a history begins as one that was refused, and would be again: it need not be read."""
        here, begun = self._refused
        return (
            1 < len(begun) <= len(messages)
            and not self._goes_on(stored, here)
            and all(map(_same, begun, messages))
        )

    def _goes_on(self, stored: Sequence[StoredMessage], here: int) -> bool:
        """Whether a history that begins with the first `here` stored messages goes on with this session.

        It does where that is all that is stored, or has a reply in it; a record has to be in it wholly.
        """
        if self._record:
            return here >= self._saved
        return here == len(stored) or any(one.reply for one in stored[:here])

    async def _path(self) -> list[StoredMessage]:
        """Return what is stored, all of it the framework's; it is read again where others said something."""
        await self.session.follow()
        if self._stored is None or self.session.said_key != self._key:
            key, path = self.session.said_key, self.session.store.path(self.session.id)
            found = [
                _stored(entry.id, entry.message)
                async for entry in path
                if isinstance(entry, Said) and (self._record or entry.message.native is not None)
            ]
            old, self._stored, self._key = self._stored, found, key
            same = _common(old or (), self._stored)
            self._known = [known for known in self._known if known.end <= same]
            self._early = [one.key for one in (old or ())[self._saved : same]] if self._record else []
            self._saved = len(self._stored)
        return self._stored

    async def _append(self, stored: list[StoredMessage], messages: Sequence[Message]) -> None:
        entries = await self.session.append(*messages) if messages else []
        if self._record and entries:
            stored += await self._put_before(entries[0], stored[-1].entry if stored else None)
        stored += [_stored(entry, one) for entry, one in zip(entries, messages, strict=True)]
        self._key = self.session.said_key
        self._tools.update({call.id: call.name for one in messages for call in one.calls})

    async def _put_before(self, first: str, last: str | None) -> list[StoredMessage]:
        """Return what the session put before a message by itself: results of calls that were cut short."""
        store, name, found = self.session.store, self.session.id, list[StoredMessage]()
        entry = await store.entry(name, first)
        while entry is not None and entry.parent is not None and entry.parent != last:
            entry = await store.entry(name, entry.parent)
            if isinstance(entry, Said):
                found.insert(0, _stored(entry.id, entry.message))
        return found

    def _recognised(self, messages: Sequence[T]) -> list[KnownMessage]:
        """Return what is known of the messages, from the first on, that are those of the last call."""
        count = 0
        for known, message in zip(self._known, messages, strict=False):
            if not _same(known.message, message):
                break
            known.message = message
            count += 1
        # what is one message is read together
        while count and self._form.leads and self._known[count - 1].is_part:
            count -= 1
        while 0 < count < len(self._known) and not self._form.leads and self._known[count].is_part:
            count -= 1
        return self._known[:count]

    def _compared(
        self, messages: Sequence[T], known: list[KnownMessage], stored: Sequence[StoredMessage]
    ) -> tuple[list[KnownMessage], list[tuple[T, list[Message]]]]:
        """Return what is known with what an earlier process stored, and each new message as it is read."""
        new = list(messages[len(known) :])
        read = self._form.decode(new)
        here = known[-1].end if known else 0
        old = 0
        for message, each in zip(new, read, strict=True):
            if not self._matches(stored, here, each):
                break
            known.append(KnownMessage(message, here, here + len(each)))
            self._tools.update({call.id: call.name for one in each for call in one.calls})
            here += len(each)
            old += 1
        return known, list(zip(new[old:], read[old:], strict=True))

    @staticmethod
    def _matches(stored: Sequence[StoredMessage], start: int, read: Sequence[Message]) -> bool:
        keys = [one.key for one in stored[start : start + len(read)]]
        return keys == [_key(one) for one in read]

    async def _go_back(self, stored: list[StoredMessage], count: int) -> None:
        """Leave what stands behind the first `count` stored messages as a branch."""
        if count < len(stored):
            await self.session.branch(stored[count - 1].entry if count else None)
            del stored[count:]
            self._key = self.session.said_key
        self._known = [known for known in self._known if known.end <= count]
        if count < self._saved:
            self._saved, self._early = count, []

    # ---- what is shown

    def _shown(self) -> list[T]:
        """Return the view: the framework's own objects for what it keeps whole, new ones for the rest."""
        places = {one.entry: place for place, one in enumerate(self._stored or ())}
        groups = self._groups()
        items = self.session.view()
        kept = [_place(item, places) for item in items]
        shown: list[T] = []
        made: list[Item] = []  # items in a row for which the framework has no message
        at = 0
        while at < len(items):
            end, messages = groups.get(kept[at], (0, []))
            count = end - kept[at]
            if messages and kept[at : at + count] == list(range(kept[at], end)):
                shown += [*self._made(made), *messages]
                made = []
                at += count
            else:
                made.append(items[at])
                at += 1
        return shown + self._made(made)

    def _groups(self) -> dict[int, tuple[int, list[T]]]:
        """Return the framework's messages by the first stored one that they are: up to which, and they."""
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

    def _made(self, items: Sequence[Item]) -> list[T]:
        if not items:
            return []
        return self._encoded(get(self._form.dialect).render(native_items(items)).messages)

    def _encoded(self, payloads: Sequence[dict[str, Any]]) -> list[T]:
        for payload in payloads:
            if payload.get("role") == "tool":
                payload["name"] = self._tools.get(payload["tool_call_id"], "tool")
        return self._form.encode(payloads)


def _stored(entry: str, message: Message) -> StoredMessage:
    return StoredMessage(entry, _key(message), message.role == "assistant")


def _key(message: Message) -> str:
    """Return a key by which a message is recognised; calls also by their arguments, since ids come again."""
    return digest(encode(normal_form(message)[2])) if message.calls else resent_key(message)


def _same(one: Any, two: Any) -> bool:
    """Whether a framework's messages are equal; those that cannot be compared are read again."""
    try:
        return one is two or bool(one == two)
    except Exception:
        return False


def _common(old: Sequence[StoredMessage], new: Sequence[StoredMessage]) -> int:
    """Count the messages, from the first on, that are the same in both."""
    pairs = zip(old, new, strict=False)
    shorter = min(len(old), len(new))
    return next((at for at, (one, two) in enumerate(pairs) if one.entry != two.entry), shorter)


def _place(item: Item, places: Mapping[str, int]) -> int:
    """Return which stored message an item is as received; -1 for none."""
    return places.get(item.entry.id, -1) if isinstance(item, MessageItem) and not item.edits else -1
