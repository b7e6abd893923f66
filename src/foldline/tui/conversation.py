"""The agent behind the screen: prompts and commands go to its host, and events are shown in order.

The host works in separate tasks and sends events through one queue, so that typing never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import islice
from typing import Any

from textual.app import App

from foldline.agent.attachments import REFERENCE
from foldline.agent.commands import registry
from foldline.agent.commands.boundaries import autocompact_text, result_text
from foldline.agent.commands.command import Outcome
from foldline.agent.commands.places import local_date, rewind_to, short_line, user_prompts
from foldline.agent.commands.sessions import hand_off, session_title, state_text
from foldline.agent.demo import demonstration
from foldline.agent.events import (
    CallEnded,
    CallStarted,
    OverflowRetried,
    ReplyDelayed,
    ReplyEnded,
    TextStreamed,
    ThinkingStreamed,
    TurnEnded,
)
from foldline.agent.host import Host
from foldline.agent.options import HostOptions
from foldline.agent.permissions import Answer, PermissionRequest
from foldline.agent.tools.search import files
from foldline.agent.workspace import Workspace
from foldline.errors import FoldlineError, did_you_mean
from foldline.session.events import (
    CompactionDone,
    CompactionStarted,
    CoolingDown,
    DraftFailed,
    DraftReady,
    DraftStarted,
    Event,
    NothingDone,
    PruneDone,
    Struck,
    WarningGiven,
)
from foldline.session.session import Session
from foldline.tui.dialogs import Dialog, PermissionScreen, Picker, TextDialog
from foldline.tui.editor import Editor
from foldline.tui.meter import ContextMeter, StatusLine
from foldline.tui.notices import Logged, Notices
from foldline.tui.preview import PreviewScreen
from foldline.tui.transcript import Transcript

__all__ = ["Conversation", "demonstration"]

COMPLETIONS = 8
MAX_FILES = 5_000  # of the folder, for completion
ScreenCommand = Callable[[str], Awaitable[Outcome | None]]


class Completion:
    """Completes commands and files of a folder; its files are listed once, in a thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files: list[str] = []

    def load(self) -> None:
        """List the files of the folder."""
        paths = islice(files(self._workspace.root), MAX_FILES)
        self._files = [self._workspace.shown(path) for path in paths]

    def __call__(self, word: str, first: bool) -> Sequence[str]:
        """Return completions of a word, the likeliest first."""
        if word.startswith("/"):
            return [f"/{name}" for name in registry.COMMANDS if f"/{name}".startswith(word)] if first else ()
        typed = word[1:].strip('"').lower()
        starting = [name for name in self._files if name.lower().startswith(typed)]
        others = [
            name for name in self._files if typed in name.lower() and name not in starting[:COMPLETIONS]
        ]
        return [_reference(name) for name in (*starting, *others)[:COMPLETIONS]]


def _reference(name: str) -> str:
    """Return the reference to a file, in quotes if its name needs them."""
    return f"@{name}" if REFERENCE.fullmatch(f"@{name}") else f'@"{name}"'


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

    async def open(self, options: HostOptions) -> None:
        """Open the host; raises what `Host.open` raises."""
        self._notices = Notices(self._events.put_nowait)
        try:
            self.host = await Host.open(options, emit=self._events.put_nowait, ask=self._ask)
        except BaseException:
            self._notices.close()
            raise
        self.complete = Completion(self.host.workspace)
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
        """Stop the turn and close the host."""
        self.host.agent.interrupt()
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
            if self.host.agent.busy:
                await self.host.queue(text)
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
        screen = self._screen_command(name, has_argument=bool(argument.strip()))
        agent, activity = self.host.agent, f"/{name}"
        if not self._activity and screen is None:
            self._set_activity(activity)
        try:
            if screen is None:
                outcome = await registry.run(self.host, text)
            else:
                if registry.find_command(name).idle:
                    self.host.check_idle()
                outcome = await screen(argument.strip())
        except FoldlineError as error:
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

    # ---- commands with a screen

    def _screen_command(self, name: str, *, has_argument: bool) -> ScreenCommand | None:
        """Return the method that shows the screen of a command; some have one only without an argument."""
        always: dict[str, ScreenCommand] = {"preview": self._preview, "handoff": self._handoff}
        bare: dict[str, ScreenCommand] = {
            "autocompact": self._autocompact,
            "branch": self._branch,
            "resume": self._resume,
            "tree": self._tree,
        }
        return always.get(name) or (None if has_argument else bare.get(name))

    async def _preview(self, focus: str) -> Outcome | None:
        result = await self._app.push_screen_wait(PreviewScreen(self.session, focus))
        return Outcome(result) if result is not None else None

    async def _handoff(self, goal: str) -> Outcome | None:
        if not goal:
            return await registry.run(self.host, "/handoff")
        draft = await self.session.preview_handoff(goal)
        title = f"The first message of the session for “{short_line(goal)}”"
        text = await self._app.push_screen_wait(TextDialog(title, draft))
        if text is None:
            return None
        return await hand_off(self.host, goal, text)

    async def _autocompact(self, _argument: str) -> Outcome | None:
        title = autocompact_text(self.host).replace("*", "").replace("`", "")
        choices = ["on", "off"]
        index = await self._pick(title, choices, 0 if self.session.policy.enabled else 1)
        return None if index is None else await registry.run(self.host, f"/autocompact {choices[index]}")

    async def _branch(self, _argument: str) -> Outcome | None:
        prompts = await user_prompts(self.host)
        lines = [f"{'folded' if prompt.folded else '':<8}{short_line(prompt.text)}" for prompt in prompts]
        index = await self._pick("Continue from before which message?", lines, len(lines) - 1)
        return None if index is None else await rewind_to(self.host, prompts[index])

    async def _tree(self, _argument: str) -> Outcome | None:
        branches = await self.session.branches()
        lines = [
            f"{'here  ' if one.current else '      '}{one.messages:>4}  {short_line(one.text)}"
            for one in branches
        ]
        index = await self._pick("Switch to which branch?", lines)
        return None if index is None else await registry.run(self.host, f"/tree {index + 1}")

    async def _resume(self, _argument: str) -> Outcome | None:
        infos = await self.host.sessions()
        lines = [
            f"{local_date(info.updated)}  {info.messages:>4} messages  "
            f"{short_line(await session_title(self.host, info)) or info.id}"
            for info in infos
        ]
        index = await self._pick("Continue which session?", lines)
        if index is None:
            return None
        await self.host.resume(infos[index].id)
        return Outcome(await state_text(self.host), moved=True)

    async def _pick(self, title: str, lines: list[str], selected: int = 0) -> int | None:
        if not lines:
            await self._transcript.note("There is nothing to choose from yet.")
            return None
        return await self._app.push_screen_wait(Picker(title, lines, selected))

    async def _ask(self, request: PermissionRequest) -> Answer:
        """Ask for a permission, one at a time; stopping the turn closes the dialog."""
        async with self._asking:
            return await self._show_permission(request)

    async def _show_permission(self, request: PermissionRequest) -> Answer:
        result: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        screen = PermissionScreen(request)

        def on_answer(answer: Answer | None) -> None:
            if not result.done():
                result.set_result(answer or "no")

        try:
            self._permission_open = True
            self._draw_status()
            await self._app.push_screen(screen, on_answer)
            return await result
        finally:
            self._permission_open = False
            self._draw_status()
            if screen in self._app.screen_stack:
                screen.pop_until_active()
                screen.dismiss("no")

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
        note = _note_for(event)
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


def _note_for(event: Event) -> tuple[str, str] | None:
    """Return the note for an event and its kind; None if the status line is enough."""
    match event:
        case CompactionDone() | PruneDone() if (
            event.receipt.reason != "manual"
        ):  # a command returns its own text
            return result_text(event.receipt), ""
        case DraftFailed() if event.why == "error":
            return f"A fold in the background failed: {event.detail}", "error"
        case Struck():
            return f"A compaction failed ({event.why}); the session is unchanged.", "error"
        case CoolingDown():
            return (
                "Folding failed three times: auto-compaction is paused for a while. /compact still folds.",
                "error",
            )
        case OverflowRetried():
            return f"The request did not fit; it is repeated with a folded view: {event.why}", "warning"
        case WarningGiven():
            return event.text, "error" if event.kind == "failed" else "warning"
        case Logged():
            return event.text, "warning"
        case TurnEnded() if event.how == "interrupted":
            return "Stopped. Complete messages are kept; say how to continue.", "warning"
        case TurnEnded() if event.fell_short:
            return event.detail, "error"
        case _:
            return None
