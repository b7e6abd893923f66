"""`foldline chat`: the transcript, the editor, and a line that shows how full the window is.

The screen appears before the agent is loaded; prompts sent meanwhile wait. `conversation.py` handles them.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from foldline.agent.options import HostOptions
from foldline.errors import FoldlineError
from foldline.files import expanded
from foldline.terminal import clean
from foldline.tui.editor import Editor, History
from foldline.tui.meter import ContextMeter, StatusLine
from foldline.tui.transcript import Transcript

if TYPE_CHECKING:
    from foldline.tui.conversation import Conversation

WELCOME: Final = """\
**Foldline** keeps this session inside the model's window without losing anything. `/help` lists the commands,
`@` attaches a file, Esc stops a turn, Ctrl-O opens tool calls, Ctrl-Q leaves."""
SHOWN: Final = 8  # completions that are shown
RESIZE_DELAY: Final = 0.25  # seconds until the meter is redrawn


class ChatApp(App[None]):
    """The screen; `demo` shows the demonstration."""

    TITLE = "foldline chat"
    CSS = """
    #hints { height: auto; max-height: 8; padding: 0 1; color: $text-muted; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "interrupt", "Stop", priority=False),
        Binding("ctrl+q", "quit", "Leave", priority=True),
        Binding("ctrl+c", "leave", "Leave", priority=True),
        Binding("ctrl+o", "toggle_calls", "Open tool calls"),
        Binding("pageup", "scroll(-1)", "Up", priority=True),
        Binding("pagedown", "scroll(1)", "Down", priority=True),
    ]

    def __init__(self, options: HostOptions, *, demo: bool = False) -> None:
        super().__init__()
        self.talk: Conversation | None = None  # None until it is loaded
        self.to_resume = ""  # after leaving: the session's id, unless it is empty
        self.transcript: Transcript
        self.editor: Editor
        self._hints: Static
        self._status: StatusLine
        self._meter: ContextMeter
        self._options = options
        self._history = History((options.home or expanded("~")) / ".foldline" / "history")
        self._demo = demo
        self._unsent: list[str] = []  # prompts from before the agent was loaded
        self._leaving = False
        self._calls_opened = False

    # ---- start and end

    def compose(self) -> ComposeResult:
        """Show the transcript, the editor below, and the figures at the bottom."""
        self.transcript, self._hints = Transcript(), Static(id="hints")
        self.editor = Editor(self._history, self._complete)
        self._status, self._meter = StatusLine(), ContextMeter()
        yield from (self.transcript, self._hints, self.editor, self._status, self._meter)

    def on_mount(self) -> None:
        """Focus the editor, and load the agent in the background."""
        self.editor.focus()
        self._status.show("loading")
        with suppress(NotImplementedError, RuntimeError):  # not on Windows, not outside the main thread
            leave = partial(self.exit, return_code=128 + signal.SIGTERM)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
        self.run_worker(self._load(), name="load")

    async def _load(self) -> None:
        """Load the agent and open its session; an error ends the program."""
        options = self._options
        try:
            module = await asyncio.to_thread(import_module, "foldline.tui.conversation")
            if self._demo:
                options = await asyncio.to_thread(module.demonstration, options)
            talk: Conversation = module.Conversation(
                self, self.transcript, self.editor, self._status, self._meter
            )
            await talk.open(options)
        except FoldlineError as error:
            self.exit(return_code=error.exit_code, message=Text(clean(f"error: {error}")))
            return
        self.talk = talk
        await self.transcript.load(talk.session)
        await self.transcript.note(WELCOME)
        await talk.begin()
        unsent, self._unsent = self._unsent, []
        for text in unsent:
            talk.send(text)

    async def on_unmount(self) -> None:
        """Close the conversation."""
        if self.talk is not None:
            if self.talk.session.leaf is not None and not self._demo:
                self.to_resume = await self.talk.host.short(self.talk.session.id)
            await self.talk.close()

    # ---- input

    @on(Editor.Sent)
    def _send(self, event: Editor.Sent) -> None:
        self._leaving = False
        if self.talk is None:
            self._unsent.append(event.text)
        else:
            self.talk.send(event.text)

    def _complete(self, word: str, first: bool) -> Sequence[str]:
        return self.talk.complete(word, first) if self.talk is not None else ()

    @on(Editor.Typing)
    def _show_hints(self, event: Editor.Typing) -> None:
        self._hints.display = bool(event.candidates)
        self._hints.update(Text("\n".join(clean(word) for word in event.candidates[:SHOWN])))

    def on_resize(self) -> None:
        """Redraw the figures for the new width."""
        if self.talk is not None:
            self.set_timer(RESIZE_DELAY, self.talk.draw)

    # ---- keys

    def action_interrupt(self) -> None:
        """Stop the running turn or compaction."""
        if self.talk is not None:
            self.talk.interrupt()

    def action_leave(self) -> None:
        """Leave at the second Ctrl-C; the first stops the turn."""
        if self._leaving:
            self.exit()
            return
        self._leaving = True
        self.action_interrupt()
        self.notify("Press Ctrl-C again to leave; the session is saved.")

    def action_toggle_calls(self) -> None:
        """Open or close all tool calls."""
        self._calls_opened = not self._calls_opened
        self.transcript.open_calls(opened=self._calls_opened)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave the scroll keys to an open dialog."""
        return action != "scroll" or len(self.screen_stack) == 1

    def action_scroll(self, pages: int) -> None:
        """Scroll the transcript."""
        self.transcript.page(pages)
