"""Drafts and the turn to compact, shared by the processes that have a session open."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Literal, Protocol

import msgspec

from foldline.core.checkpoint.request import Prefix
from foldline.core.compact.plan import Outcome
from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import Nothing


class DraftJob(msgspec.Struct, frozen=True):
    """A draft to make: `base` lacks its boundary, `prefix` is the session's next request."""

    session: str
    base: Draft
    prefix: Prefix | None = None


class DraftJobs(Protocol):
    """Makes drafts: at most one per session is being made or ready, across all processes."""

    async def make(self, job: DraftJob, here: Callable[[], Awaitable[Outcome]]) -> Draft | Nothing | None:
        """Make a draft, with `here` in this process or in another one, and return it.

        It may be one that another process started earlier. Nothing says why there is no draft; None that it
        was cancelled, or failed elsewhere. Raises what `here` raises.
        """
        ...

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return the draft that another process has made, or "making" while it makes one."""
        ...

    def drop(self, session: str) -> None:
        """Drop a session's draft that was made or found here: it was committed, or no longer fits."""
        ...

    async def cancel(self, session: str) -> int:
        """Cancel a session's draft in whatever process, and drop the ready one.

        Returns how many processes have died while making it.
        """
        ...

    def turn(self, session: str) -> AbstractAsyncContextManager[bool]:
        """Hold the turn to compact a session while a caller waits.

        Yields whether other processes take turns too, so that the log has to be read again.
        """
        ...


class OwnJobs:
    """Drafts of a single process."""

    async def make(self, job: DraftJob, here: Callable[[], Awaitable[Outcome]]) -> Draft | Nothing | None:
        """Make a draft."""
        outcome = await here()
        return (
            outcome if isinstance(outcome, Nothing) else msgspec.structs.replace(job.base, boundary=outcome)
        )

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return None: no other process makes drafts."""
        del session

    def drop(self, session: str) -> None:
        """Do nothing: the session keeps the draft."""

    async def cancel(self, session: str) -> int:
        """Return 0: the session cancels its task."""
        del session
        return 0

    @asynccontextmanager
    async def turn(self, session: str) -> AsyncGenerator[bool]:
        """Hold nothing: the session's lock is enough."""
        del session
        yield False
