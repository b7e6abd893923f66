"""Make one boundary: snapshot the path, plan and summarise in the background, commit onto the current path.

The session stays usable meanwhile: its lock is held for the snapshot and the commit, never while a summary is
written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from foldline.core.checkpoint.obtain import FREE, Cost
from foldline.core.checkpoint.request import Prefix
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.fold_request import number_of
from foldline.core.compact.plan import Outcome, Steps, plan
from foldline.core.compact.rebase import VOID, Draft, drafted, rebased
from foldline.core.cut.edits import folds
from foldline.core.decide.ask import FoldRange, FoldRequest, Nothing
from foldline.core.decide.breaker import Failure
from foldline.core.decide.price import added, dollars
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

REPEATED = 3  # compactions after which to warn, then at each doubling: summaries of summaries lose detail


class BoundaryWork(msgspec.Struct, frozen=True):
    """The input of a compaction: a snapshot of the path.

    `size` is the view's size in tokens, `prefix` the session's next request, `base` the draft without its
    boundary.
    """

    entries: list[Entry]
    ask: FoldRequest
    size: int
    prefix: Prefix | None
    base: Draft


class BoundaryMaker:
    """Makes the boundaries of one session; `lock` is held by a compaction that a caller waits for."""

    def __init__(self, shared: Shared) -> None:
        self.lock = asyncio.Lock()
        self._shared = shared
        self._cursor = shared.cursor
        self._model = shared.model
        self._events = shared.events
        self.certifier = Certifier(shared)
        self._unused = FREE  # the cost of summaries that no boundary has; the next fold's receipt includes it

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
        """Snapshot the path for a compaction, with live state rendered."""
        ask = self._model.ask(reason, instructions, target, share=share)
        ask = msgspec.structs.replace(ask, chosen=chosen)
        return self.work_for(await self._shared.live.complete(ask, self._cursor.state))

    def work_for(self, ask: FoldRequest) -> BoundaryWork:
        """Snapshot the path for a request."""
        state = self._cursor.state
        return BoundaryWork(
            entries=state.entries(),
            ask=ask,
            size=ask.overhead_tokens + state.tokens,
            prefix=self._shared.prefix(),
            base=drafted(state, Pruned("", None, Receipt(ask.reason))),
        )

    async def make(self, work: BoundaryWork, opened: Span, *, waited: bool = False) -> Outcome:
        """Make a boundary without holding the lock; if a caller waits, emit the summary as it streams."""
        info = await self._shared.store.info(self._shared.id) if opened.recording else None
        started, counter = time.perf_counter(), self._model.setup.counter
        total = info.messages if info else 0
        watched = spans.TracedSummarizer(self._shared.summarizer, opened, work.size, counter, total)
        streams = waited and self._events.has_listeners(SummaryStreamed.name)
        try:
            outcome = await self.execute(work, watched, self._emit_summary if streams else None)
            if isinstance(outcome, Compacted):
                outcome = await self.certifier.certify(work.entries, outcome, work.ask.policy)
        except BaseException:
            self.left_unused(watched.cost)
            raise
        if isinstance(outcome, Nothing):
            self.left_unused(watched.cost)
            return outcome
        spent = round((time.perf_counter() - started) * 1000, 3)
        receipt = msgspec.structs.replace(outcome.receipt, duration_ms=spent)
        return msgspec.structs.replace(outcome, receipt=receipt)

    def left_unused(self, spent: Cost | Receipt) -> None:
        """Report the cost of a summary whose boundary was not appended."""
        self._unused = _sum(self._unused, spent)

    def _with_unused(self, boundary: Compacted | Pruned) -> Compacted | Pruned:
        """Return a fold whose receipt includes the cost of the summaries before it that were not used."""
        unused, receipt = self._unused, boundary.receipt
        if unused == FREE or not folds(boundary):
            return boundary
        tokens = unused.usage.total if unused.usage is not None else 0
        amount = f"{tokens:,} tokens" if unused.price is None else dollars(unused.price)
        note = f"the figures include {amount} for earlier summaries that were not used"
        total = _sum(unused, receipt)
        receipt = msgspec.structs.replace(
            receipt, usage=total.usage, price=total.price, notes=(*receipt.notes, note)
        )
        return msgspec.structs.replace(boundary, receipt=receipt)

    async def execute(
        self, work: BoundaryWork, summarizer: Summarizer, on_text: Callable[[str | None], None] | None
    ) -> Outcome:
        """Run the hooks, then plan the boundary with summaries by `summarizer`, streamed to `on_text`."""
        planned = PlannedCompaction(
            session=self._shared.id,
            reason=work.ask.reason,
            size=work.size,
            usable=work.ask.usable,
            messages=sum(isinstance(entry, Said) for entry in work.entries),
            instructions=work.ask.instructions,
        )
        ask = await self._shared.hooks.complete(work.ask, planned)
        if isinstance(ask, Nothing):
            return ask
        steps = _plan_steps(work.entries, ask, self._model.setup.counter, self._cursor.state.clean)
        return await execute(
            steps,
            summarizer,
            aside=True,
            prefix=work.prefix,
            failed=lambda why: self._events.emit(WarningGiven(kind="summary_failed", text=why)),
            on_text=on_text,
        )

    def _emit_summary(self, text: str | None) -> None:
        self._events.emit(SummaryStreamed(text=text or "", anew=text is None))

    async def failed(self, reason: Reason, error: Exception) -> None:
        """Note a failed automatic compaction as a strike; a manual one raises to its caller instead."""
        notes = self._shared.watch.ended(reason, failure_of(error), self._model.trigger_facts(), time.time())
        if notes:
            async with self._shared.locked(follow=False):
                await self.note(notes)

    # ---- the end of every compaction; the lock is held

    async def commit(
        self, draft: Draft, ask: FoldRequest, opened: Span, *, waited: bool
    ) -> Receipt | Nothing:
        """Rebase a draft onto the current path and append it."""
        for _ in range(RETRIES):
            state = self._cursor.state
            now = await self._shared.live.complete(
                msgspec.structs.replace(ask, number=number_of(state)), state
            )
            result = rebased(CompactionInput(state, now, self._model.setup.counter), draft)
            if isinstance(result, Nothing):
                break
            boundary = self._with_unused(msgspec.structs.replace(result.boundary, at=time.time()))
            entry = await self._cursor.commit(boundary, self._model.notes(), result.after)
            if entry is not None:
                self._unused = FREE if folds(boundary) else self._unused
                self.announce(entry, boundary, opened, waited=waited)
                return boundary.receipt
        else:
            result = VOID
        if result is VOID:
            result = Nothing("nothing_new", "another boundary came first")
        if not waited:
            return result
        self.left_unused(draft.boundary.receipt)
        return await self.idle(ask, result)

    async def idle(self, ask: FoldRequest, outcome: Nothing) -> Nothing:
        """Report that no boundary was made; triggers then wait until the view has grown."""
        self._events.emit(NothingDone(reason=ask.reason, why=outcome.why, detail=outcome.detail))
        facts = self._model.trigger_facts()
        await self.note(self._shared.watch.ended(ask.reason, outcome.why, facts, time.time()))
        return outcome

    def announce(self, entry: str, boundary: Compacted | Pruned, opened: Span, *, waited: bool) -> None:
        """Emit the events of an appended boundary, and a warning after many compactions."""
        self._shared.watch.folded()
        spans.record_commit(opened, boundary, drafted=not waited)
        event = CompactionDone if folds(boundary) else PruneDone
        self._events.emit(event(entry=entry, receipt=boundary.receipt, drafted=not waited))
        if isinstance(boundary, Pruned):
            return
        count = boundary.checkpoint.number
        if _is_warning_due(count) or self._model.setup.policy.warn_each:
            often = "once" if count == 1 else f"{count} times"
            text = (
                f"this session was compacted {often}: repeated summaries lose detail. "
                "Start a new session with a hand-off; recall finds what was folded."
            )
            self._events.emit(WarningGiven(kind="repeated_compactions", text=text, count=count))

    async def note(self, notes: Sequence[Noted]) -> None:
        """Store the notes of a failure and emit their events; a store error is only logged."""
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


def _plan_steps(entries: list[Entry], ask: FoldRequest, counter: Counter, clean: CleanEntries) -> Steps:
    """Plan a compaction on a separate view state, which does not change meanwhile.

    Redactions are cached in `clean`, so that the commit only redacts what came since.
    """
    state = ViewState(entries, counter=counter, clean=clean)
    return (yield from plan(CompactionInput(state, ask, counter, scale=scaled)))


def _sum(first: Cost, second: Cost | Receipt) -> Cost:
    prices = [price for price in (first.price, second.price) if price is not None]
    return Cost(added(first.usage, second.usage), sum(prices) if prices else None)


def failure_of(error: Exception) -> Failure:
    """Return the kind of failure to note for an error."""
    return "floor" if isinstance(error, FloorExceeded) else "error"


def _is_warning_due(count: int) -> bool:
    """Whether to warn after this many compactions: 3, 6, 12, 24 ..."""
    multiple, rest = divmod(count, REPEATED)
    return not rest and multiple.bit_count() == 1
