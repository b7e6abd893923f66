"""The look at the triggers right behind an append: in the background, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Checks:
    """At most one task that looks at the triggers, and compacts where they say so; `look` raises nothing."""

    def __init__(self, look: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._look = look
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether a look goes on, or the compaction that it led to."""
        return self._task is not None and not self._task.done()

    def begin(self) -> None:
        """Begin a look, unless one goes on: it sees by itself what comes meanwhile."""
        if not self.running:
            self._task = asyncio.create_task(self._look())

    async def finished(self) -> None:
        """Wait until the look that goes on has ended; cancelled, the look goes on."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def stop(self) -> None:
        """Cancel the look: the session is as it was, and the moment is looked at another time."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
