"""All conversations of one adapter: each call of a model belongs to the one that its history continues.

They run in a separate thread. If anything fails here, the model is sent the framework's own messages, and a
warning says why.
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
from foldline.session.definitions import definitions
from foldline.session.opening import open_session
from foldline.session.session import Session
from foldline.session.sync import Portal
from foldline.stores import Store, find_store

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("foldline")

OPEN: Final = 64  # open sessions of one adapter
LOOKING: Final = 200_000  # tokens: the window of a session that is only read
FIRST: Final = 8  # messages of a history that may identify it


class AdapterOptions(TypedDict, total=False):
    """Options of `foldline.open` that every adapter takes."""

    model: str | None
    policy: str | Policy | None
    window: int | Window | None


class FrameworkHistories(Generic[T]):
    """All conversations of one adapter, each with its session, in one store and one thread.

    A history that does not continue the session of its name (another agent's, another task's) has its own,
    NAME.KEY, by its first message. `record`: the framework keeps no messages besides these sessions.
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
        self._newest: dict[str, str] = {}  # the conversation sent last, if it has not the session's name
        self._closing: set[asyncio.Task[None]] = set()
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._gate = threading.Condition()
        self._running = 0  # calls in progress: `close` waits for them
        self._warned = False

    def view(
        self, session: str, messages: Sequence[T], setup: Callable[[], RequestSetup] = RequestSetup
    ) -> list[T]:
        """Return the messages to send instead of the whole history; the history itself if that fails.

        `setup` is called at the first call of a conversation.
        """
        try:
            return self._continue(
                session, messages, lambda history, sure: history.view(messages, setup, sure=sure)
            )
        except Exception as error:
            text = "session %s: its whole history is sent, since folding failed: %s"
            log.warning(text, session, error, exc_info=None if isinstance(error, FoldlineError) else error)
            return list(messages)

    async def aview(
        self, session: str, messages: Sequence[T], setup: Callable[[], RequestSetup] = RequestSetup
    ) -> list[T]:
        """Do what `view` does without blocking the caller's event loop."""
        return await asyncio.to_thread(self.view, session, messages, setup)

    def overflowed(
        self,
        session: str,
        messages: Sequence[T],
        error: Exception,
        setup: Callable[[], RequestSetup] = RequestSetup,
    ) -> list[T]:
        """Return what to send after a request that did not fit; raises `error` if folding does not help."""
        try:
            return self._continue(
                session, messages, lambda history, sure: history.overflowed(messages, error, setup, sure=sure)
            )
        except Exception as raised:
            if raised is not error:
                log.warning("session %s: folding after an overflow failed: %s", session, raised)
            raise error from None

    async def aoverflowed(
        self,
        session: str,
        messages: Sequence[T],
        error: Exception,
        setup: Callable[[], RequestSetup] = RequestSetup,
    ) -> list[T]:
        """Do what `overflowed` does without blocking the caller's event loop."""
        return await asyncio.to_thread(self.overflowed, session, messages, error, setup)

    def close(self) -> None:
        """Close the sessions, and the store if it was opened here, after calls in progress.

        A later call opens them again.
        """
        with self._gate:
            self._gate.wait_for(lambda: not self._running)
            portal, self._portal = self._portal, None
            if portal is not None:
                portal.run(self._close_all())
                portal.close()

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools that search what was folded, in Anthropic's form."""
        return definitions("anthropic", OWN_TOOLS)

    def call_tool(self, session: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run one of `tools` in the conversation of that name that was sent last."""
        conversation = self._newest.get(session, session)
        try:
            return self.run(conversation, lambda history: history.call_tool(name, arguments))
        except StoreError as error:
            log.warning("session %s: %s failed: %s", session, name, error)
            return f"{MARK}Error: the session cannot be read now."

    async def acall_tool(self, session: str, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Do what `call_tool` does without blocking the caller's event loop."""
        return await asyncio.to_thread(self.call_tool, session, name, arguments)

    def run(self, session: str, work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]]) -> R:
        """Do some work on one conversation, in the thread of all conversations."""

        async def run_work() -> R:
            async with self._use(session) as history:
                return await work(history)

        return self._in_thread(run_work())

    async def arun(self, session: str, work: Callable[[FrameworkHistory[T]], Coroutine[Any, Any, R]]) -> R:
        """Do what `run` does without blocking the caller's event loop."""
        return await asyncio.to_thread(self.run, session, work)

    def _continue(
        self,
        session: str,
        messages: Sequence[T],
        work: Callable[[FrameworkHistory[T], bool], Coroutine[Any, Any, list[T] | None]],
    ) -> list[T]:
        """Do some work on the conversation that a history continues; return the messages to send."""

        async def run_work() -> list[T]:
            async with self._use(session) as history:
                view = await work(history, False)
            if view is not None:
                self._newest.pop(session, None)
                return view
            other = f"{session}.{self._first_key(messages)}"
            async with self._use(other) as history:
                view = await work(history, True)
            self._newest[session] = other
            return view or []

        return self._in_thread(run_work())

    def _first_key(self, messages: Sequence[T]) -> str:
        """Return a name for a history, by its first message."""
        decoded = [message for group in self._form.decode(messages[:FIRST]) for message in group]
        others = (message for message in decoded if message.role not in ("system", "developer"))
        return next((resent_key(message)[:8] for message in others), "other")

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

    @asynccontextmanager
    async def _use(self, session: str) -> AsyncGenerator[FrameworkHistory[T]]:
        """Keep a conversation open; of the unused ones, the least recently used are closed."""
        self._users[session] += 1
        try:
            yield await self._history(session)
        finally:
            self._users[session] -= 1
            unused = [name for name in self._open if not self._users[name]]
            for name in unused[: max(0, len(self._open) - OPEN)]:
                self._close_later(name)
            self._users += Counter()  # drops zero counts

    async def _history(self, session: str) -> FrameworkHistory[T]:
        lock = self._opening.setdefault(session, asyncio.Lock())
        async with lock:
            if session not in self._open:
                opener = partial(self._open_session, session)
                bare = await opener(None)
                self._open[session] = FrameworkHistory(bare, self._form, opener, record=self._record)
        self._open.move_to_end(session)
        return self._open[session]

    def _close_later(self, name: str) -> None:
        """Close a conversation in the background."""
        self._newest = {session: newest for session, newest in self._newest.items() if newest != name}
        task = asyncio.create_task(_close(self._open.pop(name).session))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _open_session(self, session: str, setup: RequestSetup | None) -> Session:
        """Open a session with the setup of a call; None: only to read it."""
        if self._store is None:
            self._store = find_store(settings().store if self._place is None else self._place)
        request = setup or RequestSetup(window=LOOKING)
        options = self._options.copy()
        if options.get("window") is None:
            info = settings().model_info(request.served, None) if request.served else None
            window = info.window if info is not None and info.known else request.window
            if window is not None:
                options["window"] = window
        result = open_session(
            self._store,
            session,
            **options,
            system=request.system,
            tools=request.tools,
            dialect=self._form.dialect,
        )
        await result.__aenter__()
        if setup is not None and not result.setup.info.known and not self._warned:
            self._warned = True
            log.warning(
                "the window of %s is not known, %s tokens are assumed: give Foldline a `window`",
                request.served or "the agent's model",
                f"{result.setup.window.context:,}",
            )
        return result

    async def _close_all(self) -> None:
        for task in (closing := list(self._closing)):
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
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
    """Raise what opening a session would raise for these options: later there would only be a warning."""
    check(model=model, window=window)
    current = settings()
    current.find_policy(policy)
    current.model_info(model, window)
    find_store(current.store if store is None else store)


async def _close(session: Session) -> None:
    """Close a session, after committing its draft."""
    try:
        await session.commit_draft()
    except FoldlineError as error:
        log.warning("session %s: its draft could not be committed: %s", session.id, error)
    finally:
        await session.close()
