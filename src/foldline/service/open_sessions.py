"""The open sessions of a tenant: each opened once, and closed when it has been idle."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any, TypeVar

from foldline.errors import FoldlineError
from foldline.session.session import Session
from foldline.stores.base import Store

log = logging.getLogger("foldline")
Opener = Callable[[str], Session]
T = TypeVar("T")


class _OpenSession:
    def __init__(self, session: Session, begun: Any) -> None:
        self.session = session
        self.begun = begun
        self.users = 0
        self.beside: Any = None


class OpenSessions:
    """Open sessions by id; idle ones are closed while more than `most` are open."""

    def __init__(self, store: Store, most: int) -> None:
        self.store = store
        self._most = most
        self._open: OrderedDict[str, _OpenSession] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._open))

    def is_open(self, session: str, begun: Any) -> bool:
        """Return whether a session is open; close it first if another process has recreated it.

        `begun` distinguishes a session from an earlier one with the same id.
        """
        entry = self._open.get(session)
        if entry is not None and entry.begun not in (None, begun):
            self.forget(session)
        return session in self._open

    @contextmanager
    def use(self, session: str, opener: Opener, begun: Any = None) -> Generator[Session]:
        """Use a session while the block runs, opened if needed; it then stays open for a while."""
        entry = self._open.get(session)
        if entry is None:
            entry = self._open[session] = _OpenSession(opener(session), begun)
        entry.users += 1
        self._open.move_to_end(session)
        try:
            yield entry.session
        finally:
            entry.users -= 1
            self._close_idle()

    def beside(self, session: str, make: Callable[[Session], T]) -> T:
        """Return an object kept with an open session, created by `make` at its first use."""
        entry = self._open[session]
        if entry.beside is None:
            entry.beside = make(entry.session)
        return entry.beside

    def forget(self, session: str) -> None:
        """Close a session that was deleted from the store."""
        entry = self._open.pop(session, None)
        if entry is not None:
            self._close(entry)

    async def delete(self, session: str) -> None:
        """Close a session and delete it from the store."""
        self.forget(session)
        await self.store.purge(session)

    def _close_idle(self) -> None:
        idle = [name for name, entry in self._open.items() if not entry.users]
        for name in idle[: max(0, len(self._open) - self._most)]:
            self._close(self._open.pop(name))

    def _close(self, entry: _OpenSession) -> None:
        async def close() -> None:
            await _finish(entry.session)
            await entry.session.close()

        # not in the context of the request that happens to close it
        task = asyncio.get_running_loop().create_task(close(), context=Context())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self, seconds: float) -> None:
        """Close all sessions; their background work has `seconds` to end, and its result is stored."""
        sessions = [one.session for one in self._open.values()]
        self._open.clear()
        if sessions:
            await asyncio.wait([asyncio.ensure_future(_finish(one)) for one in sessions], timeout=seconds)
        for one in sessions:
            await one.close()
        if self._closing:
            await asyncio.wait(self._closing, timeout=seconds)


async def _finish(session: Session) -> None:
    """Wait for background work, and store a finished draft: it was paid for."""
    try:
        await session.commit_draft()
    except FoldlineError as error:
        log.warning("session %s: the draft is lost: %s", session.id, error)
