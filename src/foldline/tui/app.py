"""`foldline chat`: the transcript, the editor, and a line that says how full the window is.

The screen is there before the agent is: that is loaded beside it, and what is typed meanwhile waits. What is
sent here is answered by `conversation.py`.
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
**Foldline** keeps this session inside the model's window and loses nothing. `/help` lists the commands,
`@` attaches a file, Esc stops a turn, Ctrl-O opens tool calls, Ctrl-Q leaves."""
SHOWN: Final = 8  # completions that are shown
RESIZED: Final = 0.25  # seconds after which the meter is drawn anew


class ChatApp(App[None]):
    """The screen; `demo` makes the options of the demonstration."""

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
        self.to_resume = ""  # once it was left: the session's id, where something was said
        self.transcript: Transcript
        self.editor: Editor
        self._hints: Static
        self._status: StatusLine
        self._meter: ContextMeter
        self._options = options
        self._history = History((options.home or expanded("~")) / ".foldline" / "history")
        self._demo = demo
        self._waiting: list[str] = []  # sent before the agent was there
        self._leaving = False
        self._calls_opened = False

    # ---- beginning and end

    def compose(self) -> ComposeResult:
        """Transcript above, editor and figures below."""
        self.transcript, self._hints = Transcript(), Static(id="hints")
        self.editor = Editor(self._history, self._complete)
        self._status, self._meter = StatusLine(), ContextMeter()
        yield from (self.transcript, self._hints, self.editor, self._status, self._meter)

    def on_mount(self) -> None:
        """Let the user type, and load the agent beside it."""
        self.editor.focus()
        self._status.show("loading")
        with suppress(NotImplementedError, RuntimeError):  # not on Windows, not beside the main thread
            leave = partial(self.exit, return_code=128 + signal.SIGTERM)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave)
        self.run_worker(self._load(), name="load")

    async def _load(self) -> None:
        """Load the agent and open its session; a wrong call ends the program with its error."""
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
        waiting, self._waiting = self._waiting, []
        for text in waiting:
            talk.send(text)

    async def on_unmount(self) -> None:
        """Close what is open."""
        if self.talk is not None:
            if self.talk.session.leaf is not None and not self._demo:
                self.to_resume = await self.talk.host.short(self.talk.session.id)
            await self.talk.close()

    # ---- what the user types

    @on(Editor.Sent)
    def _sent(self, event: Editor.Sent) -> None:
        self._leaving = False
        if self.talk is None:
            self._waiting.append(event.text)
        else:
            self.talk.send(event.text)

    def _complete(self, word: str, first: bool) -> Sequence[str]:
        return self.talk.complete(word, first) if self.talk is not None else ()

    @on(Editor.Typing)
    def _typing(self, event: Editor.Typing) -> None:
        self._hints.display = bool(event.found)
        self._hints.update(Text("\n".join(clean(word) for word in event.found[:SHOWN])))

    def on_resize(self) -> None:
        """Draw the figures for the new width."""
        if self.talk is not None:
            self.set_timer(RESIZED, self.talk.draw)

    # ---- keys

    def action_interrupt(self) -> None:
        """Stop the turn or the compaction under way."""
        if self.talk is not None:
            self.talk.interrupt()

    def action_leave(self) -> None:
        """Leave at the second Ctrl-C; the first stops the turn."""
        if self._leaving:
            self.exit()
            return
        self._leaving = True
        self.action_interrupt()
        self.notify("Ctrl-C again leaves; the session is saved.")

    def action_toggle_calls(self) -> None:
        """Open every tool call, or close them."""
        self._calls_opened = not self._calls_opened
        self.transcript.open_calls(opened=self._calls_opened)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Leave the keys that scroll to a dialog, where one is open."""
        return action != "scroll" or len(self.screen_stack) == 1

    def action_scroll(self, pages: int) -> None:
        """Scroll the transcript."""
        self.transcript.page(pages)
