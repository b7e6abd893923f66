"""`foldline.open_sync`: a session for code that is not async. Every method is the async session's own.

One thread runs an event loop for the session; a call runs there, and the caller waits for its end. Nothing is
written twice: the methods and their types are taken from `Session`.
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

from foldline.core.view import Item
from foldline.errors import InputError
from foldline.session.opening import open_session
from foldline.session.session import Session

P = ParamSpec("P")
T = TypeVar("T")


CLOSED: Final = "this session is closed: open it again"


class Portal:
    """An event loop in a thread of its own, and the way into it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._closing = threading.Lock()
        self.closed = False  # nothing begins any more
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="foldline", daemon=True)
        self._thread.start()
        weakref.finalize(self, _stop, self._loop).atexit = False  # whoever forgets to close it

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for its end; an interrupt cancels it first.

        Raises InputError where the portal is closed, also while the coroutine runs.
        """
        with self._closing:  # what began before it closes is in the loop before what ends it
            if self.closed or threading.current_thread() is self._thread:
                coroutine.close()
                raise InputError(
                    CLOSED
                    if self.closed
                    else "a callback cannot wait for its own session: use the async one, in a coroutine"
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
        """End the loop and its thread; what still runs there is cancelled. A second call does nothing."""
        with self._closing:
            if self.closed:
                return
            self.closed = True
            _, ended = self._begin(_tidied())
        ended.wait()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    with suppress(RuntimeError):  # it has ended
        loop.call_soon_threadsafe(loop.stop)


async def _tidied() -> None:
    """Cancel all other tasks of the loop, and end its generators and threads."""
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
    """Make a method that runs an async one of `Session` to its end."""

    @functools.wraps(method)
    def run(self: SyncSession, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.portal.run(method(self.session, *args, **kwargs))

    return run


def _direct(method: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[SyncSession, P], T]:
    """Make a method that runs a plain one of `Session` in the session's thread."""

    @functools.wraps(method)
    def run(self: SyncSession, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def called() -> T:
            return method(self.session, *args, **kwargs)

        return self.portal.run(called())

    return run


def _begins(
    method: Callable[Concatenate[Session, P], Coroutine[Any, Any, Session]],
) -> Callable[Concatenate[SyncSession, P], SyncSession]:
    """Make a method that begins another session of the same store: it shares the loop."""

    @functools.wraps(method)
    def run(self: SyncSession, /, *args: P.args, **kwargs: P.kwargs) -> SyncSession:
        return SyncSession(self.portal.run(method(self.session, *args, **kwargs)), self.portal)

    return run


def _reads(read: Callable[[Session], T]) -> T:
    """Make a property of what is read from a session without waiting; to a type checker it is the value."""
    return cast("T", property(lambda self: read(self.session)))


class SyncSession:
    """A session for code that is not async; make it with `foldline.open_sync`, use it with `with`.

    It may be used from several threads. Callbacks (`on`, `attach` ...) run in the session's own thread.
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
        """Close the session, as `Session.close` does, and end its thread. A second call does nothing."""
        if not self.portal.closed:
            try:
                self.portal.run(self.session.close())
            except InputError:
                if not self.portal.closed:  # else another thread closed it meanwhile
                    raise
            finally:
                if self._owns_portal:
                    self.portal.close()

    # ---- what is read at once

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
        """Return the view as it stands; nothing is compacted."""
        return self.session.view()

    # ---- what `Session` does

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
