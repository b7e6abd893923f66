"""`foldline chat`: the transcript, the editor, and a line that says how full the window is.

The host works in tasks of its own; what it tells comes through one queue, so that it is shown in order and
typing never waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from foldline.agent.commands import registry
from foldline.agent.commands.boundaries import set_autocompact
from foldline.agent.commands.command import Outcome
from foldline.agent.commands.places import back_to, line, prompts
from foldline.agent.commands.sessions import stands
from foldline.agent.events import OverflowRetried, TurnEnded
from foldline.agent.host import Host, HostOptions
from foldline.agent.permissions import Answer, PermissionRequest
from foldline.errors import FoldlineError
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
from foldline.terminal import clean
from foldline.tui.autocompact import AutocompactScreen
from foldline.tui.blocks import NoteBlock
from foldline.tui.completion import SHOWN, Completion
from foldline.tui.dialogs import PermissionScreen, Picker, TextDialog
from foldline.tui.editor import Editor, History
from foldline.tui.meter import ContextMeter
from foldline.tui.preview import PreviewScreen
from foldline.tui.transcript import Transcript

WELCOME = """\
**Foldline** keeps this session inside the model's window and loses nothing. `/help` lists the commands,
`@` attaches a file, Esc stops a turn, Ctrl-O opens tool calls, Ctrl-Q leaves."""
RESIZED = 0.25  # seconds after which the meter is drawn anew


class ChatApp(App[None]):
    """The screen of one host."""

    TITLE = "foldline chat"
    CSS = """
    #status { height: 1; padding: 0 1; color: $text-muted; }
    #hints { height: auto; max-height: 8; padding: 0 1; color: $text-muted; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "interrupt", "Stop", priority=False),
        Binding("ctrl+q", "quit", "Leave", priority=True),
        Binding("ctrl+c", "leave_or_copy", "Leave", priority=True),
        Binding("ctrl+o", "toggle_calls", "Open tool calls"),
        Binding("pageup", "scroll(-1)", "Up", priority=True),
        Binding("pagedown", "scroll(1)", "Down", priority=True),
    ]

    def __init__(self, options: HostOptions) -> None:
        super().__init__()
        self._options = options
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._doing = ""  # what goes on, for the status line
        self._asked_to_leave = False
        self._calls_opened = False
        self.host: Host

    # ---- beginning and end

    def compose(self) -> ComposeResult:
        """Transcript above, editor and figures below."""
        yield Transcript()
        yield Static(id="hints")
        yield Static(id="status")
        yield ContextMeter()

    async def on_mount(self) -> None:
        """Open the host; a wrong call ends the program with its error."""
        try:
            self.host = await Host.open(self._options, emit=self._events.put_nowait, ask=self._ask)
        except FoldlineError as error:
            self.exit(return_code=error.exit_code, message=f"error: {error}")
            return
        if self.host.settings.agent.theme:
            self.theme = self.host.settings.agent.theme
        complete = Completion(self.host.workspace)
        editor = Editor(History(self.host.home / ".foldline" / "history"), complete)
        await self.mount(editor, before="#status")
        editor.focus()
        self.run_worker(self._show_events(), name="events")
        self.run_worker(complete.load, name="files", thread=True)
        await self._opened_session(WELCOME)

    async def on_unmount(self) -> None:
        """Close what the host has open."""
        if hasattr(self, "host"):
            self.host.agent.interrupt()
            await self.host.close()

    @property
    def transcript(self) -> Transcript:
        """The conversation."""
        return self.screen_stack[0].query_one(Transcript)

    @property
    def editor(self) -> Editor:
        """Where the user types."""
        return self.screen_stack[0].query_one(Editor)

    async def _opened_session(self, text: str) -> None:
        await self.transcript.load(self.host.session)
        if text:
            await self.note(text)
        await self.draw()

    # ---- what the user sends

    @on(Editor.Sent)
    def _sent(self, event: Editor.Sent) -> None:
        self._asked_to_leave = False
        if event.text.startswith("/") and not event.text.startswith("//"):
            self.run_worker(self._command(event.text), group="commands", exit_on_error=False)
        else:
            self.run_worker(self._prompt(event.text), group="turns", exit_on_error=False)

    @on(Editor.Typing)
    def _typing(self, event: Editor.Typing) -> None:
        hints = self.screen_stack[0].query_one("#hints", Static)
        hints.display = bool(event.found)
        hints.update(Text("\n".join(clean(word) for word in event.found[:SHOWN])))

    async def _prompt(self, text: str) -> None:
        try:
            if self.host.agent.busy:
                await self.host.queue(text)
                await self.draw()
            else:
                self._doing = "working"
                await self.host.prompt(text)
        except FoldlineError as error:
            await self.note(str(error), "error")
        finally:
            await self.draw()

    async def _command(self, text: str) -> None:
        name, _, argument = text[1:].strip().partition(" ")
        screens: dict[str, Callable[[str], Awaitable[Outcome | None]]] = {
            "preview": self._preview,
            "handoff": self._handoff,
        }
        bare = {
            "autocompact": self._autocompact,
            "branch": self._branch,
            "resume": self._resume,
            "tree": self._tree,
        }
        if not argument.strip():
            screens |= bare
        try:
            if name in screens:
                if registry.named(name).idle:
                    self.host.check_idle()
                outcome = await screens[name](argument.strip())
            else:
                outcome = await registry.run(self.host, text)
        except FoldlineError as error:
            await self.note(str(error), "error")
            return
        if outcome is not None:
            await self._show(outcome)

    async def _show(self, outcome: Outcome) -> None:
        """Show what a command answered, behind what happened meanwhile."""
        await self._events.join()
        if outcome.leave:
            self.exit()
            return
        if outcome.moved:
            await self.transcript.load(self.host.session)
        if outcome.text:
            await self.note(outcome.text)
        if outcome.editor is not None:
            self.editor.put(outcome.editor)
        await self.draw()

    # ---- commands with a screen of their own

    async def _preview(self, focus: str) -> Outcome | None:
        done = await self.push_screen_wait(PreviewScreen(self.host.session, focus))
        return Outcome(done) if done is not None else None

    async def _handoff(self, goal: str) -> Outcome | None:
        if not goal:
            return await registry.run(self.host, "/handoff")
        draft = await self.host.session.preview_handoff(goal)
        text = await self.push_screen_wait(
            TextDialog(f"What the session for “{line(goal)}” begins with", draft)
        )
        if text is None:
            return None
        made = await self.host.session.handoff(goal, to=self.host.new_id(), text=text)
        before = self.host.session.id
        await self.host.resume(made.id)
        return Outcome(f"A new session for “{goal}”. The other one: `/resume {before}`.", moved=True)

    async def _autocompact(self, _argument: str) -> Outcome | None:
        known = self.host.settings.compaction
        values = await self.push_screen_wait(AutocompactScreen(self.host.session.policy, known))
        if values is None:
            return None
        await set_autocompact(self.host, values)
        return await registry.run(self.host, "/autocompact show")

    async def _branch(self, _argument: str) -> Outcome | None:
        asked = await prompts(self.host)
        lines = [f"{'folded  ' if one.folded else '        '}{line(one.text)}" for one in asked]
        found = await self._picked("Go on from before which message?", lines, len(lines) - 1)
        return None if found is None else await back_to(self.host, asked[found])

    async def _tree(self, _argument: str) -> Outcome | None:
        branches = await self.host.session.branches()
        lines = [
            f"{'here  ' if one.current else '      '}{one.messages:>4}  {line(one.text)}" for one in branches
        ]
        found = await self._picked("Go to which branch?", lines)
        return None if found is None else await registry.run(self.host, f"/tree {found + 1}")

    async def _resume(self, _argument: str) -> Outcome | None:
        infos = await self.host.sessions()
        lines = [f"{info.messages:>4} messages  {info.title or info.id}" for info in infos]
        found = await self._picked("Go on with which session?", lines)
        if found is None:
            return None
        await self.host.resume(infos[found].id)
        return Outcome(await stands(self.host), moved=True)

    async def _picked(self, title: str, lines: list[str], chosen: int = 0) -> int | None:
        if not lines:
            await self.note("There is nothing to choose from yet.")
            return None
        return await self.push_screen_wait(Picker(title, lines, chosen))

    async def _ask(self, request: PermissionRequest) -> Answer:
        """Ask for a permission; a turn that is stopped meanwhile takes the question away."""
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        screen = PermissionScreen(request)

        def answered(answer: Answer | None) -> None:
            if not asked.done():
                asked.set_result(answer or "no")

        await self.push_screen(screen, answered)
        try:
            return await asked
        finally:
            if screen.is_current:
                screen.dismiss("no")

    # ---- what the host tells

    async def _show_events(self) -> None:
        while True:
            event = await self._events.get()
            try:
                await self.transcript.show(event, self.host.session)
                await self._noticed(event)
            finally:
                self._events.task_done()

    async def _noticed(self, event: Event) -> None:
        """Say what goes on in the status line; what went wrong stands in the transcript."""
        match event:
            case DraftStarted():
                self._doing = "folding in the background"
            case DraftReady():
                self._doing = "a fold is ready"
            case CompactionStarted():
                self._doing = f"folding ({event.reason})"
            case CompactionDone() | PruneDone() | NothingDone():
                self._doing = "working" if self.host.agent.busy else ""
            case DraftFailed() if event.why == "error":
                await self.note(f"A fold in the background failed: {event.detail}", "error")
            case Struck():
                await self.note(f"A compaction failed ({event.why}); the session is as it was.", "error")
            case CoolingDown():
                await self.note(
                    "Folding failed three times: none starts by itself for a while. /compact does.", "error"
                )
            case OverflowRetried():
                await self.note(
                    f"The request did not fit, so it is folded and made again: {event.why}", "warning"
                )
            case WarningGiven():
                await self.note(event.text, "error" if event.kind == "failed" else "warning")
            case TurnEnded():
                await self._turn_ended(event)
            case _:
                return
        await self.draw()

    async def _turn_ended(self, event: TurnEnded) -> None:
        self._doing = "working" if self.host.agent.queue and event.how != "failed" else ""
        await self.transcript.end()
        if event.how == "interrupted":
            await self.note("Stopped. What is whole stays; say how to go on.", "warning")
        elif event.how in ("failed", "steps"):
            await self.note(event.detail, "error")

    # ---- the lines below

    async def note(self, text: str, kind: str = "") -> None:
        """Say something in the transcript."""
        await self.transcript.add(NoteBlock(text, kind))

    async def draw(self) -> None:
        """Draw the figures and what goes on."""
        session = self.host.session
        stats = await session.stats()
        base = self.screen_stack[0]
        base.query_one(ContextMeter).show(
            stats,
            model=self.host.model_name,
            usd=self.host.usd,
            autocompact=session.policy.enabled and session.policy.hard is not None,
        )
        queued = len(self.host.agent.queue)
        parts = [
            *([f"{self._doing} …"] if self._doing else []),
            *([f"{queued} queued"] if queued else []),
            *(["Esc stops"] if self.host.agent.busy else []),
        ]
        base.query_one("#status", Static).update(Text(" · ".join(parts)))

    def on_resize(self) -> None:
        """Draw the figures for the new width."""
        if hasattr(self, "host") and hasattr(self.host, "session"):
            self.set_timer(RESIZED, self.draw)

    # ---- keys

    def action_interrupt(self) -> None:
        """Stop the turn or the compaction under way."""
        self.host.agent.interrupt()
        for worker in self.workers:
            if worker.group == "commands":
                worker.cancel()

    def action_leave_or_copy(self) -> None:
        """Leave at the second Ctrl-C; the first stops the turn."""
        if self._asked_to_leave:
            self.exit()
            return
        self._asked_to_leave = True
        self.host.agent.interrupt()
        self.notify("Ctrl-C again leaves; the session is saved.")

    def action_toggle_calls(self) -> None:
        """Open every tool call, or close them."""
        self._calls_opened = not self._calls_opened
        self.transcript.open_calls(opened=self._calls_opened)

    def action_scroll(self, pages: int) -> None:
        """Scroll the transcript."""
        self.transcript.page(pages)
