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
from functools import partial
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack
from weakref import WeakValueDictionary

from foldline.adapters.forms import FrameworkForm
from foldline.adapters.history import OWN_TOOLS, FrameworkHistory, RequestSetup
from foldline.arguments import check
from foldline.config import settings
from foldline.core.cut.notes import MARK
from foldline.core.decide.policy import Policy
from foldline.core.log.log import resent_key
from foldline.core.measure.window import Window
from foldline.errors import FoldlineError, StoreError
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.session.sync import Portal
from foldline.session.tools import definitions
from foldline.stores import Store, find_store

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("foldline")

OPEN: Final = 64  # sessions that one adapter holds open
LOOKING: Final = 200_000  # tokens: the window of a session that is only looked into
FIRST: Final = 8  # messages of a history among which one says something


class AdapterOptions(TypedDict, total=False):
    """Options of `foldline.open` that every adapter takes."""

    model: str | None
    policy: str | Policy | None
    window: int | Window | None


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
        _check(store, **options)
        self._place = store
        self._form = form
        self._record = record
        self._options = options
        self._portal: Portal | None = None
        self._store: Store | None = None
        self._open: OrderedDict[str, FrameworkHistory[T]] = OrderedDict()
        self._users: Counter[str] = Counter()
        self._newest: dict[
            str, str
        ] = {}  # which conversation a model was shown last, where not the named one
        self._leaving: set[asyncio.Task[None]] = set()  # closes what was not used for long
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._gate = threading.Condition()
        self._running = 0  # works under way: what they use is closed behind them
        self._warned = False

    def view(
        self, session: str, messages: Sequence[T], setup: Callable[[], RequestSetup] = RequestSetup
    ) -> list[T]:
        """Return the messages to send in place of the whole history; the history itself where that fails.

        `setup` is asked at the first call of a conversation.
        """
        try:
            return self._through(
                session, messages, lambda history, sure: history.view(messages, setup, sure=sure)
            )
        except Exception as error:
            told = "session %s: its whole history is sent, since folding failed: %s"
            log.warning(told, session, error, exc_info=None if isinstance(error, FoldlineError) else error)
            return list(messages)

    async def aview(
        self, session: str, messages: Sequence[T], setup: Callable[[], RequestSetup] = RequestSetup
    ) -> list[T]:
        """Do what `view` does, without holding up the caller's event loop."""
        return await asyncio.to_thread(self.view, session, messages, setup)

    def overflowed(
        self,
        session: str,
        messages: Sequence[T],
        error: Exception,
        setup: Callable[[], RequestSetup] = RequestSetup,
    ) -> list[T]:
        """Return what to send after a request that did not fit; raises `error` where nothing helps."""
        try:
            return self._through(
                session, messages, lambda history, sure: history.overflowed(messages, error, setup, sure=sure)
            )
        except Exception as raised:
            if raised is not error:
                log.warning("session %s: what did not fit could not be folded: %s", session, raised)
            raise error from None

    async def aoverflowed(
        self,
        session: str,
        messages: Sequence[T],
        error: Exception,
        setup: Callable[[], RequestSetup] = RequestSetup,
    ) -> list[T]:
        """Do what `overflowed` does, without holding up the caller's event loop."""
        return await asyncio.to_thread(self.overflowed, session, messages, error, setup)

    def close(self) -> None:
        """Close the sessions, and the store if it was opened here, behind what is under way.

        Used again, they are opened again.
        """
        with self._gate:
            self._gate.wait_for(lambda: not self._running)
            portal, self._portal = self._portal, None
            if portal is not None:
                portal.run(self._closed())
                portal.close()

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools by which a model looks into what was folded, in Anthropic's form."""
        return definitions("anthropic", OWN_TOOLS)

    def call_tool(self, session: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run one of `tools` in the conversation of a name that the model was shown last."""
        try:
            return self.run(self._newest.get(session, session), lambda one: one.call_tool(name, arguments))
        except StoreError as error:
            log.warning("session %s: %s failed: %s", session, name, error)
            return f"{MARK}Error: what was said cannot be read now."

    async def acall_tool(self, session: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Do what `call_tool` does, without holding up the caller's event loop."""
        return await asyncio.to_thread(self.call_tool, session, name, arguments)

    def run(
        self,
        session: str,
        work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]],
    ) -> R:
        """Do some work on one conversation, in the thread in which all of them are used."""

        async def done() -> R:
            async with self._used(session) as history:
                return await work(history)

        return self._in_thread(done())

    def _through(
        self,
        session: str,
        messages: Sequence[T],
        work: Callable[[FrameworkHistory[T], bool], Coroutine[Any, Any, list[T] | None]],
    ) -> list[T]:
        """Do some work on the conversation that a history goes on with; return what is to be sent."""

        async def done() -> list[T]:
            async with self._used(session) as history:
                shown = await work(history, False)
            if shown is not None:
                self._newest.pop(session, None)
                return shown
            other = f"{session}.{self._first_key(messages)}"
            async with self._used(other) as history:
                shown = await work(history, True)
            self._newest[session] = other
            return shown or []

        return self._in_thread(done())

    def _first_key(self, messages: Sequence[T]) -> str:
        """Return a name for a history, by the first message that says something of its own."""
        read = [one for each in self._form.decode(messages[:FIRST]) for one in each]
        said = (one for one in read if one.role not in ("system", "developer"))
        return next((resent_key(one)[:8] for one in said), "other")

    def _in_thread(self, work: Coroutine[Any, Any, R]) -> R:
        with self._gate:
            if self._portal is None or self._portal.closed:
                self._portal = Portal()
            portal = self._portal
            self._running += 1
        try:
            return portal.run(work)
        finally:
            with self._gate:
                self._running -= 1
                self._gate.notify_all()

    async def arun(self, session: str, work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]]) -> R:
        """Do the same without holding up the caller's event loop."""
        return await asyncio.to_thread(self.run, session, work)

    @asynccontextmanager
    async def _used(self, session: str) -> AsyncGenerator[FrameworkHistory[T]]:
        """Hold a conversation open; of those that nobody holds, the one that was used last is closed last."""
        self._users[session] += 1
        try:
            yield await self._history(session)
        finally:
            self._users[session] -= 1
            unused = [name for name in self._open if not self._users[name]]
            for name in unused[: max(0, len(self._open) - OPEN)]:
                self._let_go(name)
            self._users += Counter()  # those that nobody holds go

    async def _history(self, session: str) -> FrameworkHistory[T]:
        lock = self._opening.setdefault(session, asyncio.Lock())
        async with lock:
            if session not in self._open:
                opener = partial(self._opened, session)
                bare = await opener(None)
                self._open[session] = FrameworkHistory(bare, self._form, opener, record=self._record)
        self._open.move_to_end(session)
        return self._open[session]

    def _let_go(self, name: str) -> None:
        """Close a conversation that was not used for long, behind the caller."""
        self._newest = {one: last for one, last in self._newest.items() if last != name}
        task = asyncio.create_task(_leave(self._open.pop(name).session))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _opened(self, session: str, setup: RequestSetup | None) -> Session:
        """Open a session with what a call sends beside its messages; None: only to be looked into."""
        if self._store is None:
            self._store = find_store(settings().store if self._place is None else self._place)
        beside = setup or RequestSetup(window=LOOKING)
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
        if setup is not None and not opened.setup.info.known and not self._warned:
            self._warned = True
            of, room = beside.served or "the agent's model", opened.setup.window.context
            log.warning(
                "the window of %s is not known, %s tokens are assumed: give Foldline a `window`",
                of,
                f"{room:,}",
            )
        return opened

    async def _closed(self) -> None:
        for task in (leaving := list(self._leaving)):
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        while self._open:
            await self._open.popitem()[1].session.close()
        if self._store is not None and self._store is not self._place:
            await self._store.close()
        self._store = None


def _check(
    store: str | Store | None,
    *,
    model: str | None = None,
    policy: str | Policy | None = None,
    window: int | Window | None = None,
) -> None:
    """Raise what opening a session would raise for these: later only a warning would tell."""
    check(model=model, window=window)
    known = settings()
    known.find_policy(policy)
    known.model_info(model, window)
    find_store(known.store if store is None else store)


async def _leave(session: Session) -> None:
    """Close a session, with the draft that is being made committed first."""
    try:
        await session.commit_draft()
    except FoldlineError as error:
        log.warning("session %s: its draft could not be committed: %s", session.id, error)
    finally:
        await session.close()
