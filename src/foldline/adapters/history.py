"""A framework's own history, kept in step with a session: before each call of a model it is given the view.

The framework keeps its whole history, and Foldline a log beside it. What the view keeps as received comes
back as the very objects that the framework gave; the checkpoint, and what a fold shortened, are new ones. If
anything goes wrong here, the framework's own messages go to the model, and a warning says why.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypedDict, TypeVar, Unpack

import msgspec

from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Said
from foldline.core.log.log import resent_key
from foldline.core.log.messages import Message
from foldline.core.measure.window import Window
from foldline.core.view import Item, MessageItem, native_items
from foldline.dialects import OPENAI_CHAT, decode_placed, get
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.session.sync import Portal
from foldline.session.tools import definitions
from foldline.stores import Store, find_store
from foldline.transcripts.forms.lists import decode_list

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("foldline")

OPEN: Final = 64  # sessions that one adapter holds open; the one that was used last is closed last


class FrameworkForm(Protocol[T]):
    """How one framework writes its messages."""

    dialect: str

    def decode(self, messages: Sequence[T]) -> list[list[Message]]:
        """Read messages; each may hold several of ours, or none."""
        ...

    def encode(self, payloads: Sequence[dict[str, Any]]) -> list[T]:
        """Write native messages of `dialect` as the framework's own; a Chat result has its tool's `name`."""
        ...


def read_list(messages: Sequence[Any], dialect: str | None = None) -> list[list[Message]]:
    """Read messages of a form that `foldline.compact` reads: for each, what it holds."""
    read: list[list[Message]] = [[] for _ in messages]
    for place, message in decode_list(messages, dialect).placed:
        read[place].append(message)
    return read


def read_chat(payloads: Sequence[Sequence[dict[str, Any]]]) -> list[list[Message]]:
    """Read messages that were written as some Chat Completions messages each."""
    read: list[list[Message]] = [[] for _ in payloads]
    owners = [place for place, each in enumerate(payloads) for _ in each]
    for place, message in decode_placed([one for each in payloads for one in each], OPENAI_CHAT):
        read[owners[place]].append(message)
    return read


class AdapterOptions(TypedDict, total=False):
    """Options of `foldline.open` that every adapter takes."""

    model: str | None
    policy: str | Policy | None
    window: int | Window | None


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


class StoredMessage(msgspec.Struct):
    """A message on the session's path: its entry, and the key by which it is recognised."""

    entry: str
    key: str


class FrameworkHistory(Generic[T]):
    """One conversation: a session, and the framework's messages by which it is known."""

    def __init__(self, session: Session, form: FrameworkForm[T]) -> None:
        self.session = session
        self._form = form
        self._lock = asyncio.Lock()
        self._known: list[KnownMessage] = []
        self._stored: list[StoredMessage] | None = None
        self._saved = 0  # how many of the stored ones the framework has asked to keep, or was given
        self._tools: dict[str, str] = {}  # the name of the tool of each call

    async def view(self, messages: Sequence[T]) -> list[T]:
        """Store what is new, fold where the policy says so, and return the messages to send."""
        async with self._lock:
            await self._follow(messages)
            await self.session.context(shared=True)
            return self._shown()

    async def compacted(self, messages: Sequence[T], *, harder: bool = False) -> list[T]:
        """Store what is new, fold now (`harder`: to half of what is shown), and return what to send."""
        async with self._lock:
            await self._follow(messages)
            await self.session.compact(target=self.session.view_tokens // 2 if harder else None)
            return self._shown()

    async def overflowed(self, messages: Sequence[T], error: Exception) -> list[T]:
        """Return what to send after a request that did not fit; raises `error` where it is another one."""
        async with self._lock:
            await self._follow(messages)
            await self.session.overflowed(error)
            return self._shown()

    # ---- for a framework that keeps no history of its own

    async def whole(self) -> list[T]:
        """Return every message that was said."""
        async with self._lock:
            self._saved = len(await self._path())
            return self._encoded(await self.session.history())

    async def add(self, messages: Sequence[T]) -> None:
        """Store messages, but those that a call of the model has stored already."""
        async with self._lock:
            stored = await self._path()
            read = [message for each in self._form.decode(messages) for message in each]
            if not self._matches(stored, self._saved, read):
                await self._go_back(stored, self._saved)
                await self._append(stored, read)
            self._saved += len(read)

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

    async def _follow(self, messages: Sequence[T]) -> None:
        """Store the messages that are new; where the framework changed older ones, they become a branch."""
        stored = await self._path()
        common = self._common(messages)
        here = self._known[-1].end if self._known else 0
        new = list(messages[common:])
        read = self._form.decode(new)
        while new and self._matches(stored, here, read[0]):  # an earlier process stored it
            here = self._know(new.pop(0), here, read.pop(0))
        await self._go_back(stored, here)
        await self._append(stored, [message for each in read for message in each])
        for message, each in zip(new, read, strict=True):
            here = self._know(message, here, each)

    async def _path(self) -> list[StoredMessage]:
        """Return what is stored; all of it was the framework's."""
        if self._stored is None:
            path = self.session.store.path(self.session.id)
            self._stored = [
                StoredMessage(entry.id, resent_key(entry.message))
                async for entry in path
                if isinstance(entry, Said) and entry.message.native is not None
            ]
            self._saved = len(self._stored)
        return self._stored

    async def _append(self, stored: list[StoredMessage], messages: Sequence[Message]) -> None:
        entries = await self.session.append(*messages) if messages else []
        stored += [
            StoredMessage(entry, resent_key(one)) for entry, one in zip(entries, messages, strict=True)
        ]

    def _know(self, message: T, start: int, read: Sequence[Message]) -> int:
        self._known.append(KnownMessage(message, start, start + len(read)))
        self._tools.update({call.id: call.name for one in read for call in one.calls})
        return start + len(read)

    def _common(self, messages: Sequence[T]) -> int:
        """Count the messages, from the first on, that are those of the last call; forget the others."""
        count = 0
        for known, message in zip(self._known, messages, strict=False):
            if known.message is not message and known.message != message:
                break
            known.message = message
            count += 1
        while 0 < count < len(self._known) and self._known[count].end == self._known[count].start:
            count -= 1  # what is one message is read together
        del self._known[count:]
        return count

    @staticmethod
    def _matches(stored: Sequence[StoredMessage], start: int, read: Sequence[Message]) -> bool:
        keys = [one.key for one in stored[start : start + len(read)]]
        return keys == [resent_key(one) for one in read]

    async def _go_back(self, stored: list[StoredMessage], count: int) -> None:
        """Leave what stands behind the first `count` stored messages as a branch."""
        if count < len(stored):
            await self.session.branch(stored[count - 1].entry if count else None)
            del stored[count:]
        self._known = [known for known in self._known if known.end <= count]
        self._saved = min(self._saved, count)

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
        for known in self._known:
            if known.end > known.start:
                last = []
                groups[known.start] = known.end, last
            last.append(known.message)
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


def _place(item: Item, places: Mapping[str, int]) -> int:
    """Return which stored message an item is as received; -1 for none."""
    return places.get(item.entry.id, -1) if isinstance(item, MessageItem) and not item.edits else -1


class FrameworkHistories(Generic[T]):
    """All conversations of one adapter, each with its session, in one store and one thread of their own."""

    def __init__(
        self,
        store: str | Store | None,
        form: FrameworkForm[T],
        **options: Unpack[AdapterOptions],
    ) -> None:
        self._place = store
        self._form = form
        self._options = options
        self._portal: Portal | None = None
        self._store: Store | None = None
        self._open: OrderedDict[str, FrameworkHistory[T]] = OrderedDict()
        self._starting = threading.Lock()
        self._warned = False

    def view(
        self, session: str, messages: Sequence[T], setup: Callable[[], RequestSetup] = RequestSetup
    ) -> list[T]:
        """Return the messages to send in place of the whole history; the history itself where that fails.

        `setup` is asked when the session is opened.
        """
        try:
            return self.run(session, lambda history: history.view(messages), setup)
        except Exception:
            log.warning("session %s: its whole history is sent, since folding failed", session, exc_info=True)
            return list(messages)

    async def aview(
        self, session: str, messages: Sequence[T], setup: Callable[[], RequestSetup] = RequestSetup
    ) -> list[T]:
        """Do what `view` does, without holding up the caller's event loop."""
        return await asyncio.to_thread(self.view, session, messages, setup)

    def overflowed(self, session: str, messages: Sequence[T], error: Exception) -> list[T]:
        """Return what to send after a request that did not fit; raises `error` where nothing helps."""
        try:
            return self.run(session, lambda history: history.overflowed(messages, error))
        except Exception as raised:
            if raised is not error:
                log.warning("session %s: what did not fit could not be folded: %s", session, raised)
            raise error from None

    async def aoverflowed(self, session: str, messages: Sequence[T], error: Exception) -> list[T]:
        """Do what `overflowed` does, without holding up the caller's event loop."""
        return await asyncio.to_thread(self.overflowed, session, messages, error)

    def close(self) -> None:
        """Close the sessions, and the store if it was opened here. Used again, they are opened again."""
        with self._starting:
            portal, self._portal = self._portal, None
            if portal is not None:
                portal.run(self._closed())
                portal.close()

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools by which a model looks into what was folded, in Anthropic's form."""
        return definitions("anthropic")

    def call_tool(self, session: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run one of `tools` in a session; return its result."""
        return self.run(session, lambda history: history.session.call_tool(name, arguments))

    def run(
        self,
        session: str,
        work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]],
        setup: Callable[[], RequestSetup] = RequestSetup,
    ) -> R:
        """Do some work on one conversation, in the thread in which all of them are used."""
        with self._starting:
            if self._portal is None or self._portal.closed:
                self._portal = Portal()
            portal = self._portal

        async def done() -> R:
            return await work(await self._history(session, setup))

        return portal.run(done())

    async def arun(self, session: str, work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]]) -> R:
        """Do the same without holding up the caller's event loop."""
        return await asyncio.to_thread(self.run, session, work)

    async def _history(self, session: str, setup: Callable[[], RequestSetup]) -> FrameworkHistory[T]:
        if session in self._open:
            self._open.move_to_end(session)
            return self._open[session]
        if self._store is None:
            self._store = find_store(settings().store if self._place is None else self._place)
        beside = setup()
        options = self._options.copy()
        if options.get("window") is None and options.get("model") is None:
            info = settings().model_info(beside.served, None) if beside.served else None
            options["window"] = info.window if info is not None and info.known else beside.window
        opened = open_session(
            self._store,
            session,
            **options,
            system=beside.system,
            tools=beside.tools,
            dialect=self._form.dialect,
        )
        await opened.__aenter__()
        if not opened.setup.info.known and not self._warned:
            self._warned = True
            of, room = beside.served or "the agent's model", opened.setup.window.context
            log.warning(
                "the window of %s is not known, %s tokens are assumed: give `window`", of, f"{room:,}"
            )
        history = self._open[session] = FrameworkHistory(opened, self._form)
        while len(self._open) > OPEN:
            await self._open.popitem(last=False)[1].session.close()
        return history

    async def _closed(self) -> None:
        while self._open:
            await self._open.popitem()[1].session.close()
        if self._store is not None and self._store is not self._place:
            await self._store.close()
        self._store = None
