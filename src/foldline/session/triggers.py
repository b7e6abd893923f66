"""Compactions that nobody waits to ask for: the triggers, looked at before a request and behind an append.

The look behind an append goes on in the background, at the moments that the policy names. What is due is
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
from foldline.session.shared import Shared

log = logging.getLogger("foldline")


class Checks:
    """At most one task that looks at the triggers, and compacts where they say so; `look` raises nothing."""

    def __init__(self, look: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._look = look
        self._task: asyncio.Task[None] | None = None
        self._context = Context()  # of whoever said the newest message
        self._begun_in = self._context

    @property
    def running(self) -> bool:
        """Whether a look goes on, or the compaction that it led to."""
        return self._task is not None and not self._task.done()

    def begin(self) -> None:
        """Begin a look; one that is under way hands over to another for what was said meanwhile."""
        self._context = copy_context()
        if not self.running:
            self._start()

    def _start(self) -> None:
        self._begun_in = self._context
        self._task = asyncio.create_task(self._look(), context=self._context)

    def handed_over(self) -> bool:
        """Return whether somebody has said something since the look began: their look begins in its place.

        What is folded for their message is folded with the summariser, and the key, that they came with.
        """
        if self._begun_in is self._context:
            return False
        self._start()
        return True

    async def finished(self) -> None:
        """Wait until the look that goes on has ended; cancelled, the look goes on."""
        if self._task is not None:
            await asyncio.wait({self._task})

    def cancel(self) -> bool:
        """Cancel the look that goes on, and return whether one did; `finished` waits for its end."""
        running = self.running
        if self._task is not None:
            self._task.cancel()
        return running

    async def stop(self) -> None:
        """Cancel the look: the session is as it was, and the moment is looked at another time."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait({task})


class Triggers:
    """What one session does about its triggers."""

    def __init__(self, shared: Shared, compactor: Compactor) -> None:
        self.checks = Checks(self._look_behind)
        self.idle = Checks(self._fold_idle)
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

    async def stop(self) -> None:
        """Cancel the look in the background: somebody asked for a compaction of their own."""
        await self.checks.stop()

    async def close(self) -> None:
        """Cancel what goes on in the background; the session is as it was."""
        self._wait(None)
        await self.idle.stop()
        await self.checks.stop()
        await self._drafts.leave()

    # ---- at the policy's moments; the lock is held

    async def look(self) -> Callable[[], Awaitable[object]] | None:
        """Look at what a request needs: a compaction that the model asked for, else what the triggers say.

        Returns what to wait for without the lock. Raises FloorExceeded where nothing can help.
        """
        if self._wish is not None:
            wish, self._wish = self._wish, None
            return partial(self._as_wished, wish)
        return await self._look_at_triggers()

    async def _look_at_triggers(self, *, looked: bool = False) -> Callable[[], Awaitable[object]] | None:
        """Begin a draft, commit one, or return what to wait for without the lock; raises as `look` does.

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
        self._wait(self._newest)
        if self._shared.watch.checks_at_once(self._cursor.state.open_calls):
            self.checks.begin()

    @property
    def _newest(self) -> Said | None:
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
        """Commit the draft, if there is one: the provider is about to forget the view that it stands for."""
        try:
            await self.commit_draft(behind=self._idle_behind)
        except Exception as error:
            log.warning("session %s: no fold while it is idle: %s", self._shared.id, error)
            self._tell_failure(f"a compaction in the background failed: {error}")

    async def _look_behind(self) -> None:
        """Do what the triggers ask for behind a message; what fails is told, never raised."""
        try:
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
        except FloorExceeded as error:  # the next request raises it
            log.info("session %s: nothing can be folded in the background: %s", self._shared.id, error)
        except Exception as error:
            log.warning("session %s: a compaction in the background failed: %s", self._shared.id, error)
            self._tell_failure(f"a compaction in the background failed: {error}")

    async def settled(self) -> None:
        """Wait for what goes on in the background: a look at the triggers, a compaction, a draft."""
        while self.checks.running or self._drafts.running:
            await self.checks.finished()
            await self._drafts.finished()

    async def commit_draft(self, *, behind: str | None = None) -> Receipt | None:
        """Wait for a draft that is being made, and commit it; None where there is none, or it will not do.

        With `behind`, the id of a message, only as long as nothing else was said.
        """
        await self.settled()
        async with self._shared.locked() as cursor:
            self._drafts.check(cursor.state)
            if self._drafts.ready is None or cursor.state.open_calls:
                return None
            if behind is not None and (self._newest is None or self._newest.id != behind):
                return None
            done = await self._drafts.commit(self._model.ask("threshold"))
            self._shared.watch.mark_checked()
            return done if isinstance(done, Receipt) else None

    async def _as_wished(self, focus: str) -> None:
        """Compact because the model asked for it; where that fails, an event tells, and the work goes on."""
        try:
            await self.checks.stop()
            await self._compactor.compact("agent", focus or None)
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
        entries = self._cursor.state.entries() if text else []
        newest = next((entry for entry in reversed(entries) if not isinstance(entry, Noted)), None)
        if not isinstance(newest, Compacted) or newest.receipt.reason not in AUTOMATIC:
            return
        if continuation_of(self._cursor.state).because == "cut_off":
            await self._cursor.say([Message("user", (Text(text),), injected=True)])

    async def _draft_finished(self) -> None:
        """Wait for the draft that is being made: its beginning may have been told to others."""
        self._shared.events.emit(CompactionStarted(reason="threshold", size=self._model.view_tokens))
        await self._drafts.finished()

    async def _by_itself(self, due: Compact, seen: tuple[str, ...], event_number: int) -> None:
        """Compact because of a trigger; where that fails, the session goes on while its view fits the window.

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
            self._tell_failure(f"a compaction failed, the session goes on with its whole view: {error}")

    def _tell_failure(self, text: str) -> None:
        self._shared.events.emit(WarningGiven(kind="failed", text=text))
