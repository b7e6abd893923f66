"""The one draft of a session: a boundary that is made in the background, and waits until it is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from foldline.core.compact.rebase import Draft, holds
from foldline.core.decide.watch import Watch
from foldline.core.view import ViewState


class Drafts:
    """At most one task that makes a draft, or one draft that is ready; `watch` is told which."""

    def __init__(self, watch: Watch) -> None:
        self.ready: Draft | None = None
        self._watch = watch
        self._task: asyncio.Task[Draft | None] | None = None
        self._held: ViewState | None = None  # the fold on which what is ready was found to hold

    @property
    def running(self) -> bool:
        """Whether a draft is being made."""
        return self._task is not None

    def check(self, fold: ViewState) -> None:
        """Drop what is ready where it can no longer be committed; a fold that only grows is checked once."""
        if self.ready is not None and fold is not self._held:
            self._held = fold
            if not holds(self.ready, fold):
                self.drop()

    def start(self, making: Coroutine[Any, Any, Draft | None]) -> None:
        """Make a draft in a task of its own; it raises nothing."""
        task = asyncio.create_task(making)
        self._task, self.ready, self._held = task, None, None
        self._watch.draft_begun()
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Draft | None]) -> None:
        if self._task is task:
            self._task = None
            self.ready = None if task.cancelled() or task.exception() else task.result()
            if self.ready is not None:
                self._watch.draft_made()
            else:
                self._watch.draft_dropped()

    async def finished(self) -> None:
        """Wait until the draft that is being made is ready or has failed; cancelled, the draft goes on."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def drop(self) -> None:
        """Drop what is ready: it was committed, or will not do."""
        self.ready = None
        self._watch.draft_dropped()

    async def stop(self) -> None:
        """Cancel what is being made, and drop what is ready."""
        task, self._task = self._task, None
        self.drop()
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})
