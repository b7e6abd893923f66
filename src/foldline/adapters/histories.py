"""All conversations of one adapter: each call of a model is led to the one that its history goes on with.

They run in one thread of their own. If anything goes wrong here, the framework's own messages go to the
model, and a warning says why.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack

import msgspec

from foldline.adapters.forms import FrameworkForm
from foldline.adapters.history import OWN_TOOLS, FrameworkHistory
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.log.log import resent_key
from foldline.core.measure.window import Window
from foldline.errors import FoldlineError
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.session.sync import Portal
from foldline.session.tools import definitions
from foldline.stores import Store, find_store

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("foldline")

OPEN: Final = 64  # sessions that one adapter holds open
FIRST: Final = 8  # messages of a history among which one says something


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


class FrameworkHistories(Generic[T]):
    """All conversations of one adapter, each with its session, in one store and one thread of their own.

    A history that does not go on with the session of its name (another agent's, another task's) has one of
    its own, NAME.KEY, by its first message. `record` says that the sessions are all that the framework keeps.
    """

    def __init__(
        self,
        store: str | Store | None,
        form: FrameworkForm[T],
        *,
        record: bool = False,
        **options: Unpack[AdapterOptions],
    ) -> None:
        self._place = store
        self._form = form
        self._record = record
        self._options = options
        self._portal: Portal | None = None
        self._store: Store | None = None
        self._open: OrderedDict[str, FrameworkHistory[T]] = OrderedDict()
        self._users: Counter[str] = Counter()
        self._newest: dict[str, str] = {}  # which conversation of a name a model was shown last
        self._leaving: set[asyncio.Task[None]] = set()  # closes what was not used for long
        self._opening: asyncio.Lock
        self._starting = threading.Lock()
        self._warned = False

    def view(
        self, session: str, messages: Sequence[T], setup: Callable[[], RequestSetup] = RequestSetup
    ) -> list[T]:
        """Return the messages to send in place of the whole history; the history itself where that fails.

        `setup` is asked when the session is opened.
        """
        try:
            return self._through(
                session, messages, lambda history, sure: history.view(messages, sure=sure), setup
            )
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
            return self._through(
                session, messages, lambda history, sure: history.overflowed(messages, error, sure=sure)
            )
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
        return definitions("anthropic", OWN_TOOLS)

    def call_tool(self, session: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run one of `tools` in the conversation of a name that the model was shown last."""
        return self.run(self._newest.get(session, session), lambda one: one.call_tool(name, arguments))

    async def acall_tool(self, session: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Do what `call_tool` does, without holding up the caller's event loop."""
        return await asyncio.to_thread(self.call_tool, session, name, arguments)

    def run(
        self,
        session: str,
        work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]],
        setup: Callable[[], RequestSetup] = RequestSetup,
    ) -> R:
        """Do some work on one conversation, in the thread in which all of them are used."""

        async def done() -> R:
            async with self._used(session, setup) as history:
                return await work(history)

        return self._in_thread(done())

    def _through(
        self,
        session: str,
        messages: Sequence[T],
        work: Callable[[FrameworkHistory[T], bool], Coroutine[Any, Any, list[T] | None]],
        setup: Callable[[], RequestSetup] = RequestSetup,
    ) -> list[T]:
        """Do some work on the conversation that a history goes on with; return what is to be sent."""

        async def done() -> list[T]:
            async with self._used(session, setup) as history:
                shown = await work(history, False)
            self._newest[session] = session
            if shown is not None:
                return shown
            other = f"{session}.{self._first_key(messages)}"
            async with self._used(other, setup) as history:
                shown = await work(history, True)
            self._newest[session] = other
            return shown or []

        return self._in_thread(done())

    def _first_key(self, messages: Sequence[T]) -> str:
        """Return a name for a history, by the first message that says something."""
        read = self._form.decode(messages[:FIRST])
        return next((resent_key(one)[:8] for each in read for one in each), "other")

    def _in_thread(self, work: Coroutine[Any, Any, R]) -> R:
        with self._starting:
            if self._portal is None or self._portal.closed:
                self._portal, self._opening = Portal(), asyncio.Lock()
            portal = self._portal
        return portal.run(work)

    async def arun(self, session: str, work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]]) -> R:
        """Do the same without holding up the caller's event loop."""
        return await asyncio.to_thread(self.run, session, work)

    @asynccontextmanager
    async def _used(
        self, session: str, setup: Callable[[], RequestSetup]
    ) -> AsyncGenerator[FrameworkHistory[T]]:
        """Hold a conversation open; of those that nobody holds, the one that was used last is closed last."""
        async with self._opening:
            if session not in self._open:
                self._open[session] = await self._opened(session, setup)
        history = self._open[session]
        self._open.move_to_end(session)
        self._users[session] += 1
        try:
            yield history
        finally:
            self._users[session] -= 1
            unused = [name for name in self._open if not self._users[name]]
            for name in unused[: max(0, len(self._open) - OPEN)]:
                del self._users[name]
                task = asyncio.create_task(_leave(self._open.pop(name).session))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

    async def _opened(self, session: str, setup: Callable[[], RequestSetup]) -> FrameworkHistory[T]:
        if self._store is None:
            self._store = find_store(settings().store if self._place is None else self._place)
        beside = setup()
        options = self._options.copy()
        if options.get("window") is None:
            info = settings().model_info(beside.served, None) if beside.served else None
            window = info.window if info is not None and info.known else beside.window
            if window is not None:
                options["window"] = window
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
        return FrameworkHistory(opened, self._form, record=self._record)

    async def _closed(self) -> None:
        for task in (leaving := list(self._leaving)):
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        while self._open:
            await self._open.popitem()[1].session.close()
        if self._store is not None and self._store is not self._place:
            await self._store.close()
        self._store = None


async def _leave(session: Session) -> None:
    """Close a session, with the draft that is being made committed first."""
    try:
        await session.commit_draft()
    except FoldlineError as error:
        log.warning("session %s: its draft could not be committed: %s", session.id, error)
    finally:
        await session.close()
