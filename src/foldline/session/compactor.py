"""The compactions of a live session that somebody waits for: asked for by hand, by a trigger, by an overflow.

No two are made at a time, in whatever processes. Drafts are made beside them, and dropped where one of these
comes first.
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
        """Whether a boundary is being made that somebody waits for."""
        return self.maker.one.locked()

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

        `chosen` is the range to fold, `share` the part of the window that the view may take. With `seen`, the
        boundaries of the path when it was found to be necessary, it is left out where another one came first,
        and with `event_number`, the watch's at that time, where another one failed first. Raises
        FloorExceeded, or CompactionFailed for what went wrong in it; the session is as it was.
        """
        async with self.maker.one, self._shared.jobs.turn(self._shared.id) as others:
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
        """Whether a trigger's compaction is no longer needed: another one was made, or gained too little."""
        state = self._cursor.state
        fruitless = not self._shared.watch.has_grown(state.tokens, self._model.ask(reason).usable)
        return seen != state.boundaries or (fruitless and reason != "overflow")

    async def overflow(self, share: float, seen: tuple[str, ...]) -> Receipt | Nothing:
        """Compact after an overflow: commit the draft, if there is one, else make a boundary now.

        `seen` are the boundaries of the path that overflowed; where others came first, nothing is done.
        """
        await self.drafts.finished()
        async with self._shared.locked(follow=False):
            if self._came_first(seen, "overflow"):
                return FIRST
            await self.drafts.adopt()
            ready, ask = self.drafts.ready, self._model.ask("overflow", share=share)
            # made for the window that was believed in then: it has to be small enough for the one there is
            if ready is not None and ready.boundary.receipt.tokens_after <= ask.usable:
                done = await self.drafts.commit(ask)
                if isinstance(done, Receipt):
                    return done
        return await self.compact("overflow", share=share, seen=seen)

    async def display_summary(self) -> str:
        """Return two sentences for a list of sessions: what was done, and what is open.

        Written by the session's summariser, else by code; nothing is appended.
        """
        async with self._shared.locked():
            counter = self._model.setup.counter
            state = ViewState(self._cursor.state.entries(), counter=counter)
            job, prefix = CompactionInput(state, self._model.ask("manual"), counter), self._shared.prefix()
        return await execute(display(job), self._shared.summarizer, aside=True, prefix=prefix)
