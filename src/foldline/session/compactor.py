"""Compactions that a caller waits for: by hand, by a trigger, or after an overflow.

Only one runs at a time, across all processes. It replaces a draft that is still being made.
"""

from __future__ import annotations

import msgspec

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.handoff import display
from foldline.core.decide.ask import FoldRange, Nothing
from foldline.core.log.entries import Reason, Receipt
from foldline.core.view import ViewState
from foldline.errors import CompactionFailed, FoldlineError
from foldline.executor import execute
from foldline.session import spans
from foldline.session.boundary import BoundaryMaker
from foldline.session.drafts import Drafts
from foldline.session.events import CompactionStarted
from foldline.session.shared import Shared

FIRST = Nothing("nothing_new", "another one came first")


class Compactor:
    """Compacts one session."""

    def __init__(self, shared: Shared, maker: BoundaryMaker) -> None:
        self.drafts = Drafts(shared, maker)
        self.maker = maker
        self._shared = shared
        self._cursor = shared.cursor
        self._model = shared.model
        self._events = shared.events

    @property
    def busy(self) -> bool:
        """Whether a compaction that a caller waits for is running."""
        return self.maker.lock.locked()

    async def compact(
        self,
        reason: Reason,
        instructions: str | None = None,
        target: int | None = None,
        *,
        chosen: FoldRange | None = None,
        share: float = 1.0,
        seen: tuple[str, ...] | None = None,
        event_number: int | None = None,
    ) -> Receipt | Nothing:
        """Compact now; returns the receipt, or why there was nothing to do.

        `chosen` is the range to fold, `share` the part of the window that the view may take. `seen` and
        `event_number` are the path's boundaries and the watch's event number when the compaction was found
        due: it is skipped if another one has succeeded or failed since. Raises FloorExceeded, or
        CompactionFailed for any other error; the session is unchanged.
        """
        async with self.maker.lock, self._shared.jobs.turn(self._shared.id) as others:
            async with self._shared.locked(follow=others):
                if event_number is not None and self._shared.watch.has_checked(event_number):
                    return FIRST
                if seen is not None and self._came_first(seen, reason):
                    return FIRST
                work = await self.maker.take(reason, instructions, target, chosen=chosen, share=share)
            died = await self.drafts.stop()
            self._events.emit(CompactionStarted(reason=reason, size=work.size))
            with spans.compaction(self._shared.id, reason, work.size) as opened:
                try:
                    outcome = await self.maker.make(work, opened, waited=True)
                except Exception as error:
                    await self.maker.failed(reason, error)
                    if isinstance(error, FoldlineError):
                        raise
                    text = f"the compaction failed, the session is as it was: {error!r}"
                    raise CompactionFailed(text) from error
                async with self._shared.locked(follow=False):
                    if isinstance(outcome, Nothing):
                        return await self.maker.idle(work.ask, outcome)
                    receipt = msgspec.structs.replace(outcome.receipt, repeated=died)
                    outcome = msgspec.structs.replace(outcome, receipt=receipt)
                    draft = msgspec.structs.replace(work.base, boundary=outcome)
                    return await self.maker.commit(draft, work.ask, opened, waited=True)

    def _came_first(self, seen: tuple[str, ...], reason: Reason) -> bool:
        """Whether a triggered compaction is obsolete: another one was made, or gained too little."""
        state = self._cursor.state
        fruitless = not self._shared.watch.has_grown(state.tokens, self._model.ask(reason).usable)
        return seen != state.boundaries or (fruitless and reason != "overflow")

    async def overflow(self, share: float, seen: tuple[str, ...]) -> Receipt | Nothing:
        """Compact after an overflow: commit the draft if one is ready, otherwise make a boundary now.

        `seen` are the boundaries of the view that overflowed; does nothing if others came first.
        """
        await self.drafts.finished()
        async with self._shared.locked(follow=False):
            if self._came_first(seen, "overflow"):
                return FIRST
            await self.drafts.adopt()
            ready, ask = self.drafts.ready, self._model.ask("overflow", share=share)
            # it was made for the window known at the time: check that it fits the current one
            if ready is not None and ready.boundary.receipt.tokens_after <= ask.usable:
                receipt = await self.drafts.commit(ask)
                if isinstance(receipt, Receipt):
                    return receipt
        return await self.compact("overflow", share=share, seen=seen)

    async def display_summary(self) -> str:
        """Return two sentences for a list of sessions: what was done, and what is open.

        Written by the session's summariser, or offline if it fails; appends nothing.
        """
        async with self._shared.locked():
            counter = self._model.setup.counter
            state = ViewState(self._cursor.state.entries(), counter=counter)
            job, prefix = CompactionInput(state, self._model.ask("manual"), counter), self._shared.prefix()
        return await execute(display(job), self._shared.summarizer, aside=True, prefix=prefix)
