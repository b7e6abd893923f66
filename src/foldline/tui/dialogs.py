"""Dialogs that ask for a permission, a choice, or an edited text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar, cast

from rich.syntax import Syntax
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, OptionList, Static, TextArea

from foldline.agent.permissions import Answer, PermissionRequest
from foldline.terminal import clean

T = TypeVar("T")
QUIET = 0.5  # seconds without another key before and after one that answers


class Dialog(ModalScreen[T | None]):
    """A box over the conversation; Escape closes it without an answer."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical { width: 90%; max-width: 110; height: auto; max-height: 90%; border: round $accent;
        background: $surface; padding: 0 1; }
    Dialog .title { text-style: bold; margin: 0 0 1 0; }
    Dialog Horizontal { height: auto; align-horizontal: right; }
    Dialog Button { margin: 0 0 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave")]

    def action_leave(self) -> None:
        """Close it without an answer."""
        self.dismiss(None)

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Close it with an answer, and what is open above it, such as the palette; do nothing if closed."""
        app = cast("App[Any]", self.app)
        while self in app.screen_stack[:-1]:
            app.screen.dismiss()
        if app.screen_stack[-1:] != [self]:
            return AwaitComplete.nothing()
        return super().dismiss(result)


class PermissionScreen(Dialog[Answer]):
    """Asks whether a tool may do something, and shows what would change.

    It may open while the user is typing: a letter answers only with a pause before and after it.
    """

    AUTO_FOCUS = ""
    CSS = "PermissionScreen VerticalScroll { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('once')", "Once"),
        Binding("a", "answer('always')", "Always"),
        Binding("n", "answer('no')", "No"),
    ]

    def __init__(self, request: PermissionRequest) -> None:
        super().__init__()
        self.request = request
        self._timer: Timer
        self._quiet = False  # no key was pressed for a while
        self._after_pause = False  # it was quiet before the newest key
        self._pending: Answer | None = None  # the answer, unless another key follows

    def compose(self) -> ComposeResult:
        """Show the request, what would change, and three answers."""
        with Vertical():
            yield Static(Text(clean(f"Allow {self.request.tool}?")), classes="title")
            with VerticalScroll():
                yield Static(Text(clean(self.request.detail)))
                if self.request.change:
                    change = clean(self.request.change)
                    yield Static(Syntax(change, "diff", theme="ansi_dark", background_color="default"))
            with Horizontal():
                yield Button("Yes, once (y)", id="once", variant="primary", compact=True, disabled=True)
                yield Button("Always (a)", id="always", compact=True, disabled=True)
                yield Button("No (n)", id="no", compact=True, disabled=True)

    def on_mount(self) -> None:
        """Wait until the user is not typing."""
        self._timer = self.set_timer(QUIET, self._listen)

    def on_resize(self, event: events.Resize) -> None:
        """Leave room for the title and the buttons; the request scrolls."""
        self.query_one(VerticalScroll).styles.max_height = max(1, event.size.height * 9 // 10 - 5)

    def on_key(self, event: events.Key) -> None:
        """Wait again: a letter among others was meant for the editor."""
        if not event.is_printable and event.key != "enter":
            return
        self._after_pause, self._quiet, self._pending = self._quiet, False, None
        self._timer.stop()
        self._timer = self.set_timer(QUIET, self._listen)

    def _listen(self) -> None:
        if self._pending is not None:
            self.dismiss(self._pending)
            return
        self._quiet = True
        for button in self.query(Button):
            button.disabled = False
        if self.focused is None:
            self.query_one(VerticalScroll).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer with a button."""
        answers: dict[str | None, Answer] = {"once": "once", "always": "always"}
        self.dismiss(answers.get(event.button.id, "no"))

    def action_answer(self, answer: Answer) -> None:
        """Answer with a key, unless other keys come shortly before or after it."""
        if self._after_pause:
            self._pending = answer


class Picker(Dialog[int]):
    """Asks for one of several lines; Escape chooses none."""

    CSS = "Picker OptionList { max-height: 20; height: auto; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, title: str, lines: Sequence[str], selected: int = 0) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._selected = selected

    def compose(self) -> ComposeResult:
        """Show the lines."""
        with Vertical():
            yield Static(Text(clean(self._title)), classes="title")
            yield OptionList(*(Text(clean(line), no_wrap=True, overflow="ellipsis") for line in self._lines))

    def on_mount(self) -> None:
        """Highlight the selected line."""
        options = self.query_one(OptionList)
        options.highlighted = self._selected
        options.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose a line."""
        self.dismiss(event.option_index)


class TextDialog(Dialog[str]):
    """Asks for an edited text; Escape cancels."""

    CSS = "TextDialog TextArea { height: 16; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "confirm", "Confirm")]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Show the text in an editor."""
        with Vertical():
            yield Static(Text(clean(self._title)), classes="title")
            yield TextArea(clean(self._text), soft_wrap=True)
            with Horizontal():
                yield Button("Confirm (Ctrl-S)", id="confirm", variant="primary", compact=True)
                yield Button("Leave (Esc)", id="leave", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Confirm or cancel with a button."""
        self.dismiss(self.query_one(TextArea).text if event.button.id == "confirm" else None)

    def action_confirm(self) -> None:
        """Return the text."""
        self.dismiss(self.query_one(TextArea).text)
