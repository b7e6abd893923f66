"""`foldline.open_sync`: a session for synchronous code, with the methods of the async session.

One thread runs an event loop for the session; each call runs there while the caller waits. The methods and
their types are derived from `Session`.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

from foldline.core.view_items import Item
from foldline.errors import InputError
from foldline.session.opening import open_session
from foldline.session.session import Session

P = ParamSpec("P")
T = TypeVar("T")


CLOSED: Final = "this session is closed: open it again"


class Portal:
    """Runs coroutines in an event loop in a separate thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closing = threading.Lock()
        self.closed = False  # accepts no more work
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="foldline", daemon=True)
        self._thread.start()
        weakref.finalize(self, _stop, self._loop).atexit = False  # in case it is not closed

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for it; an interrupt cancels it first.

        Raises InputError if the portal is closed, even while the coroutine runs.
        """
        with self._closing:  # work started before closing is scheduled before the shutdown
            if self.closed or threading.current_thread() is self._thread:
                coroutine.close()
                raise InputError(
                    CLOSED
                    if self.closed
                    else "a callback cannot wait for its own session: use the async session in a coroutine"
                )
            started, ended = self._begin(coroutine)
        task = started.result()
        try:
            ended.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(task.cancel)
            ended.wait()
            raise
        if task.cancelled() and self.closed:
            raise InputError(CLOSED)
        return task.result()

    def _begin(self, coroutine: Coroutine[Any, Any, T]) -> tuple[Future[asyncio.Task[T]], threading.Event]:
        started: Future[asyncio.Task[T]] = Future()
        ended = threading.Event()

        def start() -> None:
            task = self._loop.create_task(coroutine)
            task.add_done_callback(lambda _: ended.set())
            started.set_result(task)

        self._loop.call_soon_threadsafe(start)
        return started, ended

    def close(self) -> None:
        """Cancel running work and end the loop and its thread. Closing again does nothing."""
        with self._closing:
            if self.closed:
                return
            self.closed = True
            _, ended = self._begin(_shut_down())
        ended.wait()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(loop.stop)


async def _shut_down() -> None:
    """Cancel all other tasks of the loop, and close its generators and executor."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


def _waits(
    method: Callable[Concatenate[Session, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncSession, P], T]:
    """Wrap an async method of `Session` to wait for its result."""

    @functools.wraps(method)
    def run(self: SyncSession, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.portal.run(method(self.session, *args, **kwargs))

    return run


def _direct(method: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[SyncSession, P], T]:
    """Wrap a plain method of `Session` to run in the session's thread."""

    @functools.wraps(method)
    def run(self: SyncSession, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def call() -> T:
            return method(self.session, *args, **kwargs)

        return self.portal.run(call())

    return run


def _begins(
    method: Callable[Concatenate[Session, P], Coroutine[Any, Any, Session]],
) -> Callable[Concatenate[SyncSession, P], SyncSession]:
    """Wrap a method that starts another session, which shares the loop."""

    @functools.wraps(method)
    def run(self: SyncSession, /, *args: P.args, **kwargs: P.kwargs) -> SyncSession:
        return SyncSession(self.portal.run(method(self.session, *args, **kwargs)), self.portal)

    return run


def _reads(read: Callable[[Session], T]) -> T:
    """Make a property that reads from the session without waiting; typed as its value."""
    return cast("T", property(lambda self: read(self.session)))


class SyncSession:
    """A session for synchronous code; create it with `foldline.open_sync`, use it with `with`.

    It is thread-safe. Callbacks (`on`, `attach` ...) run in the session's own thread.
    """

    def __init__(self, session: Session, portal: Portal | None = None) -> None:
        self.session = session
        self.portal = portal or Portal()
        self._owns_portal = portal is None

    def __enter__(self) -> Self:
        try:
            self.portal.run(self.session.__aenter__())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the session as `Session.close` does, and end its thread. Closing again does nothing."""
        if not self.portal.closed:
            try:
                self.portal.run(self.session.close())
            except InputError:
                if not self.portal.closed:  # otherwise another thread closed it meanwhile
                    raise
            finally:
                if self._owns_portal:
                    self.portal.close()

    # ---- properties

    id = _reads(lambda session: session.id)
    store = _reads(lambda session: session.store)
    setup = _reads(lambda session: session.setup)
    policy = _reads(lambda session: session.policy)
    compact_at = _reads(lambda session: session.compact_at)
    compaction_fields = _reads(lambda session: session.compaction_fields)
    leaf = _reads(lambda session: session.leaf)
    said_key = _reads(lambda session: session.said_key)
    dialect = _reads(lambda session: session.dialect)
    system = _reads(lambda session: session.system)
    in_turn = _reads(lambda session: session.in_turn)
    view_tokens = _reads(lambda session: session.view_tokens)
    pins = _reads(lambda session: session.pins)
    compacting = _reads(lambda session: session.compacting)
    max_tokens = _reads(lambda session: session.max_tokens)
    cache = _reads(lambda session: session.cache)

    def view(self) -> list[Item]:
        """Return the current view without compacting."""
        return self.session.view()

    # ---- methods of `Session`

    append = _waits(Session.append)
    settled = _waits(Session.settled)
    commit_draft = _waits(Session.commit_draft)
    context = _waits(Session.context)
    overflowed = _waits(Session.overflowed)
    compact = _waits(Session.compact)
    preview = _waits(Session.preview)
    commit = _waits(Session.commit)
    exclude = _waits(Session.exclude)
    undo = _waits(Session.undo)
    redo = _waits(Session.redo)
    pin = _waits(Session.pin)
    unpin = _waits(Session.unpin)
    note = _waits(Session.note)
    track_files = _waits(Session.track_files)
    use_model = _waits(Session.use_model)
    use_policy = _waits(Session.use_policy)
    follow = _waits(Session.follow)
    history = _waits(Session.history)
    stats = _waits(Session.stats)
    display_summary = _waits(Session.display_summary)
    verify = _waits(Session.verify)
    export = _waits(Session.export)
    branches = _waits(Session.branches)
    branch = _waits(Session.branch)
    merge = _waits(Session.merge)
    rewind = _waits(Session.rewind)
    preview_handoff = _waits(Session.preview_handoff)
    finished = _waits(Session.finished)
    links = _waits(Session.links)
    recall = _waits(Session.recall)
    read = _waits(Session.read)
    constraints = _waits(Session.constraints)
    entries = _waits(Session.entries)
    folded = _waits(Session.folded)
    call_tool = _waits(Session.call_tool)
    live = _waits(Session.live)
    standing = _waits(Session.standing)
    prefix = _direct(Session.prefix)
    at_close = _direct(Session.at_close)
    cancel_compaction = _direct(Session.cancel_compaction)
    tools = _direct(Session.tools)
    on = _direct(Session.on)
    attach = _direct(Session.attach)
    attach_files = _direct(Session.attach_files)
    before_compaction = _direct(Session.before_compaction)
    handoff = _begins(Session.handoff)
    fork = _begins(Session.fork)
    subagent = _begins(Session.subagent)


def _opens(opener: Callable[P, Session]) -> Callable[P, SyncSession]:
    @functools.wraps(opener)
    def run(*args: P.args, **kwargs: P.kwargs) -> SyncSession:
        return SyncSession(opener(*args, **kwargs))

    return run


open_sync = _opens(open_session)
