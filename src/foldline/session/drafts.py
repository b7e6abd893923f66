"""The one draft of a session: a boundary that is made in the background, and committed when it is needed."""

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
from foldline.core.log.entries import Receipt
from foldline.core.view import ViewState
from foldline.errors import FoldlineError
from foldline.session import spans
from foldline.session.boundary import BoundaryMaker, BoundaryWork, failure_of
from foldline.session.events import DraftFailed, DraftReady, DraftStarted
from foldline.session.jobs import DraftJob
from foldline.session.shared import Shared

log = logging.getLogger("foldline")

POLL_SECONDS = 0.25  # between two looks at a draft that another process makes
AT_ONCE = 64  # newest messages that are looked at behind an append; those seen before cost nothing


class Drafts:
    """At most one task that makes a draft, or one draft that is ready; the watch is told which."""

    def __init__(self, shared: Shared, maker: BoundaryMaker) -> None:
        self.ready: Draft | None = None
        self._shared = shared
        self._maker = maker
        self._watch = shared.watch
        self._task: asyncio.Task[Draft | None] | None = None
        self._held: ViewState | None = None  # the view on which what is ready was found to hold

    @property
    def running(self) -> bool:
        """Whether a draft is being made."""
        return self._task is not None

    def check(self, state: ViewState) -> None:
        """Drop what is ready where it can no longer be committed; a view that only grows is checked once."""
        if self.ready is not None and state is not self._held:
            self._held = state
            if not holds(self.ready, state):
                self.drop()

    def pays(self) -> bool:
        """Whether the next request costs less if the draft that is ready is committed."""
        if self.ready is None:
            return False
        model = self._shared.model
        return pays(
            CompactionInput(self._shared.cursor.state, model.ask("threshold"), model.setup.counter),
            self.ready,
        )

    def look_at(self, state: ViewState) -> None:
        """Look for secrets in what came since a draft was begun, so that its commit has none to look at."""
        if self.running or self.ready is not None:
            state.clean(state.kept[-AT_ONCE:])

    def begin(self, due: StartDraft) -> None:
        """Begin a draft of the path as it is, in a task of its own; the lock is held."""
        shared = self._shared
        work = self._maker.taken(shared.model.ask("threshold"))
        shared.events.emit(DraftStarted(size=due.size, threshold=due.threshold))
        self._run(self._drafting(work, shared.cursor.state))

    async def adopt(self) -> bool:
        """Take the draft that another process has made, or wait for the one that it makes; the lock is held.

        Returns whether there is one.
        """
        if self.running or self.ready is not None:
            return False
        jobs, session = self._shared.jobs, self._shared.id
        try:
            found = await jobs.find(session)
        except FoldlineError as error:
            log.warning("session %s: no draft could be looked for: %s", session, error)
            return False
        if isinstance(found, Draft) and not holds(found, self._shared.cursor.state):
            await jobs.cancel(session)
            return False
        if found == "making":
            self._run(self._waiting())
        elif found is not None:
            self._watch.draft_begun()
            self._taken(found)
        return found is not None

    async def _waiting(self) -> Draft | None:
        """Return the draft that another process makes; None where that fails."""
        while True:
            found = await self._shared.jobs.find(self._shared.id)
            if found != "making":
                return found
            await asyncio.sleep(POLL_SECONDS)

    async def _drafting(self, work: BoundaryWork, state: ViewState) -> Draft | None:
        """Make a draft; what goes wrong is told and noted, never raised."""
        ask = work.ask
        try:
            with spans.compaction(self._shared.id, ask.reason, work.size, name=spans.DRAFT) as opened:
                ask = await self._shared.live.onto(ask, state)
                settled = msgspec.structs.replace(work, ask=ask)
                job = DraftJob(self._shared.id, work.base, work.prefix)
                outcome = await self._shared.jobs.make(job, lambda: self._maker.make(settled, opened))
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
        self._task, self.ready, self._held = task, None, None
        self._watch.draft_begun()
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Draft | None]) -> None:
        if self._task is task:
            self._task = None
            self._taken(None if task.cancelled() or task.exception() else task.result())

    def _taken(self, draft: Draft | None) -> None:
        self.ready, self._held = draft, None
        if draft is not None:
            self._watch.draft_made()
        else:
            self._watch.draft_dropped()

    async def finished(self) -> None:
        """Wait until the draft that is being made is ready or has failed; cancelled, the draft goes on."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def drop(self) -> None:
        """Drop what is ready: it was committed, or will not do."""
        if self.ready is not None:
            self._shared.jobs.drop(self._shared.id)
        self.ready = None
        self._watch.draft_dropped()

    async def stop(self) -> int:
        """Cancel what is being made, here or elsewhere, and drop what is ready.

        Returns how many processes have died while they made it.
        """
        await self.leave()
        try:
            return await self._shared.jobs.cancel(self._shared.id)
        except FoldlineError as error:
            log.warning("session %s: a draft could not be cancelled: %s", self._shared.id, error)
            return 0

    async def leave(self) -> None:
        """Have nothing to do with a draft any more; what is ready stays for another process."""
        task, self._task = self._task, None
        self._taken(None)
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})

    async def commit(self, ask: FoldRequest) -> Receipt | Nothing | None:
        """Commit the draft that is ready, or drop it; None where it will not do.

        Inside a tool loop with signed thinking it waits for the end of the loop: then that is returned.
        """
        draft = self.ready
        assert draft is not None
        size = ask.overhead_tokens + self._shared.cursor.state.tokens
        with spans.compaction(self._shared.id, ask.reason, size) as opened:
            done = await self._maker.commit(draft, ask, opened, waited=False)
        if isinstance(done, Nothing) and done.why == "signed_thinking":
            return done
        self.drop()
        return done if isinstance(done, Receipt) else None
