"""The sessions of a tenant that are open: each once, closed when it was not used for long."""

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


class _Open:
    def __init__(self, session: Session, begun: Any) -> None:
        self.session = session
        self.begun = begun
        self.users = 0
        self.beside: Any = None


class OpenSessions:
    """Sessions by their ids; at most `most` stay open without being used."""

    def __init__(self, store: Store, most: int) -> None:
        self.store = store
        self._most = most
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._open))

    def is_open(self, session: str, begun: Any) -> bool:
        """Return whether a session is open; one that another process has begun anew is closed.

        `begun` tells a session from an earlier one of its id.
        """
        known = self._open.get(session)
        if known is not None and known.begun not in (None, begun):
            self.forget(session)
        return session in self._open

    def take(self, session: str, opener: Opener, begun: Any = None) -> Session:
        """Return a session, opened if it is not; `release` it after use."""
        known = self._open.get(session)
        if known is None:
            known = self._open[session] = _Open(opener(session), begun)
        known.users += 1
        self._open.move_to_end(session)
        return known.session

    def release(self, session: Session) -> None:
        """Say that a session is not used any more; it stays open for a while."""
        known = self._open.get(session.id)
        if known is not None and known.session is session:  # not one that was begun anew under its id
            known.users -= 1
        self._close_idle()

    @contextmanager
    def use(self, session: str, opener: Opener, begun: Any = None) -> Generator[Session]:
        """Use a session while the block runs."""
        found = self.take(session, opener, begun)
        try:
            yield found
        finally:
            self.release(found)

    def beside(self, session: str, make: Callable[[Session], T]) -> T:
        """Return what is kept beside a session that is in use, made at its first use; it goes with that."""
        known = self._open[session]
        if known.beside is None:
            known.beside = make(known.session)
        return known.beside

    def forget(self, session: str) -> None:
        """Close a session that is gone from the store."""
        known = self._open.pop(session, None)
        if known is not None:
            self._close(known)

    async def delete(self, session: str) -> None:
        """Close a session and delete it from the store."""
        self.forget(session)
        await self.store.purge(session)

    def _close_idle(self) -> None:
        idle = [name for name, one in self._open.items() if not one.users]
        for name in idle[: max(0, len(self._open) - self._most)]:
            self._close(self._open.pop(name))

    def _close(self, one: _Open) -> None:
        async def close() -> None:
            await _finish(one.session)
            await one.session.close()

        # whoever has asked for another session since has no part in it
        task = asyncio.get_running_loop().create_task(close(), context=Context())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self, seconds: float) -> None:
        """Close all of them; what goes on in the background may take that long to end, and is kept."""
        opened = [one.session for one in self._open.values()]
        self._open.clear()
        if opened:
            await asyncio.wait([asyncio.ensure_future(_finish(one)) for one in opened], timeout=seconds)
        for one in opened:
            await one.close()
        if self._closing:
            await asyncio.wait(self._closing, timeout=seconds)


async def _finish(session: Session) -> None:
    """Wait for what goes on in the background, and keep the draft that a model was paid for."""
    try:
        await session.commit_draft()
    except FoldlineError as error:
        log.warning("session %s: the draft is lost: %s", session.id, error)
