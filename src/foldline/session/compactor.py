"""Every compaction of a live session: asked for, at a trigger, behind an overflow; drafted or waited for.

There is one way: what is to be folded is taken from the path, a boundary is made of it while the session may go
on, and it is put onto the path as it is then, in one append. Nothing is made twice at a time. The session's lock
is held to look and to commit, never while a summary is written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from foldline.core.compact.plan import Outcome, Steps, plan
from foldline.core.compact.rebase import GIVEN, VOID, Draft, drafted, rebased
from foldline.core.decide.ask import Ask, Nothing, Reason
from foldline.core.decide.triggers import Compact, Refuse, StartDraft
from foldline.core.log.entries import Compacted, Entry, Pruned, Receipt
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.errors import CompactionFailed, FloorExceeded, FoldlineError
from foldline.executor import execute
from foldline.session import spans, strikes
from foldline.session.cursor import RETRIES, Cursor
from foldline.session.drafts import Drafts
from foldline.session.events import (
    CompactionDone,
    CompactionStarted,
    DraftFailed,
    DraftReady,
    DraftStarted,
    Events,
    NothingDone,
    PruneDone,
    WarningGiven,
)
from foldline.session.knowing import Knowing
from foldline.session.setup import Setup
from foldline.summarizers.base import Summarizer
from foldline.tracing import Span

log = logging.getLogger("foldline")

Asking = Callable[[Ask, ViewState], Awaitable[Ask]]

FIRST = Nothing("nothing_new", "another one came first")
REPEATED = 3  # compactions worth a warning, and again when they have doubled: what is folded thrice is told at third hand


class Compactor(Knowing):
    """The compactions of one session."""

    def __init__(self, writer: Cursor, setup: Setup, events: Events, summarizer: Summarizer) -> None:
        super().__init__(writer, setup, events)
        self.summarizer = summarizer
        self.drafts = Drafts()
        self.asking: Asking = _as_it_is  # adds what a session knows beside its messages
        self.lock = asyncio.Lock()  # the session's: held to read and to write its log
        self._one = asyncio.Lock()  # held while a compaction is made that somebody waits for

    async def use_model(self, model: str | None, window: int | Window | None) -> None:
        """Go on with another model; a draft for the one before is dropped. The lock is held."""
        await self.drafts.stop()
        await super().use_model(model, window)

    # ---- at the policy's moments; the lock is held

    async def look(self) -> Callable[[], Awaitable[object]] | None:
        """Look at the triggers: begin a draft, commit one, or return what has to be waited for without the lock.

        Raises FloorExceeded where nothing can help.
        """
        fold, triggers = self._log.fold, self.triggers
        if await self._with_draft():
            triggers.looked()
            return None
        due = triggers.due(fold, drafting=self.drafts.there(fold))
        if isinstance(due, Refuse):
            raise FloorExceeded(due.floor, due.usable, due.breakdown)
        if not isinstance(due, Compact):
            triggers.looked()
            if isinstance(due, StartDraft) and triggers.worth_a_try(fold, due.usable):
                self._draft(due)
            return None
        reason = reason_of(due)
        if not triggers.worth_a_try(fold, due.usable) and reason != "overflow":
            triggers.looked()
            return None
        if self.drafts.running:
            # it is looked at again at the next call; what fits needs no waiting
            fits = reason == "threshold" and due.size <= due.usable
            return None if fits else self.drafts.finished
        return partial(self._by_itself, reason, fold.boundaries, fits=due.size <= due.usable)

    async def _with_draft(self) -> bool:
        """Commit the draft that is ready, if a boundary is due; False where one is due and it will not do.

        Above the soft trigger one is due as soon as the provider's cache is cold: there is none to lose, and a
        shorter request costs less. The floor and the breaker were asked when the draft was made, and it is
        committed only where it fits.
        """
        draft = self.drafts.ready
        if draft is None:
            return False
        economy = self.ask("threshold").economy
        cold = economy is not None and economy.cold
        due = self.triggers.due(self._log.fold, drafting=not cold, careful=False)
        if not isinstance(due, Compact | StartDraft):
            return False
        done = await self._commit_draft(draft, self.ask(reason_of(due)))
        return not isinstance(done, Nothing) or done.why == "signed_thinking"

    async def _by_itself(self, reason: Reason, seen: tuple[str, ...], *, fits: bool) -> None:
        """Compact because of a trigger; where that fails, the session goes on as long as its view fits.

        Until it has ended the moments stay: who asks for the context meanwhile waits for the same compaction.
        """
        try:
            await self.compact(reason, seen=seen)
            self.triggers.looked()
        except FoldlineError as error:
            self.triggers.looked()
            if not fits:
                raise
            text = f"a compaction failed, the session goes on with its whole view: {error}"
            self._events.emit(WarningGiven(kind="failed", text=text))

    # ---- overflow

    async def overflow(self, share: float, seen: tuple[str, ...]) -> Receipt | Nothing:
        """Compact behind an overflow: with the draft, where there is one, else a compaction that is waited for.

        `seen` are the boundaries of the path that overflowed; where others came first, nothing is done.
        """
        await self.drafts.finished()
        async with self.lock:
            await self._log.ready()
            if self._came_first(seen, "overflow"):
                return FIRST
            ready, ask = self.drafts.ready, self.ask("overflow", share=share)
            # made for the window that was believed in then: it has to be small enough for the one there is
            if ready is not None and ready.boundary.receipt.tokens_after <= ask.usable:
                done = await self._commit_draft(ready, ask)
                if not isinstance(done, Nothing):
                    return done
        return await self.compact("overflow", share=share, seen=seen)

    # ---- drafts

    def _draft(self, due: StartDraft) -> None:
        fold, ask = self._log.fold, self.ask("threshold")
        self._events.emit(DraftStarted(size=due.size, threshold=due.threshold))
        self.drafts.start(self._drafting(fold.entries(), fold, ask))

    async def _drafting(self, entries: list[Entry], fold: ViewState, ask: Ask) -> Draft | None:
        """Make a draft; what goes wrong is told and noted, never raised."""
        base = drafted(fold, Pruned("", None, Receipt(ask.reason)))
        size = ask.apart_tokens + fold.tokens
        try:
            with spans.compaction(self._log.session, ask.reason, size, name=spans.DRAFT) as opened:
                outcome = await self._make(entries, await self.asking(ask, fold), size, opened)
        except Exception as error:
            why = "floor" if isinstance(error, FloorExceeded) else "error"
            log.warning("session %s: a draft failed: %s", self._log.session, error)
            await self._draft_failed(ask, why, str(error))
            return None
        if isinstance(outcome, Nothing):
            await self._draft_failed(ask, outcome.why, outcome.detail)
            return None
        self._events.emit(DraftReady(receipt=outcome.receipt))
        return msgspec.structs.replace(base, boundary=outcome)

    async def _draft_failed(self, ask: Ask, why: str, detail: str) -> None:
        self._events.emit(DraftFailed(why=why, detail=detail))
        async with self.lock:
            await self._log.ready()
            self.triggers.tried(self._log.fold, in_vain=True)
            await self._strike(ask.reason, why)

    async def _commit_draft(self, draft: Draft, ask: Ask) -> Receipt | Nothing:
        size = ask.apart_tokens + self._log.fold.tokens
        with spans.compaction(self._log.session, ask.reason, size) as opened:
            done = await self._commit(draft, ask, opened, waited=False)
        if not (isinstance(done, Nothing) and done.why == "signed_thinking"):
            self.drafts.ready = None
        return done

    # ---- compactions that somebody waits for; the lock is not held

    async def compact(
        self,
        reason: Reason,
        instructions: str | None = None,
        target: int | None = None,
        *,
        share: float = 1.0,
        seen: tuple[str, ...] | None = None,
    ) -> Receipt | Nothing:
        """Compact now; returns the receipt, or why there was nothing to do.

        `share` is the part of the window that the view may take; with `seen`, the boundaries of the path when it
        was found to be necessary, it is left out where another one came first. Raises FloorExceeded, or
        CompactionFailed for what went wrong in it; the session is as it was.
        """
        async with self._one:
            async with self.lock:
                await self._log.ready()
                fold = self._log.fold
                entries = fold.entries()
                if seen is not None and self._came_first(seen, reason):
                    return FIRST
                ask = await self.asking(self.ask(reason, instructions, target, share=share), fold)
                size = ask.apart_tokens + fold.tokens
                base = drafted(fold, Pruned("", None, Receipt(reason)))
            await self.drafts.stop()
            self._events.emit(CompactionStarted(reason=reason, size=size))
            with spans.compaction(self._log.session, reason, size) as opened:
                try:
                    outcome = await self._make(entries, ask, size, opened)
                except Exception as error:
                    await self._failed(reason, error)
                    if isinstance(error, FoldlineError):
                        raise
                    text = f"the compaction failed, the session is as it was: {error!r}"
                    raise CompactionFailed(text) from error
                async with self.lock:
                    await self._log.ready()
                    if isinstance(outcome, Nothing):
                        return await self._idle(ask, outcome)
                    draft = msgspec.structs.replace(base, boundary=outcome)
                    return await self._commit(draft, ask, opened, waited=True)

    def _came_first(self, seen: tuple[str, ...], reason: Reason) -> bool:
        """Whether a compaction that a trigger wants is no longer to be made: another one was, or failed to gain."""
        fold = self._log.fold
        fruitless = not self.triggers.worth_a_try(fold, self.ask(reason).usable)
        return seen != fold.boundaries or (fruitless and reason != "overflow")

    async def preview(self, instructions: str | None = None, target: int | None = None) -> Outcome:
        """Return what `compact` would append, and append nothing."""
        async with self.lock:
            await self._log.ready()
            entries = self._log.fold.entries()
            asked = self.ask("manual" if target is None else "target", instructions, target)
            ask = await self.asking(asked, self._log.fold)
        return await execute(planned(entries, ask, self.setup.counter), self.summarizer, aside=True)

    async def _make(self, entries: list[Entry], ask: Ask, size: int, opened: Span) -> Outcome:
        """Make a boundary of these entries, beside whatever the session does meanwhile."""
        started, counter = time.perf_counter(), self.setup.counter
        watched = spans.Watched(self.summarizer, opened, size, counter)
        outcome = await execute(planned(entries, ask, counter), watched, aside=True)
        if isinstance(outcome, Nothing):
            return outcome
        spent = round((time.perf_counter() - started) * 1000, 3)
        receipt = msgspec.structs.replace(outcome.receipt, duration_ms=spent)
        return msgspec.structs.replace(outcome, receipt=receipt)

    async def _failed(self, reason: str, error: Exception) -> None:
        """Note that a compaction failed; one that somebody asked for is told to them, and is no strike."""
        if reason in GIVEN:
            return
        async with self.lock:
            await self._log.ready()
            await self._strike(reason, "floor" if isinstance(error, FloorExceeded) else "error")

    # ---- the end of every compaction; the lock is held

    async def _commit(self, draft: Draft, ask: Ask, opened: Span, *, waited: bool) -> Receipt | Nothing:
        """Put a draft onto the path as it is now, and append it."""
        for _ in range(RETRIES):
            fold = self._log.fold
            now = await self.asking(msgspec.structs.replace(ask, number=_number(fold)), fold)
            found = rebased(draft, fold, now, self.setup.counter)
            if isinstance(found, Nothing):
                break
            boundary = msgspec.structs.replace(found.boundary, at=time.time())
            entry = await self._log.commit(boundary, self.notes(), found.after)
            if entry is not None:
                self._told(entry, boundary, opened, waited=waited)
                return boundary.receipt
        else:
            found = VOID
        if found is VOID:
            found = Nothing("nothing_new", "another boundary came first")
        return await self._idle(ask, found) if waited else found

    async def _idle(self, ask: Ask, outcome: Nothing) -> Nothing:
        """Say that no boundary was made; a trigger is not heeded again before the view has grown."""
        self._events.emit(NothingDone(reason=ask.reason, why=outcome.why, detail=outcome.detail))
        if ask.automatic:
            self.triggers.tried(self._log.fold, in_vain=True)
        if ask.automatic or ask.reason == "overflow":
            await self._strike(ask.reason, outcome.why)
        return outcome

    def _told(self, entry: str, boundary: Compacted | Pruned, opened: Span, *, waited: bool) -> None:
        self.triggers.tried(self._log.fold, in_vain=False)
        spans.committed(opened, boundary, drafted=not waited)
        if isinstance(boundary, Pruned):
            self._events.emit(PruneDone(entry=entry, receipt=boundary.receipt, drafted=not waited))
            return
        self._events.emit(CompactionDone(entry=entry, receipt=boundary.receipt, drafted=not waited))
        count = boundary.checkpoint.number
        if _many(count):
            text = (
                f"this session was compacted {count} times: what is told again and again loses detail. "
                "A new session, begun by a hand-off, starts fresh; recall finds what was folded."
            )
            self._events.emit(WarningGiven(kind="repeated_compactions", text=text, count=count))

    async def _strike(self, reason: str, why: str) -> None:
        """Note a failure; a store that cannot is logged: the compaction has failed already."""
        if not strikes.fails(why):
            return
        try:
            happened = await strikes.strike(self._log, reason, why, error=why == "error")
        except FoldlineError as error:
            log.warning("session %s: a strike could not be noted: %s", self._log.session, error)
            return
        for event in happened:
            self._events.emit(event)


def planned(entries: list[Entry], ask: Ask, counter: Counter) -> Steps:
    """Plan a compaction of a fold of its own, so that nothing it reads changes meanwhile."""
    return (yield from plan(ViewState(entries, counter=counter), ask, counter))


def reason_of(due: Compact | StartDraft) -> Reason:
    """Return the reason that a trigger gives for a compaction."""
    if due.reason == "overflow":
        return "overflow"
    return "model_switch" if due.reason == "model_switch" else "threshold"


def _many(count: int) -> bool:
    """Whether so many compactions are worth a warning: 3, 6, 12, 24 ... of them."""
    times, rest = divmod(count, REPEATED)
    return not rest and times.bit_count() == 1


def _number(fold: ViewState) -> int:
    return fold.boundary.checkpoint.number + 1 if fold.boundary is not None else 1


async def _as_it_is(ask: Ask, _fold: ViewState) -> Ask:
    return ask
