"""Every compaction of a live session: asked for, at a trigger, behind an overflow; drafted or waited for.

The triggers are looked at before a request, and in the background behind the messages that the policy names.
There is one way: what is to be folded is taken from the path, a boundary is made of it while the session may
go on, and it is put onto the path as it is then, in one append. Nothing is made twice at a time. The
session's lock is held to look and to commit, never while a summary is written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec

from foldline.core.checkpoint.request import Prefix
from foldline.core.compact.by_hand import with_summary
from foldline.core.compact.display import display
from foldline.core.compact.job import Job
from foldline.core.compact.plan import Outcome, Steps, plan
from foldline.core.compact.rebase import VOID, Draft, drafted, rebased
from foldline.core.compact.sight import number_of, standing
from foldline.core.decide.ask import GIVEN, Ask, Nothing
from foldline.core.decide.breaker import Failure
from foldline.core.decide.policy import Policy
from foldline.core.decide.triggers import Compact, Refuse, StartDraft
from foldline.core.decide.watch import CommitDraft, Wait
from foldline.core.log.entries import Compacted, Entry, Noted, Pruned, Reason, Receipt
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import Counter
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.errors import CompactionFailed, FloorExceeded, FoldlineError
from foldline.executor import execute
from foldline.session import spans
from foldline.session.checks import Checks
from foldline.session.cursor import RETRIES
from foldline.session.drafts import Drafts
from foldline.session.events import (
    CompactionDone,
    CompactionStarted,
    CoolingDown,
    DraftFailed,
    DraftReady,
    DraftStarted,
    NothingDone,
    PolicyChanged,
    PruneDone,
    Struck,
    WarningGiven,
)
from foldline.session.preview import Preview
from foldline.session.shared import Shared
from foldline.summarizers.base import Summarizer
from foldline.tracing import Span

log = logging.getLogger("foldline")

FIRST = Nothing("nothing_new", "another one came first")
BY_ITSELF = ("threshold", "overflow", "model_switch")  # reasons of compactions that nobody asked for
REPEATED = (
    3  # compactions worth a warning, and again when they have doubled: each summary is made of the one before
)


class _Work(msgspec.Struct, frozen=True):
    """What a compaction is made of, as it was taken from the path.

    `size` is the view's in tokens, `prefix` the session's next request, `base` the draft without its
    boundary.
    """

    entries: list[Entry]
    ask: Ask
    size: int
    prefix: Prefix | None
    base: Draft


class Compactor:
    """The compactions of one session."""

    def __init__(self, shared: Shared) -> None:
        self.drafts = Drafts(shared.watch)
        self.checks = Checks(self._look_behind)
        self._shared = shared
        self._cursor = shared.cursor
        self._model = shared.model
        self._events = shared.events
        self._one = asyncio.Lock()  # held while a compaction is made that somebody waits for
        self._wish: str | None = None  # what the model asked a compaction for

    async def use_model(self, model: str | None, window: int | Window | None) -> None:
        """Go on with another model; a draft for the one before is dropped. The lock is held."""
        await self.drafts.stop()
        self._model.change(model, window)
        await self._model.note_change()

    async def use_policy(self, policy: Policy) -> None:
        """Go on by another policy; a draft by the one before is dropped. The lock is held."""
        await self.drafts.stop()
        self._model.follow(policy)
        self._events.emit(PolicyChanged(policy=policy.name))

    def wish(self, focus: str) -> None:
        """Compact before the next request, as the model asked; `focus` is what to look at first."""
        self._wish = focus

    async def close(self) -> None:
        """Cancel what goes on in the background; the session is as it was."""
        await self.checks.stop()
        await self.drafts.stop()

    # ---- at the policy's moments; the lock is held

    async def look(self) -> Callable[[], Awaitable[object]] | None:
        """Look at what a request needs: a compaction that the model asked for, else what the triggers say.

        Returns what to wait for without the lock. Raises FloorExceeded where nothing can help.
        """
        if self._wish is not None:
            wish, self._wish = self._wish, None
            return partial(self._as_wished, wish)
        return await self._look_at_triggers()

    async def _look_at_triggers(self) -> Callable[[], Awaitable[object]] | None:
        """Begin a draft, commit one, or return what to wait for without the lock; raises as `look` does."""
        watch = self._shared.watch
        while True:
            self.drafts.check(self._cursor.fold)
            due = watch.due(self._model.sight(), cold=self._cold())
            if not isinstance(due, CommitDraft):
                break
            if await self._commit_draft(self._model.ask(due.reason)):
                watch.looked()
                return None
        if isinstance(due, Refuse):
            raise FloorExceeded(due.floor, due.usable, due.breakdown)
        if isinstance(due, StartDraft):
            self._draft(due)
        if isinstance(due, Wait):
            return self.drafts.finished
        if isinstance(due, Compact):
            return partial(self._by_itself, due, self._cursor.fold.boundaries, watch.happenings)
        return None

    def appended(self) -> None:
        """Begin a look in the background, if the policy wants one now; the lock is held."""
        if self._shared.watch.looks_at_once(self._cursor.fold.open_calls):
            self.checks.begin()

    async def _look_behind(self) -> None:
        """Do what the triggers ask for behind a message; what fails is told, never raised."""
        try:
            while True:
                async with self._shared.locked(follow=False) as cursor:
                    if not self._shared.watch.looks_at_once(cursor.fold.open_calls):
                        return
                    wait = await self._look_at_triggers()
                    if wait is None:
                        return
                await wait()
        except FloorExceeded as error:  # the next request raises it
            log.info("session %s: nothing can be folded in the background: %s", self._shared.id, error)
        except Exception as error:
            log.warning("session %s: a compaction in the background failed: %s", self._shared.id, error)
            self._tell_failure(f"a compaction in the background failed: {error}")

    async def settled(self) -> None:
        """Wait for what goes on in the background: a look at the triggers, a compaction, a draft."""
        while self.checks.running or self.drafts.running:
            await self.checks.finished()
            await self.drafts.finished()

    def _cold(self) -> bool:
        """Whether the provider's cache is cold, so that committing the draft that is ready costs nothing."""
        economy = self._model.ask("threshold").economy if self.drafts.ready is not None else None
        return economy is not None and economy.cold

    async def _as_wished(self, focus: str) -> None:
        """Compact because the model asked for it; where that fails, an event tells, and the work goes on."""
        try:
            await self.compact("agent", focus or None)
        except asyncio.CancelledError:
            self._wish = focus  # the next one that asks for the context waits for it
            raise
        except FoldlineError as error:
            session = self._shared.id
            log.warning("session %s: the compaction that the model asked for failed: %s", session, error)

    async def carry_on(self) -> None:
        """Append the policy's request to continue, where a boundary left nothing else to send.

        Only behind a reply that was cut off: what waits for the user, or is done, is not continued. The lock
        is held.
        """
        text = self._model.setup.policy.continuation
        entries = self._cursor.fold.entries() if text else []
        newest = next((entry for entry in reversed(entries) if not isinstance(entry, Noted)), None)
        if not isinstance(newest, Compacted) or newest.receipt.reason not in BY_ITSELF:
            return
        if standing(self._cursor.fold).because == "cut_off":
            await self._cursor.say([Message("user", (Text(text),), injected=True)])

    async def _by_itself(self, due: Compact, seen: tuple[str, ...], happenings: int) -> None:
        """Compact because of a trigger; where that fails, the session goes on as long as its view fits.

        Until it has ended the moments stay: who asks for the context meanwhile waits for the same compaction,
        and looks again. Those stay that came after the look.
        """
        try:
            done = await self.compact(due.reason, seen=seen, happenings=happenings)
            if done is not FIRST:
                self._shared.watch.looked(happenings)
        except FoldlineError as error:
            self._shared.watch.looked(happenings)
            if due.size > due.usable:
                raise
            self._tell_failure(f"a compaction failed, the session goes on with its whole view: {error}")

    def _tell_failure(self, text: str) -> None:
        self._events.emit(WarningGiven(kind="failed", text=text))

    # ---- overflow

    async def overflow(self, share: float, seen: tuple[str, ...]) -> Receipt | Nothing:
        """Compact after an overflow: commit the draft, if there is one, else make a boundary now.

        `seen` are the boundaries of the path that overflowed; where others came first, nothing is done.
        """
        await self.drafts.finished()
        async with self._shared.locked(follow=False):
            if self._came_first(seen, "overflow"):
                return FIRST
            ready, ask = self.drafts.ready, self._model.ask("overflow", share=share)
            # made for the window that was believed in then: it has to be small enough for the one there is
            if ready is not None and ready.boundary.receipt.tokens_after <= ask.usable:
                done = await self._commit_draft(ask)
                if isinstance(done, Receipt):
                    return done
        return await self.compact("overflow", share=share, seen=seen)

    # ---- drafts

    def _draft(self, due: StartDraft) -> None:
        work = self._taken(self._model.ask("threshold"))
        self._events.emit(DraftStarted(size=due.size, threshold=due.threshold))
        self.drafts.start(self._drafting(work, self._cursor.fold))

    async def _drafting(self, work: _Work, fold: ViewState) -> Draft | None:
        """Make a draft; what goes wrong is told and noted, never raised."""
        ask = work.ask
        try:
            with spans.compaction(self._shared.id, ask.reason, work.size, name=spans.DRAFT) as opened:
                ask = await self._shared.live.onto(ask, fold)
                outcome = await self._made(msgspec.structs.replace(work, ask=ask), opened)
        except Exception as error:
            log.warning("session %s: a draft failed: %s", self._shared.id, error)
            await self._draft_failed(ask, _failure(error), str(error))
            return None
        if isinstance(outcome, Nothing):
            await self._draft_failed(ask, outcome.why, outcome.detail)
            return None
        self._events.emit(DraftReady(receipt=outcome.receipt))
        return msgspec.structs.replace(work.base, boundary=outcome)

    async def _draft_failed(self, ask: Ask, why: Failure, detail: str) -> None:
        self._events.emit(DraftFailed(why=why, detail=detail))
        async with self._shared.locked(follow=False):
            sight = self._model.sight()
            await self._note(self._shared.watch.ended(ask.reason, why, sight, time.time(), drafted=True))

    async def _commit_draft(self, ask: Ask) -> Receipt | Nothing | None:
        """Commit the draft that is ready, or drop it; None where it will not do.

        Inside a tool loop with signed thinking it waits for the end of the loop: then that is returned.
        """
        draft = self.drafts.ready
        assert draft is not None
        size = ask.apart_tokens + self._cursor.fold.tokens
        with spans.compaction(self._shared.id, ask.reason, size) as opened:
            done = await self._commit(draft, ask, opened, waited=False)
        if isinstance(done, Nothing) and done.why == "signed_thinking":
            return done
        self.drafts.drop()
        return done if isinstance(done, Receipt) else None

    # ---- compactions that somebody waits for; the lock is not held

    async def compact(
        self,
        reason: Reason,
        instructions: str | None = None,
        target: int | None = None,
        *,
        share: float = 1.0,
        seen: tuple[str, ...] | None = None,
        happenings: int | None = None,
    ) -> Receipt | Nothing:
        """Compact now; returns the receipt, or why there was nothing to do.

        `share` is the part of the window that the view may take; with `seen`, the boundaries of the path when
        it was found to be necessary, it is left out where another one came first, and with `happenings`, the
        watch's at that look, where another one failed first. Raises FloorExceeded, or CompactionFailed for
        what went wrong in it; the session is as it was.
        """
        if reason in GIVEN:
            await self.checks.stop()
        async with self._one:
            async with self._shared.locked(follow=False):
                if happenings is not None and self._shared.watch.has_looked(happenings):
                    return FIRST
                if seen is not None and self._came_first(seen, reason):
                    return FIRST
                asked = self._model.ask(reason, instructions, target, share=share)
                work = self._taken(await self._shared.live.onto(asked, self._cursor.fold))
            await self.drafts.stop()
            self._events.emit(CompactionStarted(reason=reason, size=work.size))
            with spans.compaction(self._shared.id, reason, work.size) as opened:
                try:
                    outcome = await self._made(work, opened)
                except Exception as error:
                    await self._failed(reason, error)
                    if isinstance(error, FoldlineError):
                        raise
                    text = f"the compaction failed, the session is as it was: {error!r}"
                    raise CompactionFailed(text) from error
                async with self._shared.locked(follow=False):
                    if isinstance(outcome, Nothing):
                        return await self._idle(work.ask, outcome)
                    draft = msgspec.structs.replace(work.base, boundary=outcome)
                    return await self._commit(draft, work.ask, opened, waited=True)

    def _came_first(self, seen: tuple[str, ...], reason: Reason) -> bool:
        """Whether a trigger's compaction is no longer needed: another one was made, or gained too little."""
        fold = self._cursor.fold
        fruitless = not self._shared.watch.worth_a_try(fold.tokens, self._model.ask(reason).usable)
        return seen != fold.boundaries or (fruitless and reason != "overflow")

    async def preview(self, instructions: str | None = None, target: int | None = None) -> Preview | Nothing:
        """Return what `compact` would append, and append nothing."""
        await self.checks.stop()
        async with self._shared.locked(follow=False):
            asked = self._model.ask("manual" if target is None else "target", instructions, target)
            work = self._taken(await self._shared.live.onto(asked, self._cursor.fold))
        outcome = await self._executed(work, self._shared.summarizer)
        if isinstance(outcome, Nothing):
            return outcome
        return Preview(msgspec.structs.replace(work.base, boundary=outcome), work.ask)

    async def commit(self, preview: Preview, summary: str | None) -> Receipt | Nothing:
        """Append a preview's boundary, with the summary as the user edited it (None: as shown)."""
        draft = preview.draft if summary is None else with_summary(preview.draft, summary)
        await self.checks.stop()
        async with self._one:
            await self.drafts.stop()
            size = self._model.view_tokens
            with spans.compaction(self._shared.id, preview.ask.reason, size) as opened:
                async with self._shared.locked(follow=False):
                    return await self._commit(draft, preview.ask, opened, waited=True)

    async def display(self) -> str:
        """Return two sentences on the session, for people."""
        async with self._shared.locked():
            counter = self._model.setup.counter
            state = ViewState(self._cursor.fold.entries(), counter=counter)
            job, prefix = Job(state, self._model.ask("manual"), counter), self._shared.prefix()
        return await execute(display(job), self._shared.summarizer, aside=True, prefix=prefix)

    # ---- making a boundary; the lock is held to take the work, and not while it is done

    def _taken(self, ask: Ask) -> _Work:
        """Take from the path as it is what a compaction is made of."""
        fold = self._cursor.fold
        return _Work(
            entries=fold.entries(),
            ask=ask,
            size=ask.apart_tokens + fold.tokens,
            prefix=self._shared.prefix(),
            base=drafted(fold, Pruned("", None, Receipt(ask.reason))),
        )

    async def _made(self, work: _Work, opened: Span) -> Outcome:
        """Make a boundary, beside whatever the session does meanwhile."""
        started, counter = time.perf_counter(), self._model.setup.counter
        watched = spans.Watched(self._shared.summarizer, opened, work.size, counter)
        outcome = await self._executed(work, watched)
        if isinstance(outcome, Nothing):
            return outcome
        spent = round((time.perf_counter() - started) * 1000, 3)
        receipt = msgspec.structs.replace(outcome.receipt, duration_ms=spent)
        return msgspec.structs.replace(outcome, receipt=receipt)

    async def _executed(self, work: _Work, summarizer: Summarizer) -> Outcome:
        steps = _planned(work.entries, work.ask, self._model.setup.counter)
        return await execute(steps, summarizer, aside=True, prefix=work.prefix, failed=self._summary_failed)

    def _summary_failed(self, why: str) -> None:
        """Say that code had to write a summary in the place of the summariser."""
        self._events.emit(WarningGiven(kind="summary_failed", text=why))

    async def _failed(self, reason: Reason, error: Exception) -> None:
        """Note that a compaction failed; one that somebody asked for is told to them, and is no strike."""
        notes = self._shared.watch.ended(reason, _failure(error), self._model.sight(), time.time())
        if notes:
            async with self._shared.locked(follow=False):
                await self._note(notes)

    # ---- the end of every compaction; the lock is held

    async def _commit(self, draft: Draft, ask: Ask, opened: Span, *, waited: bool) -> Receipt | Nothing:
        """Put a draft onto the path as it is now, and append it."""
        for _ in range(RETRIES):
            fold = self._cursor.fold
            now = await self._shared.live.onto(msgspec.structs.replace(ask, number=number_of(fold)), fold)
            found = rebased(Job(fold, now, self._model.setup.counter), draft)
            if isinstance(found, Nothing):
                break
            boundary = msgspec.structs.replace(found.boundary, at=time.time())
            entry = await self._cursor.commit(boundary, self._model.notes(), found.after)
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
        sight = self._model.sight()
        await self._note(self._shared.watch.ended(ask.reason, outcome.why, sight, time.time()))
        return outcome

    def _told(self, entry: str, boundary: Compacted | Pruned, opened: Span, *, waited: bool) -> None:
        self._shared.watch.folded()
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

    async def _note(self, notes: Sequence[Noted]) -> None:
        """Write what a failure leaves in the log, and tell it; a store that fails too is logged."""
        try:
            for note in notes:
                await self._cursor.write(note)
        except FoldlineError as error:
            log.warning("session %s: a strike could not be noted: %s", self._shared.id, error)
            return
        for note in notes:
            if note.kind == "strike":
                self._events.emit(Struck(**note.data, strikes=self._model.sight().breaker().strikes))
            else:
                self._events.emit(CoolingDown(**note.data))


def _planned(entries: list[Entry], ask: Ask, counter: Counter) -> Steps:
    """Plan a compaction of a fold of its own, so that nothing it reads changes meanwhile."""
    return (yield from plan(Job(ViewState(entries, counter=counter), ask, counter)))


def _failure(error: Exception) -> Failure:
    return "floor" if isinstance(error, FloorExceeded) else "error"


def _many(count: int) -> bool:
    """Whether so many compactions are worth a warning: 3, 6, 12, 24 ... of them."""
    times, rest = divmod(count, REPEATED)
    return not rest and times.bit_count() == 1
