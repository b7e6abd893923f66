"""Automatic compactions: triggers are checked before a request, and in the background after an append.

The policy names the moments for background checks. `foldline.core.decide.watch` decides what is due; this
module does it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from foldline.core.compact.fold_request import continuation_of
from foldline.core.decide.ask import AUTOMATIC
from foldline.core.decide.triggers import Compact, Refuse, StartDraft, idle_in
from foldline.core.decide.watch import CommitDraft, Wait
from foldline.core.log.entries import Compacted, Noted, Receipt, Said
from foldline.core.log.messages import Message, Text
from foldline.errors import FloorExceeded, FoldlineError
from foldline.session.compactor import FIRST, Compactor
from foldline.session.events import CompactionStarted, WarningGiven
from foldline.session.hooks import calling
from foldline.session.shared import Shared
from foldline.session.view import ContextMessages, check_answered

log = logging.getLogger("foldline")


class Background:
    """Runs `work` in at most one background task at a time; errors go to `on_error`."""

    def __init__(
        self, work: Callable[[], Coroutine[Any, Any, object]], on_error: Callable[[Exception], None]
    ) -> None:
        self._work = work
        self._on_error = on_error
        self._task: asyncio.Task[None] | None = None
        self._context = Context()  # of the caller that appended the newest message
        self._task_context = self._context

    @property
    def running(self) -> bool:
        """Whether the task is running."""
        return self._task is not None and not self._task.done()

    def begin(self) -> None:
        """Start the work; a running task hands over to a new one for the newest message."""
        self._context = copy_context()
        self._context.run(calling.set, frozenset())  # no callback waits for this task
        if not self.running:
            self._start()

    def _start(self) -> None:
        self._task_context = self._context
        self._task = asyncio.create_task(self._run(), context=self._context)

    async def _run(self) -> None:
        try:
            await self._work()
        except Exception as error:
            self._on_error(error)

    def hand_over(self) -> bool:
        """Start a new task and return True if a message was appended since this one started.

        So each fold uses the summariser and the key of the caller whose message it is for.
        """
        if self._task_context is self._context:
            return False
        self._start()
        return True

    async def finished(self) -> None:
        """Wait until the work has ended; cancelling the wait does not cancel the work."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def cancel(self) -> bool:
        """Cancel the work and return whether it was running; `finished` waits for its end."""
        running = self.running
        if self._task is not None:
            self._task.cancel()
        return running

    async def stop(self) -> None:
        """Cancel the work and wait for its end; the session is unchanged."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})


class Triggers:
    """The automatic compactions of one session."""

    def __init__(self, shared: Shared, compactor: Compactor) -> None:
        self.checks = Background(self._check_in_background, self._report_failure)
        self.idle = Background(lambda: self.commit_behind(self._idle_after), self._report_failure)
        # fires when the session is idle after the message `_idle_after`: a ready draft is then committed,
        # before the provider's cache of the old view expires
        self.timer: asyncio.TimerHandle | None = None
        self._idle_after = ""
        self._shared = shared
        self._compactor = compactor
        self._drafts = compactor.drafts
        self._cursor = shared.cursor
        self._model = shared.model
        self._requested_focus: str | None = None  # the focus of a compaction that the model requested

    def request_compaction(self, focus: str) -> None:
        """Compact before the next request, as the model requested; `focus` is for the summary."""
        self._requested_focus = focus

    async def close(self) -> None:
        """Cancel background work; the session is unchanged."""
        self._wait(None)
        await self.idle.stop()
        await self.checks.stop()
        await self._drafts.leave()

    async def context(self, *, shared: bool = False) -> ContextMessages:
        """Return the messages to send, in the session's dialect; compacts first if the policy says so.

        Pass the returned list to `overflowed` if the request does not fit. It includes messages of other
        writers. A ready draft is committed here; a summary is waited for only if none is ready and the view
        would not fit. The caller may modify the messages; with `shared` it must not, which saves copying a
        long view. Raises CallsOpen while tool calls wait for their results, FloorExceeded if nothing helps.
        """
        self._shared.check_free()
        while True:
            async with self._shared.locked() as cursor:
                check_answered(cursor.state)
                if self._requested_focus is not None:
                    focus, self._requested_focus = self._requested_focus, None
                    wait = partial(self._compact_on_request, focus)
                else:
                    wait = await self._check_triggers()
                if wait is None:
                    await self._append_continuation()
                    size = self._model.trigger_size(cursor.state)
                    self._shared.reply.look_ahead(size, self._model.setup.window)
                    return self._shared.view.hand_out(shared=shared)
            await wait()

    async def settled(self) -> None:
        """Wait for background work: trigger checks, compactions, drafts.

        This is optional: the session is usable meanwhile. Background failures are events, not exceptions.
        """
        self._shared.check_free()
        while self.checks.running or self._drafts.running:
            await self.checks.finished()
            await self._drafts.finished()

    async def commit_draft(self) -> Receipt | None:
        """Commit the draft now, before the view is full.

        For a session that is about to be closed, which would lose the draft. Waits for a draft that is still
        being made. None if there is none, if it no longer fits, or while tool calls wait for results.
        """
        return await self.commit_behind(None)

    async def commit_behind(self, behind: str | None) -> Receipt | None:
        """Commit the draft; with the id of a message, only if that is still the newest."""
        await self.settled()
        async with self._shared.locked() as cursor:
            self._drafts.check(cursor.state)
            if self._drafts.ready is None or cursor.state.open_calls:
                return None
            if behind is not None and (self.newest is None or self.newest.id != behind):
                return None
            outcome = await self._drafts.commit(self._model.ask("threshold"))
            self._shared.watch.mark_checked()
            return outcome if isinstance(outcome, Receipt) else None

    def cancel_compaction(self) -> bool:
        """Cancel the background compaction, and return whether there was one.

        The session is unchanged; triggers are checked again before the next request. Drafts are not
        cancelled, nor is a compaction that a caller waits for: cancel that call instead.
        """
        return self.checks.cancel()

    # ---- checks; the lock is held

    async def _check_triggers(self, *, adopted: bool = False) -> Callable[[], Awaitable[object]] | None:
        """Begin a draft, commit one, or return what to wait for without the lock.

        Before anything is begun another process's draft is looked for, once. Raises FloorExceeded if nothing
        helps.
        """
        watch = self._shared.watch
        while True:
            self._drafts.check(self._cursor.state)
            due = watch.due(self._model.trigger_facts(), pays=self._drafts.pays())
            if not isinstance(due, CommitDraft):
                break
            if await self._drafts.commit(self._model.ask(due.reason)):
                watch.mark_checked()
                return None
        if isinstance(due, StartDraft | Compact) and not adopted and await self._drafts.adopt():
            return await self._check_triggers(adopted=True)
        if isinstance(due, Refuse):
            raise FloorExceeded(due.floor, due.usable, due.breakdown)
        if isinstance(due, StartDraft):
            self._drafts.begin(due)
        if isinstance(due, Wait):
            return self._await_draft
        if isinstance(due, Compact):
            return partial(self._compact_on_trigger, due, self._cursor.state.boundaries, watch.event_number)
        return None

    def appended(self) -> None:
        """Start a background check if the policy wants one now; the lock is held."""
        if self._shared.closed:  # while the append was under way
            return
        self._drafts.redact_newest(self._cursor.state)
        self._wait(self.newest)
        if self._shared.watch.checks_at_once(self._cursor.state.open_calls):
            self.checks.begin()

    async def _append_continuation(self) -> None:
        """Append the policy's request to continue, where a boundary left nothing else to send.

        Only behind a reply that was cut off: what waits for the user, or is done, is not continued.
        """
        text = self._model.setup.policy.continuation
        entries = self._cursor.state.entries() if text else []
        newest = next((entry for entry in reversed(entries) if not isinstance(entry, Noted)), None)
        if not isinstance(newest, Compacted) or newest.receipt.reason not in AUTOMATIC:
            return
        if continuation_of(self._cursor.state).because == "cut_off":
            self._shared.emit_added(await self._cursor.say([Message("user", (Text(text),), injected=True)]))

    # ---- awaited without the lock

    async def _compact_on_request(self, focus: str) -> None:
        """Compact on the model's request; log a failure and continue."""
        try:
            await self.checks.stop()
            await self._compactor.compact("agent", focus or None)
        except asyncio.CancelledError:
            self._requested_focus = focus  # the next `context` does it
            raise
        except FoldlineError as error:
            session = self._shared.id
            log.warning("session %s: the compaction that the model requested failed: %s", session, error)

    async def _await_draft(self) -> None:
        """Wait for the draft, and emit that a caller now waits for it."""
        self._shared.events.emit(CompactionStarted(reason="threshold", size=self._model.view_tokens))
        await self._drafts.finished()

    async def _compact_on_trigger(self, due: Compact, seen: tuple[str, ...], event_number: int) -> None:
        """Compact on a trigger; if that fails, continue while the view fits the window.

        The moments stay pending until it ends, so that concurrent calls of `context` wait for the same
        compaction and check again. Moments since the check stay pending.
        """
        try:
            outcome = await self._compactor.compact(due.reason, seen=seen, event_number=event_number)
            if outcome is not FIRST:
                self._shared.watch.mark_checked(event_number)
        except FoldlineError as error:
            self._shared.watch.mark_checked(event_number)
            hopeless = isinstance(error, FloorExceeded)
            if due.size > (due.usable if hopeless else self._model.setup.window.input_limit):
                raise
            self._warn(f"a compaction failed, the session continues with its whole view: {error}")

    # ---- in the background

    async def _check_in_background(self) -> None:
        """Check the triggers after a message and do what is due."""
        while True:
            async with self._shared.locked(follow=False) as cursor:
                if self.checks.hand_over():
                    return
                if not self._shared.watch.checks_at_once(cursor.state.open_calls):
                    return
                wait = await self._check_triggers()
                if wait is None:
                    return
            await wait()

    @property
    def newest(self) -> Said | None:
        """The newest message of the view."""
        kept = self._cursor.state.kept
        return kept[-1] if kept else None

    def _wait(self, newest: Said | None) -> None:
        """Restart the idle timer for the newest message."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        said, at = (newest.message, newest.at) if newest is not None else (None, None)
        seconds = idle_in(self._model.setup.policy, said, at, time.time())
        if seconds is not None and newest is not None:
            self._idle_after = newest.id
            self.timer = asyncio.get_running_loop().call_later(seconds, self.idle.begin)

    def _report_failure(self, error: Exception) -> None:
        """Report a background failure."""
        if isinstance(error, FloorExceeded) or self._shared.closed:  # the next request raises it
            log.info("session %s: nothing can be folded in the background: %s", self._shared.id, error)
            return
        log.warning("session %s: a compaction in the background failed: %s", self._shared.id, error)
        self._warn(f"a compaction in the background failed: {error}")

    def _warn(self, text: str) -> None:
        self._shared.events.emit(WarningGiven(kind="failed", text=text))
