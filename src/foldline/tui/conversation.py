"""The agent behind the screen: prompts and commands go to its host, and what that tells is shown in order.

The host works in tasks of its own and tells through one queue, so that typing never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
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
LISTED = 5_000  # files of the folder that are offered
Screen = Callable[[str], Awaitable[Outcome | None]]


class Completion:
    """Completes words in a folder; its files are listed once, in a thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._files: list[str] = []

    def load(self) -> None:
        """List the files of the folder."""
        found: list[str] = []
        for path in files(self._workspace.root):
            found.append(self._workspace.shown(path))
            if len(found) >= LISTED:
                break
        self._files = found

    def __call__(self, word: str, first: bool) -> Sequence[str]:
        """Return what a word may become, the likeliest first."""
        if word.startswith("/"):
            return [f"/{name}" for name in registry.COMMANDS if f"/{name}".startswith(word)] if first else ()
        typed = word[1:].strip('"').lower()
        begin = [name for name in self._files if name.lower().startswith(typed)]
        inside = [name for name in self._files if typed in name.lower() and name not in begin[:COMPLETIONS]]
        return [_reference(name) for name in (*begin, *inside)[:COMPLETIONS]]


def _reference(name: str) -> str:
    """Return what attaches a file: its name, in quotes where it would not be read to its end."""
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
        self._showing = False  # an event that was taken and is not on the screen yet
        self._doing = ""  # what goes on, for the status line
        self._beside = ""  # what goes on in the background
        self._why = ""  # why the model is waited for
        self._asks = False  # whether the user is asked for a permission

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
            known = did_you_mean(theme, self._app.available_themes)
            self._events.put_nowait(Logged(text=f"no theme {theme!r}{known}: Ctrl-P lists them"))
        self._app.run_worker(self.complete.load, name="files", thread=True)
        await self.draw()

    async def begin(self) -> None:
        """Say where a session that goes on stands; from now on, show what happens."""
        if self.session.leaf is not None:
            await self._transcript.note(await state_text(self.host))
        self._app.run_worker(self._show_events(), name="events")

    async def close(self) -> None:
        """Stop what goes on and close what is open."""
        self.host.agent.interrupt()
        await self.host.close()
        self._notices.close()

    @property
    def session(self) -> Session:
        """The session that is shown."""
        return self.host.session

    @property
    def quiet(self) -> bool:
        """Whether nothing goes on, and all is shown."""
        groups = ("turns", "commands")
        working = [one for one in self._app.workers if one.group in groups and not one.is_finished]
        return not working and not self.host.agent.busy and self._events.empty() and not self._showing

    def interrupt(self) -> None:
        """Stop the turn, the compaction or the command under way; what is asked meanwhile goes away."""
        for screen in reversed(self._app.screen_stack):
            if isinstance(screen, Dialog):
                screen.action_leave()
        if self.host.interrupt():
            self._do("stopping")
            self._app.run_worker(self._stopped(), group="turns")
        for worker in self._app.workers:
            if worker.group == "commands":
                worker.cancel()

    # ---- what the user sends

    def send(self, text: str) -> None:
        """Have a prompt worked on, or a command run."""
        if text.startswith("/") and not text.startswith("//"):
            self._app.run_worker(self._command(text), group="commands", exit_on_error=False)
        else:
            self._app.run_worker(self._prompt(text), group="turns", exit_on_error=False)

    async def _prompt(self, text: str) -> None:
        try:
            if self.host.agent.busy:
                await self.host.queue(text)
            else:
                self._do("waiting for the model")
                await self.host.prompt(text)
        except FoldlineError as error:
            self._do("")
            await self._transcript.note(str(error), "error")
        finally:
            await self.draw()

    async def _command(self, text: str) -> None:
        name, _, argument = text[1:].strip().partition(" ")
        screen = self._screen_of(name, bare=not argument.strip())
        agent, shown = self.host.agent, f"/{name}"
        if not self._doing and screen is None:
            self._do(shown)
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
            await self._stopped()
            await self._transcript.note("Stopped.", "warning")
            raise
        finally:
            if self._doing == shown:
                self._do("")
        if outcome is not None:
            await self._show(outcome)
        if agent is not self.host.agent and agent.queue:  # what a turn that failed left
            left = "\n".join(short_line(str(words[0])) for words in agent.queue)
            await self._transcript.note(f"Not sent, since the session is another one:\n{left}", "warning")

    async def _stopped(self) -> None:
        """Show no more of what was stopped: a fold that is cancelled does not tell of its end."""
        await self._events.join()
        await self._transcript.drop_summary()
        if not self.host.agent.busy:
            self._do("")

    async def _show(self, outcome: Outcome) -> None:
        """Show what a command answered, behind what happened meanwhile."""
        await self._events.join()
        if outcome.leave:
            self._app.exit()
            return
        if outcome.moved:
            self._beside = ""
            await self._transcript.load(self.session)
        if outcome.text:
            await self._transcript.note(outcome.text)
        if outcome.editor is not None:
            self._editor.put(outcome.editor)
        await self.draw()

    # ---- commands with a screen of their own

    def _screen_of(self, name: str, *, bare: bool) -> Screen | None:
        """Return what shows the screen of a command; some have one only without an argument."""
        always: dict[str, Screen] = {"preview": self._preview, "handoff": self._handoff}
        alone: dict[str, Screen] = {
            "autocompact": self._autocompact,
            "branch": self._branch,
            "resume": self._resume,
            "tree": self._tree,
        }
        return always.get(name) or (alone.get(name) if bare else None)

    async def _preview(self, focus: str) -> Outcome | None:
        done = await self._app.push_screen_wait(PreviewScreen(self.session, focus))
        return Outcome(done) if done is not None else None

    async def _handoff(self, goal: str) -> Outcome | None:
        if not goal:
            return await registry.run(self.host, "/handoff")
        draft = await self.session.preview_handoff(goal)
        title = f"What the session for “{short_line(goal)}” begins with"
        text = await self._app.push_screen_wait(TextDialog(title, draft))
        if text is None:
            return None
        return await hand_off(self.host, goal, text)

    async def _autocompact(self, _argument: str) -> Outcome | None:
        shown = autocompact_text(self.host).replace("*", "").replace("`", "")
        found = await self._picked(shown, ["on", "off"], 0 if self.session.policy.enabled else 1)
        return (
            None if found is None else await registry.run(self.host, f"/autocompact {('on', 'off')[found]}")
        )

    async def _branch(self, _argument: str) -> Outcome | None:
        asked = await user_prompts(self.host)
        lines = [f"{'folded  ' if one.folded else '        '}{short_line(one.text)}" for one in asked]
        found = await self._picked("Go on from before which message?", lines, len(lines) - 1)
        return None if found is None else await rewind_to(self.host, asked[found])

    async def _tree(self, _argument: str) -> Outcome | None:
        branches = await self.session.branches()
        lines = [
            f"{'here  ' if one.current else '      '}{one.messages:>4}  {short_line(one.text)}"
            for one in branches
        ]
        found = await self._picked("Go to which branch?", lines)
        return None if found is None else await registry.run(self.host, f"/tree {found + 1}")

    async def _resume(self, _argument: str) -> Outcome | None:
        infos = await self.host.sessions()
        lines = [
            f"{local_date(info.updated)}  {info.messages:>4} messages  "
            f"{short_line(await session_title(self.host, info)) or info.id}"
            for info in infos
        ]
        found = await self._picked("Go on with which session?", lines)
        if found is None:
            return None
        await self.host.resume(infos[found].id)
        return Outcome(await state_text(self.host), moved=True)

    async def _picked(self, title: str, lines: list[str], chosen: int = 0) -> int | None:
        if not lines:
            await self._transcript.note("There is nothing to choose from yet.")
            return None
        return await self._app.push_screen_wait(Picker(title, lines, chosen))

    async def _ask(self, request: PermissionRequest) -> Answer:
        """Ask for a permission, one at a time; a turn that is stopped meanwhile takes the question away."""
        async with self._asking:
            return await self._asked(request)

    async def _asked(self, request: PermissionRequest) -> Answer:
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        screen = PermissionScreen(request)

        def answered(answer: Answer | None) -> None:
            if not asked.done():
                asked.set_result(answer or "no")

        try:
            self._asks = True
            self._tell()
            await self._app.push_screen(screen, answered)
            return await asked
        finally:
            self._asks = False
            self._tell()
            if screen in self._app.screen_stack:
                screen.pop_until_active()
                screen.dismiss("no")

    # ---- what the host tells

    async def _show_events(self) -> None:
        while True:
            event = await self._events.get()
            self._showing = True
            try:
                await self._transcript.show(event, self.session)
                await self._noticed(event)
            finally:
                self._showing = False
                self._events.task_done()

    async def _noticed(self, event: Event) -> None:
        """Say what goes on in the status line; what went wrong stands in the transcript."""
        said = _said_of(event)
        if said is not None:
            await self._transcript.note(*said)
        match event:
            case ThinkingStreamed():
                return self._do("thinking")
            case TextStreamed():
                return self._do("writing")
            case CallStarted():
                return self._do(f"running {event.tool}")
            case CallEnded() | ReplyEnded():
                return self._rest()
            case ReplyDelayed():
                self._do(f"waiting to ask again, after attempt {event.attempt}", " ".join(event.why.split()))
            case DraftStarted():
                self._beside = "folding in the background"
            case DraftReady():
                self._beside = "a fold is ready"
            case CompactionStarted():
                self._do(f"folding ({event.reason})")
            case CompactionDone() | PruneDone() | NothingDone() | DraftFailed():
                self._beside = ""
                self._rest()
            case TurnEnded():
                self._do("waiting for the model" if self.host.agent.queue and event.how != "failed" else "")
                await self._transcript.end()
            case _:
                if said is None:
                    return None
        return await self.draw()

    async def draw(self, *_: Any) -> None:
        """Draw the figures and what goes on."""
        policy = self.session.policy
        self._meter.show(
            await self.session.stats(),
            model=self.host.model_name,
            usd=self.host.usd,
            autocompact=policy.enabled and policy.hard is not None,
        )
        self._tell()

    def _do(self, what: str, why: str = "") -> None:
        """Say in the status line what goes on, and why."""
        if (what, why) != (self._doing, self._why):
            self._doing, self._why = what, why
            self._tell()

    def _rest(self) -> None:
        self._do("waiting for the model" if self.host.agent.busy else "")

    def _tell(self) -> None:
        queued = len(self.host.agent.queue)
        parts = [
            *(["Esc stops"] if self._doing and not self._asks else []),
            *([f"{queued} queued"] if queued else []),
            *([self._beside] if self._beside else []),
            *([self._why] if self._why else []),
        ]
        self._status.show("waiting for your answer" if self._asks else self._doing, " · ".join(parts))


def _said_of(event: Event) -> tuple[str, str] | None:
    """Return what is to be said of an event, and how; None where the status line is enough."""
    match event:
        case CompactionDone() | PruneDone() if event.receipt.reason != "manual":  # a command says it itself
            return result_text(event.receipt), ""
        case DraftFailed() if event.why == "error":
            return f"A fold in the background failed: {event.detail}", "error"
        case Struck():
            return f"A compaction failed ({event.why}); the session is as it was.", "error"
        case CoolingDown():
            return (
                "Folding failed three times: it will not start by itself for a while. /compact still folds.",
                "error",
            )
        case OverflowRetried():
            return f"The request did not fit, so it is folded and made again: {event.why}", "warning"
        case WarningGiven():
            return event.text, "error" if event.kind == "failed" else "warning"
        case Logged():
            return event.text, "warning"
        case TurnEnded() if event.how == "interrupted":
            return "Stopped. What is whole stays; say how to go on.", "warning"
        case TurnEnded() if event.fell_short:
            return event.detail, "error"
        case _:
            return None
