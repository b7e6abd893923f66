"""What the processes that have a session open share: its drafts, and the turn to compact it."""

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
    """A draft to make: `base` is it without its boundary, `prefix` the session's next request."""

    session: str
    base: Draft
    prefix: Prefix | None = None


class DraftJobs(Protocol):
    """Has drafts made. At most one of a session is in the making, or ready, wherever that is."""

    async def make(self, job: DraftJob, here: Callable[[], Awaitable[Outcome]]) -> Draft | Nothing | None:
        """Have a draft made, by `here` in this process or by another one, and return it.

        It may be one that was planned earlier, elsewhere. Nothing says why there is none; None that it was
        cancelled, or failed where it was made. Raises what `here` raises.
        """
        ...

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return the draft of a session that another process has made, or that it makes one."""
        ...

    def drop(self, session: str) -> None:
        """Forget the draft of a session that was made or found here: it was committed, or will not do."""
        ...

    async def cancel(self, session: str) -> int:
        """Have no draft of a session made, wherever that is, and forget the one that is ready.

        Returns how many processes have died while they made it.
        """
        ...

    def turn(self, session: str) -> AbstractAsyncContextManager[bool]:
        """Hold the turn to compact a session, for a boundary that somebody waits for.

        The value says whether other processes take turns too, so that the log has to be read again.
        """
        ...


class OwnJobs:
    """Drafts that are made in this process, for this process."""

    async def make(self, job: DraftJob, here: Callable[[], Awaitable[Outcome]]) -> Draft | Nothing | None:
        """Make a draft."""
        outcome = await here()
        return (
            outcome if isinstance(outcome, Nothing) else msgspec.structs.replace(job.base, boundary=outcome)
        )

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return None: nobody else makes any."""
        del session

    def drop(self, session: str) -> None:
        """Do nothing: the session itself keeps it."""

    async def cancel(self, session: str) -> int:
        """Return 0: the session cancels its own task."""
        del session
        return 0

    @asynccontextmanager
    async def turn(self, session: str) -> AsyncGenerator[bool]:
        """Hold nothing: the session has a lock of its own."""
        del session
        yield False
