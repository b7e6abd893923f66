"""One boundary: taken from the path, made beside the session, and put onto the path as it is by then.

The session goes on while it is made. The session's lock is held to take and to commit, never while a summary
is written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from foldline.core.checkpoint.request import Prefix
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.fold_request import number_of
from foldline.core.compact.plan import Outcome, Steps, plan
from foldline.core.compact.rebase import VOID, Draft, drafted, rebased
from foldline.core.cut.edits import folds
from foldline.core.decide.ask import FoldRange, FoldRequest, Nothing
from foldline.core.decide.breaker import Failure
from foldline.core.log.entries import Compacted, Entry, Noted, Pruned, Reason, Receipt, Said
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.entries import CleanEntries
from foldline.core.view import ViewState
from foldline.errors import FloorExceeded, FoldlineError
from foldline.executor import execute
from foldline.images import scaled
from foldline.session import spans
from foldline.session.certificate import Certifier
from foldline.session.cursor import RETRIES
from foldline.session.events import (
    CompactionDone,
    CoolingDown,
    NothingDone,
    PruneDone,
    Struck,
    SummaryStreamed,
    WarningGiven,
)
from foldline.session.hooks import PlannedCompaction
from foldline.session.shared import Shared
from foldline.summarizers.base import Summarizer
from foldline.tracing import Span

log = logging.getLogger("foldline")

REPEATED = 3  # compactions worth a warning, and again at twice as many: a summary of summaries loses detail


class BoundaryWork(msgspec.Struct, frozen=True):
    """What a compaction is made of, as it was taken from the path.

    `size` is the view's in tokens, `prefix` the session's next request, `base` the draft without its
    boundary.
    """

    entries: list[Entry]
    ask: FoldRequest
    size: int
    prefix: Prefix | None
    base: Draft


class BoundaryMaker:
    """Makes the boundaries of one session; `one` is held while one is made that somebody waits for."""

    def __init__(self, shared: Shared) -> None:
        self.one = asyncio.Lock()
        self._shared = shared
        self._cursor = shared.cursor
        self._model = shared.model
        self._events = shared.events
        self.certifier = Certifier(shared)

    # ---- making a boundary; the lock is held to take the work, and not while it is done

    async def take(
        self,
        reason: Reason,
        instructions: str | None = None,
        target: int | None = None,
        *,
        chosen: FoldRange | None = None,
        share: float = 1.0,
    ) -> BoundaryWork:
        """Take from the path as it is what a compaction is made of; live state is rendered for it."""
        asked = self._model.ask(reason, instructions, target, share=share)
        asked = msgspec.structs.replace(asked, chosen=chosen)
        return self.taken(await self._shared.live.onto(asked, self._cursor.state))

    def taken(self, ask: FoldRequest) -> BoundaryWork:
        """Take from the path as it is what is asked."""
        state = self._cursor.state
        return BoundaryWork(
            entries=state.entries(),
            ask=ask,
            size=ask.overhead_tokens + state.tokens,
            prefix=self._shared.prefix(),
            base=drafted(state, Pruned("", None, Receipt(ask.reason))),
        )

    async def make(self, work: BoundaryWork, opened: Span, *, waited: bool = False) -> Outcome:
        """Make a boundary, beside whatever the session does meanwhile; who waits for it may read along."""
        info = await self._shared.store.info(self._shared.id) if opened.recording else None
        started, counter = time.perf_counter(), self._model.setup.counter
        total = info.messages if info else 0
        watched = spans.Watched(self._shared.summarizer, opened, work.size, counter, total)
        read = waited and self._events.heard(SummaryStreamed.name)
        outcome = await self.execute(work, watched, self._streamed if read else None)
        if isinstance(outcome, Nothing):
            return outcome
        if isinstance(outcome, Compacted):
            outcome = await self.certifier.certified(work.entries, outcome, work.ask.policy)
        spent = round((time.perf_counter() - started) * 1000, 3)
        receipt = msgspec.structs.replace(outcome.receipt, duration_ms=spent)
        return msgspec.structs.replace(outcome, receipt=receipt)

    async def execute(
        self, work: BoundaryWork, summarizer: Summarizer, on_text: Callable[[str | None], None] | None
    ) -> Outcome:
        """Plan the boundary as hooks let it, with summaries by `summarizer`, which `on_text` reads along."""
        ask = await self._shared.hooks.onto(work.ask, self._planned_of(work))
        if isinstance(ask, Nothing):
            return ask
        steps = _planned(work.entries, ask, self._model.setup.counter, self._cursor.state.clean)
        return await execute(
            steps,
            summarizer,
            aside=True,
            prefix=work.prefix,
            failed=self._summary_failed,
            on_text=on_text,
        )

    def _streamed(self, text: str | None) -> None:
        self._events.emit(SummaryStreamed(text=text or "", anew=text is None))

    def _planned_of(self, work: BoundaryWork) -> PlannedCompaction:
        return PlannedCompaction(
            session=self._shared.id,
            reason=work.ask.reason,
            size=work.size,
            usable=work.ask.usable,
            messages=sum(isinstance(entry, Said) for entry in work.entries),
            instructions=work.ask.instructions,
        )

    def _summary_failed(self, why: str) -> None:
        """Say that code had to write a summary in the place of the summariser."""
        self._events.emit(WarningGiven(kind="summary_failed", text=why))

    async def failed(self, reason: Reason, error: Exception) -> None:
        """Note that a compaction failed; one that somebody asked for is told to them, and is no strike."""
        notes = self._shared.watch.ended(reason, failure_of(error), self._model.trigger_facts(), time.time())
        if notes:
            async with self._shared.locked(follow=False):
                await self.note(notes)

    # ---- the end of every compaction; the lock is held

    async def commit(
        self, draft: Draft, ask: FoldRequest, opened: Span, *, waited: bool
    ) -> Receipt | Nothing:
        """Put a draft onto the path as it is now, and append it."""
        for _ in range(RETRIES):
            state = self._cursor.state
            now = await self._shared.live.onto(msgspec.structs.replace(ask, number=number_of(state)), state)
            found = rebased(CompactionInput(state, now, self._model.setup.counter), draft)
            if isinstance(found, Nothing):
                break
            boundary = msgspec.structs.replace(found.boundary, at=time.time())
            entry = await self._cursor.commit(boundary, self._model.notes(), found.after)
            if entry is not None:
                self.told(entry, boundary, opened, waited=waited)
                return boundary.receipt
        else:
            found = VOID
        if found is VOID:
            found = Nothing("nothing_new", "another boundary came first")
        return await self.idle(ask, found) if waited else found

    async def idle(self, ask: FoldRequest, outcome: Nothing) -> Nothing:
        """Say that no boundary was made; a trigger is not heeded again before the view has grown."""
        self._events.emit(NothingDone(reason=ask.reason, why=outcome.why, detail=outcome.detail))
        facts = self._model.trigger_facts()
        await self.note(self._shared.watch.ended(ask.reason, outcome.why, facts, time.time()))
        return outcome

    def told(self, entry: str, boundary: Compacted | Pruned, opened: Span, *, waited: bool) -> None:
        """Tell of a boundary that was appended."""
        self._shared.watch.folded()
        spans.committed(opened, boundary, drafted=not waited)
        done = CompactionDone if folds(boundary) else PruneDone
        self._events.emit(done(entry=entry, receipt=boundary.receipt, drafted=not waited))
        if isinstance(boundary, Pruned):
            return
        count = boundary.checkpoint.number
        if _many(count) or self._model.setup.policy.warn_each:
            often = "once" if count == 1 else f"{count} times"
            text = (
                f"this session was compacted {often}: what is told again and again loses detail. "
                "A new session, begun by a hand-off, starts fresh; recall finds what was folded."
            )
            self._events.emit(WarningGiven(kind="repeated_compactions", text=text, count=count))

    async def note(self, notes: Sequence[Noted]) -> None:
        """Write what a failure leaves in the log, and tell it; a store that fails too is logged."""
        try:
            for note in notes:
                await self._cursor.write(note)
        except FoldlineError as error:
            log.warning("session %s: a strike could not be noted: %s", self._shared.id, error)
            return
        for note in notes:
            if note.kind == "strike":
                self._events.emit(Struck(**note.data, strikes=self._model.trigger_facts().breaker().strikes))
            else:
                self._events.emit(CoolingDown(**note.data))


def _planned(entries: list[Entry], ask: FoldRequest, counter: Counter, clean: CleanEntries) -> Steps:
    """Plan a compaction of a view state of its own, so that nothing it reads changes meanwhile.

    What it finds out about secrets stays known, so that the commit has only what came since to look at.
    """
    state = ViewState(entries, counter=counter, clean=clean)
    return (yield from plan(CompactionInput(state, ask, counter, scale=scaled)))


def failure_of(error: Exception) -> Failure:
    """Return the failure that an error is noted as."""
    return "floor" if isinstance(error, FloorExceeded) else "error"


def _many(count: int) -> bool:
    """Whether so many compactions are worth a warning: 3, 6, 12, 24 ... of them."""
    times, rest = divmod(count, REPEATED)
    return not rest and times.bit_count() == 1
