"""The draft of a session: a boundary made in the background and committed when it is needed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

import msgspec

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.rebase import Draft, holds, pays
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.decide.breaker import Failure
from foldline.core.decide.triggers import StartDraft
from foldline.core.log.entries import Compacted, Receipt
from foldline.core.view import ViewState
from foldline.errors import FoldlineError
from foldline.session import spans
from foldline.session.boundary import BoundaryMaker, BoundaryWork, failure_of
from foldline.session.events import DraftFailed, DraftReady, DraftStarted
from foldline.session.jobs import DraftJob
from foldline.session.shared import Shared

log = logging.getLogger("foldline")

POLL_SECONDS = 0.25  # between polls of a draft that another process makes
NEWEST = 64  # messages redacted after an append; those already redacted cost nothing


class Drafts:
    """At most one draft, being made or ready; reports its state to the watch."""

    def __init__(self, shared: Shared, maker: BoundaryMaker) -> None:
        self.ready: Draft | None = None
        self._shared = shared
        self._maker = maker
        self._watch = shared.watch
        self._task: asyncio.Task[Draft | None] | None = None
        self._checked_state: ViewState | None = None  # the view for which the ready draft was last checked

    @property
    def running(self) -> bool:
        """Whether a draft is being made."""
        return self._task is not None

    def check(self, state: ViewState) -> None:
        """Drop the ready draft if it can no longer be committed; a view that only grows is checked once."""
        if self.ready is not None and state is not self._checked_state:
            self._checked_state = state
            if not holds(self.ready, state):
                self.drop()

    def pays(self) -> bool:
        """Whether committing the ready draft makes the next request cheaper."""
        if self.ready is None:
            return False
        model = self._shared.model
        return pays(
            CompactionInput(self._shared.cursor.state, model.ask("threshold"), model.setup.counter),
            self.ready,
        )

    def redact_newest(self, state: ViewState) -> None:
        """Redact the newest messages while there is a draft, so that its commit does not have to."""
        if self.running or self.ready is not None:
            state.clean(state.kept[-NEWEST:])

    def begin(self, due: StartDraft) -> None:
        """Start a draft of the current path in a task; the lock is held."""
        shared = self._shared
        work = self._maker.work_for(shared.model.ask("threshold"))
        shared.events.emit(DraftStarted(size=due.size, threshold=due.threshold))
        self._run(self._make_draft(work, shared.cursor.state))

    async def adopt(self) -> bool:
        """Take over another process's draft, ready or being made; return whether there is one.

        The lock is held.
        """
        if self.running or self.ready is not None:
            return False
        jobs, session = self._shared.jobs, self._shared.id
        try:
            draft = await jobs.find(session)
        except FoldlineError as error:
            log.warning("session %s: looking for a draft failed: %s", session, error)
            return False
        if isinstance(draft, Draft) and not holds(draft, self._shared.cursor.state):
            await jobs.cancel(session)
            return False
        if draft == "making":
            self._run(self._poll_draft())
        elif draft is not None:
            self._watch.draft_begun()
            self._set_ready(draft)
        return draft is not None

    async def _poll_draft(self) -> Draft | None:
        """Wait for the draft that another process makes; None if that fails."""
        while True:
            draft = await self._shared.jobs.find(self._shared.id)
            if draft != "making":
                return draft
            await asyncio.sleep(POLL_SECONDS)

    async def _make_draft(self, work: BoundaryWork, state: ViewState) -> Draft | None:
        """Make a draft; failures are emitted and noted, never raised."""
        ask = work.ask
        try:
            with spans.compaction(self._shared.id, ask.reason, work.size, name=spans.DRAFT) as opened:
                ask = await self._shared.live.complete(ask, state)
                live_work = msgspec.structs.replace(work, ask=ask)
                job = DraftJob(self._shared.id, work.base, work.prefix)
                outcome = await self._shared.jobs.make(job, lambda: self._maker.make(live_work, opened))
        except Exception as error:
            log.warning("session %s: a draft failed: %s", self._shared.id, error)
            await self._draft_failed(ask, failure_of(error), str(error))
            return None
        if isinstance(outcome, Nothing):
            await self._draft_failed(ask, outcome.why, outcome.detail)
            return None
        if outcome is not None:
            self._shared.events.emit(DraftReady(receipt=outcome.boundary.receipt))
        return outcome

    async def _draft_failed(self, ask: FoldRequest, why: Failure, detail: str) -> None:
        self._shared.events.emit(DraftFailed(why=why, detail=detail))
        async with self._shared.locked(follow=False):
            facts = self._shared.model.trigger_facts()
            notes = self._shared.watch.ended(ask.reason, why, facts, time.time(), drafted=True)
            await self._maker.note(notes)

    def _run(self, making: Coroutine[Any, Any, Draft | None]) -> None:
        task = asyncio.create_task(making)
        self._task, self.ready, self._checked_state = task, None, None
        self._watch.draft_begun()
        task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[Draft | None]) -> None:
        if self._task is task:
            self._task = None
            self._set_ready(None if task.cancelled() or task.exception() else task.result())

    def _set_ready(self, draft: Draft | None) -> None:
        self.ready, self._checked_state = draft, None
        if draft is not None:
            self._watch.draft_made()
        else:
            self._watch.draft_dropped()

    async def finished(self) -> None:
        """Wait until the draft is ready or has failed; cancelling the wait does not cancel the draft."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def drop(self) -> None:
        """Drop the ready draft: it was committed, or no longer fits."""
        if self.ready is not None:
            self._shared.jobs.drop(self._shared.id)
        self.ready = None
        self._watch.draft_dropped()

    async def stop(self) -> int:
        """Cancel the draft, in whatever process it is made, and drop the ready one.

        Returns how many processes have died while making it.
        """
        self._count_unused()
        await self.leave()
        try:
            return await self._shared.jobs.cancel(self._shared.id)
        except FoldlineError as error:
            log.warning("session %s: cancelling a draft failed: %s", self._shared.id, error)
            return 0

    async def leave(self) -> None:
        """Cancel this process's draft task; a ready draft stays available to other processes."""
        task, self._task = self._task, None
        self._set_ready(None)
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})

    async def commit(self, ask: FoldRequest) -> Receipt | Nothing | None:
        """Commit the ready draft, or drop it and return None if it no longer fits.

        Inside a tool loop with signed thinking the draft is kept until the loop ends, and Nothing returned.
        """
        draft = self.ready
        assert draft is not None
        size = ask.overhead_tokens + self._shared.cursor.state.tokens
        with spans.compaction(self._shared.id, ask.reason, size) as opened:
            outcome = await self._maker.commit(draft, ask, opened, waited=False)
        if isinstance(outcome, Nothing):
            if outcome.why == "signed_thinking":
                return outcome
            self._count_unused()
        self.drop()
        return outcome if isinstance(outcome, Receipt) else None

    def _count_unused(self) -> None:
        """Count the cost of the ready draft as unused, unless another process has committed it."""
        draft, newest = self.ready, self._shared.cursor.state.boundary
        if draft is None or not isinstance(draft.boundary, Compacted):
            return
        if newest is None or newest.checkpoint.summary != draft.boundary.checkpoint.summary:
            self._maker.left_unused(draft.boundary.receipt)
