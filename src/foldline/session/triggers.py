"""Compactions that nobody asked for: the triggers, looked at before a request and behind an append.

The look behind an append is made in the background, at the moments that the policy names. What is due is
decided in `foldline.core.decide.watch`; here it is done.
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
    """At most one task at a time that does `work` behind the session; what goes wrong in it is `told`."""

    def __init__(
        self, work: Callable[[], Coroutine[Any, Any, object]], told: Callable[[Exception], None]
    ) -> None:
        self._work = work
        self._told = told
        self._task: asyncio.Task[None] | None = None
        self._context = Context()  # of whoever said the newest message
        self._begun_in = self._context

    @property
    def running(self) -> bool:
        """Whether the work is under way."""
        return self._task is not None and not self._task.done()

    def begin(self) -> None:
        """Begin the work; what is under way hands over to another for what was said meanwhile."""
        self._context = copy_context()
        self._context.run(calling.set, frozenset())  # whose callback began it does not wait for it
        if not self.running:
            self._start()

    def _start(self) -> None:
        self._begun_in = self._context
        self._task = asyncio.create_task(self._run(), context=self._context)

    async def _run(self) -> None:
        try:
            await self._work()
        except Exception as error:
            self._told(error)

    def handed_over(self) -> bool:
        """Return whether somebody has said something since the work began: theirs begins in its place.

        What is folded for their message is folded with the summariser, and the key, that they came with.
        """
        if self._begun_in is self._context:
            return False
        self._start()
        return True

    async def finished(self) -> None:
        """Wait until the work has ended; where the wait is cancelled, the work is not."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def cancel(self) -> bool:
        """Cancel the work, and return whether there was any; `finished` waits for its end."""
        running = self.running
        if self._task is not None:
            self._task.cancel()
        return running

    async def stop(self) -> None:
        """Cancel the work and wait for its end: the session is as it was."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})


class Triggers:
    """What one session does about its triggers."""

    def __init__(self, shared: Shared, compactor: Compactor) -> None:
        self.checks = Background(self._look_behind, self._failed_behind)
        self.idle = Background(self._fold_idle, self._failed_behind)
        self.timer: asyncio.TimerHandle | None = None  # runs out when the session is idle, behind
        self._idle_behind = ""  # the message of this id
        self._shared = shared
        self._compactor = compactor
        self._drafts = compactor.drafts
        self._cursor = shared.cursor
        self._model = shared.model
        self._wish: str | None = None  # what the model asked a compaction for

    def wish(self, focus: str) -> None:
        """Compact before the next request, as the model asked; `focus` is what to look at first."""
        self._wish = focus

    async def close(self) -> None:
        """Cancel what is under way in the background; the session is as it was."""
        self._shared.check_free()
        self._wait(None)
        await self.idle.stop()
        await self.checks.stop()
        await self._drafts.leave()

    async def context(self, *, shared: bool = False) -> ContextMessages:
        """Return the messages to send, in the session's dialect; compacts first if the policy says so.

        A list that knows which view it is: hand it to `overflowed`. What other writers have said is in it. A
        summary that was drafted in the background is committed here; only where none is ready and the view
        would not fit is one waited for. The messages are the caller's to change; `shared` ones are not, which
        saves copying a long view. Raises CallsOpen while tool calls wait for their results, FloorExceeded
        where nothing can help.
        """
        self._shared.check_free()
        while True:
            async with self._shared.locked() as cursor:
                check_answered(cursor.state)
                wait = await self._look()
                if wait is None:
                    await self._carry_on()
                    size = self._model.trigger_size(cursor.state)
                    self._shared.reply.look_ahead(size, self._model.setup.window)
                    return self._shared.view.hand_out(shared=shared)
            await wait()

    async def settled(self) -> None:
        """Wait for background work: a look at the triggers behind an append, a compaction, a draft.

        Nothing has to: the session can be used meanwhile. What fails there is told by events, not raised.
        """
        self._shared.check_free()
        while self.checks.running or self._drafts.running:
            await self.checks.finished()
            await self._drafts.finished()

    async def commit_draft(self) -> Receipt | None:
        """Commit the summary that was drafted in the background now, not when the view no longer fits.

        For a session that is about to be closed: what a model wrote would be lost. Waits while one is still
        written. None where there is none, where the path has left it, or while tool calls wait for results.
        """
        return await self.commit_behind(None)

    async def commit_behind(self, behind: str | None) -> Receipt | None:
        """Commit the draft; with the id of a message, only as long as nothing else was said."""
        await self.settled()
        async with self._shared.locked() as cursor:
            self._drafts.check(cursor.state)
            if self._drafts.ready is None or cursor.state.open_calls:
                return None
            if behind is not None and (self.newest is None or self.newest.id != behind):
                return None
            done = await self._drafts.commit(self._model.ask("threshold"))
            self._shared.watch.mark_checked()
            return done if isinstance(done, Receipt) else None

    def cancel_compaction(self) -> bool:
        """Cancel the compaction that is made in the background, and return whether there was one.

        The session is as it was; the triggers are looked at again before the next request. One that somebody
        waits for is cancelled by cancelling that, and a draft is not cancelled.
        """
        return self.checks.cancel()

    # ---- at the policy's moments; the lock is held

    async def _look(self) -> Callable[[], Awaitable[object]] | None:
        """Look at what a request needs: a compaction that the model asked for, else what the triggers say.

        Returns what to wait for without the lock. Raises FloorExceeded where nothing can help.
        """
        if self._wish is not None:
            wish, self._wish = self._wish, None
            return partial(self._as_wished, wish)
        return await self._look_at_triggers()

    async def _look_at_triggers(self, *, looked: bool = False) -> Callable[[], Awaitable[object]] | None:
        """Begin a draft, commit one, or return what to wait for without the lock; raises as `_look` does.

        Before anything is begun another process's draft is looked for, once.
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
        if isinstance(due, StartDraft | Compact) and not looked and await self._drafts.adopt():
            return await self._look_at_triggers(looked=True)
        if isinstance(due, Refuse):
            raise FloorExceeded(due.floor, due.usable, due.breakdown)
        if isinstance(due, StartDraft):
            self._drafts.begin(due)
        if isinstance(due, Wait):
            return self._draft_finished
        if isinstance(due, Compact):
            return partial(self._by_itself, due, self._cursor.state.boundaries, watch.event_number)
        return None

    def appended(self) -> None:
        """Begin a look in the background, if the policy wants one now; the lock is held."""
        self._drafts.look_at(self._cursor.state)
        self._wait(self.newest)
        if self._shared.watch.checks_at_once(self._cursor.state.open_calls):
            self.checks.begin()

    async def _carry_on(self) -> None:
        """Append the policy's request to continue, where a boundary left nothing else to send.

        Only behind a reply that was cut off: what waits for the user, or is done, is not continued.
        """
        text = self._model.setup.policy.continuation
        entries = self._cursor.state.entries() if text else []
        newest = next((entry for entry in reversed(entries) if not isinstance(entry, Noted)), None)
        if not isinstance(newest, Compacted) or newest.receipt.reason not in AUTOMATIC:
            return
        if continuation_of(self._cursor.state).because == "cut_off":
            self._shared.tell_of(await self._cursor.say([Message("user", (Text(text),), injected=True)]))

    # ---- what is waited for; the lock is not held

    async def _as_wished(self, focus: str) -> None:
        """Compact because the model asked for it; where that fails, the work goes on."""
        try:
            await self.checks.stop()
            await self._compactor.compact("agent", focus or None)
        except asyncio.CancelledError:
            self._wish = focus  # the next one that asks for the context waits for it
            raise
        except FoldlineError as error:
            session = self._shared.id
            log.warning("session %s: the compaction that the model asked for failed: %s", session, error)

    async def _draft_finished(self) -> None:
        """Wait for the draft that is being made: its beginning was an event of the background."""
        self._shared.events.emit(CompactionStarted(reason="threshold", size=self._model.view_tokens))
        await self._drafts.finished()

    async def _by_itself(self, due: Compact, seen: tuple[str, ...], event_number: int) -> None:
        """Compact because of a trigger; where that fails, the session is used while its view fits the window.

        Until it has ended the moments stay: who asks for the context meanwhile waits for the same compaction,
        and looks again. Those stay that came after the look.
        """
        try:
            done = await self._compactor.compact(due.reason, seen=seen, event_number=event_number)
            if done is not FIRST:
                self._shared.watch.mark_checked(event_number)
        except FoldlineError as error:
            self._shared.watch.mark_checked(event_number)
            hopeless = isinstance(error, FloorExceeded)
            if due.size > (due.usable if hopeless else self._model.setup.window.input_limit):
                raise
            self._warn(f"a compaction failed, the session goes on with its whole view: {error}")

    # ---- in the background

    async def _look_behind(self) -> None:
        """Do what the triggers ask for behind a message."""
        while True:
            async with self._shared.locked(follow=False) as cursor:
                if self.checks.handed_over():
                    return
                if not self._shared.watch.checks_at_once(cursor.state.open_calls):
                    return
                wait = await self._look_at_triggers()
                if wait is None:
                    return
            await wait()

    @property
    def newest(self) -> Said | None:
        """The newest message of the view."""
        kept = self._cursor.state.kept
        return kept[-1] if kept else None

    def _wait(self, newest: Said | None) -> None:
        """Wait until the session is idle behind its newest message, and for nothing that came before it."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        said, at = (newest.message, newest.at) if newest is not None else (None, None)
        seconds = idle_in(self._model.setup.policy, said, at, time.time())
        if seconds is not None and newest is not None:
            self._idle_behind = newest.id
            self.timer = asyncio.get_running_loop().call_later(seconds, self.idle.begin)

    async def _fold_idle(self) -> None:
        """Commit the draft, if there is one: the provider is about to forget the view that it replaces."""
        await self.commit_behind(self._idle_behind)

    def _failed_behind(self, error: Exception) -> None:
        """Say what went wrong in the background."""
        if isinstance(error, FloorExceeded):  # the next request raises it
            log.info("session %s: nothing can be folded in the background: %s", self._shared.id, error)
            return
        log.warning("session %s: a compaction in the background failed: %s", self._shared.id, error)
        self._warn(f"a compaction in the background failed: {error}")

    def _warn(self, text: str) -> None:
        self._shared.events.emit(WarningGiven(kind="failed", text=text))
