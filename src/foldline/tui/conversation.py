"""The agent behind the screen: prompts and commands go to its host, and events are shown in order.

The host works in separate tasks and sends events through one queue, so that typing never waits.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

from textual.app import App

from foldline.agent.attachments import Completion
from foldline.agent.commands import registry
from foldline.agent.commands.command import Command, Outcome
from foldline.agent.commands.places import short_line
from foldline.agent.commands.sessions import state_text
from foldline.agent.demo import demonstration
from foldline.agent.events import (
    CallEnded,
    CallStarted,
    ReplyDelayed,
    ReplyEnded,
    TextStreamed,
    ThinkingStreamed,
    TurnEnded,
)
from foldline.agent.host import Host
from foldline.agent.options import HostOptions
from foldline.agent.permissions import Answer, PermissionRequest
from foldline.errors import FoldlineError, InputError, did_you_mean
from foldline.session.events import (
    CompactionDone,
    CompactionStarted,
    DraftFailed,
    DraftReady,
    DraftStarted,
    Event,
    NothingDone,
    PruneDone,
)
from foldline.session.session import Session
from foldline.tui.dialogs import Dialog, PermissionScreen
from foldline.tui.editor import Editor
from foldline.tui.meter import ContextMeter, StatusLine
from foldline.tui.notices import Logged, Notices, note_for
from foldline.tui.screens import ScreenCommand, screen_of
from foldline.tui.transcript import Transcript

__all__ = ["Conversation", "demonstration"]


class Conversation:
    """One host, and the widgets that show it; `app` runs its work and opens its dialogs."""

    def __init__(
        self, app: App[None], transcript: Transcript, editor: Editor, status: StatusLine, meter: ContextMeter
    ) -> None:
        self.host: Host
        self.complete: Completion
        self._app = app
        self._transcript, self._editor, self._status, self._meter = transcript, editor, status, meter
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._notices: Notices
        self._asking = asyncio.Lock()
        self._showing = False  # an event was taken and is not on the screen yet
        self._activity = ""  # for the status line
        self._background = ""  # the activity in the background
        self._reason = ""  # why the model is delayed
        self._permission_open = False
        self._summaries = 0  # of commands, that are being written
        self._changing = asyncio.Lock()  # held by a command that changes the session, the model or the path

    async def open(self, options: HostOptions) -> None:
        """Open the host; raises what `Host.open` raises."""
        self._notices = Notices(self._events.put_nowait)
        try:
            self.host = await Host.open(options, emit=self._events.put_nowait, ask=self._ask)
        except BaseException:
            self._notices.close()
            raise
        self.complete = Completion(registry.COMMANDS, self.host.workspace)
        theme = self.host.settings.agent.theme
        if theme in self._app.available_themes:
            self._app.theme = theme
        elif theme:
            hint = did_you_mean(theme, self._app.available_themes)
            self._events.put_nowait(Logged(text=f"no theme {theme!r}{hint}: Ctrl-P lists them"))
        self._app.run_worker(self.complete.load, name="files", thread=True)
        await self.draw()

    async def begin(self) -> None:
        """Show the state of a resumed session, then events."""
        if self.session.leaf is not None:
            await self._transcript.note(await state_text(self.host))
        self._app.run_worker(self._show_events(), name="events")

    async def close(self) -> None:
        """Stop the turn, and close the host when what is complete is stored."""
        agent = self.host.agent
        agent.queue.clear()
        agent.interrupt()
        if agent.turn is not None:
            await asyncio.wait({agent.turn})
        await self.host.close()
        self._notices.close()

    @property
    def session(self) -> Session:
        """The session that is shown."""
        return self.host.session

    @property
    def quiet(self) -> bool:
        """Whether nothing is running, and all events are shown."""
        groups = ("turns", "commands")
        running = [
            worker for worker in self._app.workers if worker.group in groups and not worker.is_finished
        ]
        return not running and not self.host.agent.busy and self._events.empty() and not self._showing

    def interrupt(self) -> None:
        """Stop the running turn, compaction or command, and close open dialogs."""
        for screen in reversed(self._app.screen_stack):
            if isinstance(screen, Dialog):
                screen.action_leave()
        if self.host.interrupt():
            self._set_activity("stopping")
            self._app.run_worker(self._after_stop(), group="turns")
        for worker in self._app.workers:
            if worker.group == "commands":
                worker.cancel()

    # ---- input

    def send(self, text: str) -> None:
        """Run a prompt or a command."""
        if text.startswith("/") and not text.startswith("//"):
            self._app.run_worker(self._run_command(text), group="commands", exit_on_error=False)
        else:
            self._app.run_worker(self._run_prompt(text), group="turns", exit_on_error=False)

    async def _run_prompt(self, text: str) -> None:
        try:
            async with self._changing:  # the prompt is for what the command before it makes
                pass
            if self.host.agent.busy:
                self.host.agent.queue.append((text,))
            else:
                self._set_activity("waiting for the model")
                await self.host.prompt(text)
        except FoldlineError as error:
            self._set_activity("")
            await self._transcript.note(str(error), "error")
        finally:
            await self.draw()

    async def _run_command(self, text: str) -> None:
        name, _, argument = text[1:].strip().partition(" ")
        screen = screen_of(name, has_argument=bool(argument.strip()))
        agent, activity = self.host.agent, f"/{name}"
        if not self._activity and screen is None:
            self._set_activity(activity)
        try:
            outcome = await self._outcome(registry.find_command(name), text, screen)
        except FoldlineError as error:
            if not self._summaries:
                await self._transcript.drop_summary()
            await self._transcript.note(str(error), "error")
            return
        except asyncio.CancelledError:
            await self._after_stop()
            await self._transcript.note("Stopped.", "warning")
            raise
        finally:
            if self._activity == activity:
                self._set_activity("")
        if outcome is not None:
            await self._show_outcome(outcome)
        if agent is not self.host.agent and agent.queue:  # left by a turn that failed
            unsent = "\n".join(short_line(str(words[0])) for words in agent.queue)
            await self._transcript.note(f"Not sent, because the session changed:\n{unsent}", "warning")

    async def _outcome(self, command: Command, text: str, screen: ScreenCommand | None) -> Outcome | None:
        """Run a command, or open its screen; raises InputError if it has to wait for a turn or a summary."""
        async with self._changing if command.idle and command.takes != "turn" else nullcontext():
            if command.idle:
                self.host.check_idle()
                if self._summaries:
                    raise InputError("a compaction is running: wait for it, or stop it first")
            summary = command.takes == "summary"
            self._summaries += summary
            try:
                if screen is None:
                    return await registry.run(self.host, text)
                return await screen(self._app, self.host, text.partition(" ")[2].strip())
            finally:
                self._summaries -= summary

    async def _after_stop(self) -> None:
        """Remove a summary that was being written: a cancelled fold sends no event."""
        await self._events.join()
        await self._transcript.drop_summary()
        if not self.host.agent.busy:
            self._set_activity("")

    async def _show_outcome(self, outcome: Outcome) -> None:
        """Show the result of a command, after earlier events."""
        await self._events.join()
        if outcome.leave:
            self._app.exit()
            return
        if outcome.moved:
            self._background = ""
            await self._transcript.load(self.session)
        if outcome.text:
            await self._transcript.note(outcome.text)
        if outcome.editor is not None:
            self._editor.put(outcome.editor)
        await self.draw()

    # ---- permissions

    async def _ask(self, request: PermissionRequest) -> Answer:
        """Ask for a permission, one at a time; stopping the turn closes the dialog."""
        result: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        screen = PermissionScreen(request)

        def on_answer(answer: Answer | None) -> None:
            if not result.done():
                result.set_result(answer or "no")

        async with self._asking:
            try:
                self._permission_open = True
                self._draw_status()
                await self._app.push_screen(screen, on_answer)
                return await result
            finally:
                self._permission_open = False
                self._draw_status()
                screen.dismiss("no")  # unless it was answered

    # ---- events of the host

    async def _show_events(self) -> None:
        while True:
            event = await self._events.get()
            self._showing = True
            try:
                await self._transcript.show(event, self.session)
                await self._update_status(event)
            finally:
                self._showing = False
                self._events.task_done()

    async def _update_status(self, event: Event) -> None:
        """Update the status line; warnings and errors go to the transcript."""
        note = note_for(event)
        if note is not None:
            await self._transcript.note(*note)
        match event:
            case ThinkingStreamed():
                return self._set_activity("thinking")
            case TextStreamed():
                return self._set_activity("writing")
            case CallStarted():
                return self._set_activity(f"running {event.tool}")
            case CallEnded() | ReplyEnded():
                return self._set_idle()
            case ReplyDelayed():
                self._set_activity(
                    f"waiting to ask again, after attempt {event.attempt}", " ".join(event.why.split())
                )
            case DraftStarted():
                self._background = "folding in the background"
            case DraftReady():
                self._background = "a fold is ready"
            case CompactionStarted():
                self._set_activity(f"folding ({event.reason})")
            case CompactionDone() | PruneDone() | NothingDone() | DraftFailed():
                self._background = ""
                self._set_idle()
            case TurnEnded():
                self._set_activity(
                    "waiting for the model" if self.host.agent.queue and event.how != "failed" else ""
                )
                await self._transcript.end()
            case _:
                if note is None:
                    return None
        return await self.draw()

    async def draw(self, *_: Any) -> None:
        """Redraw the figures and the status line."""
        policy = self.session.policy
        self._meter.show(
            await self.session.stats(),
            model=self.host.model_name,
            usd=self.host.usd,
            autocompact=policy.enabled and policy.hard is not None,
        )
        self._draw_status()

    def _set_activity(self, activity: str, reason: str = "") -> None:
        """Show the current activity, and the reason for a delay, in the status line."""
        if (activity, reason) != (self._activity, self._reason):
            self._activity, self._reason = activity, reason
            self._draw_status()

    def _set_idle(self) -> None:
        self._set_activity("waiting for the model" if self.host.agent.busy else "")

    def _draw_status(self) -> None:
        queued = len(self.host.agent.queue)
        parts = [
            "Esc stops" if self._activity and not self._permission_open else "",
            f"{queued} queued" if queued else "",
            self._background,
            self._reason,
        ]
        activity = "waiting for your answer" if self._permission_open else self._activity
        self._status.show(activity, " · ".join(filter(None, parts)))
