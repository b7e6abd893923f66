"""Who makes the drafts of a session, and where one that is made waits: here, or for every process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from foldline.core.compact.plan import Outcome
from foldline.core.compact.rebase import Draft
from foldline.core.decide.ask import Nothing


class DraftJobs(Protocol):
    """Has drafts made. At most one of a session is in the making, or ready, wherever that is."""

    async def make(
        self, session: str, base: Draft, here: Callable[[], Awaitable[Outcome]]
    ) -> Draft | Nothing | None:
        """Have a draft made, by `here` in this process or by another one, and return it.

        `base` is the draft without its boundary, which `here` makes. The draft may be one that was planned
        earlier, elsewhere. Nothing says why there is none; None that it was cancelled, or failed where it was
        made. Raises what `here` raises.
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


class OwnJobs:
    """Drafts that are made in this process, for this process."""

    async def make(
        self, session: str, base: Draft, here: Callable[[], Awaitable[Outcome]]
    ) -> Draft | Nothing | None:
        """Make a draft."""
        del session
        made = await here()
        return made if isinstance(made, Nothing) else msgspec.structs.replace(base, boundary=made)

    async def find(self, session: str) -> Draft | Literal["making"] | None:
        """Return None: nobody else makes any."""
        del session

    def drop(self, session: str) -> None:
        """Do nothing: the session itself keeps it."""

    async def cancel(self, session: str) -> int:
        """Return 0: the session cancels its own task."""
        del session
        return 0
