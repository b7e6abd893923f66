"""Small screens that ask for one thing: a permission, a choice, a text to edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from rich.syntax import Syntax
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, OptionList, Static, TextArea

from foldline.agent.permissions import Answer, PermissionRequest
from foldline.terminal import clean

T = TypeVar("T")
QUIET = 0.5  # seconds without another key before and behind one that answers


class Dialog(ModalScreen[T | None]):
    """A box over the conversation; Escape leaves it without an answer."""

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
        """Answer nothing."""
        self.dismiss(None)


class PermissionScreen(Dialog[Answer]):
    """Asks whether a tool may do something, and shows what would change.

    It comes while the user may be typing: a letter answers alone only, with a pause before and behind it.
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
        self._quiet = False  # whether no key came for a while
        self._alone = False  # whether it was so before the newest key
        self._given: Answer | None = None  # the answer, unless another key follows

    def compose(self) -> ComposeResult:
        """Show the request, what would change, and three answers."""
        asked = self.request
        with Vertical():
            yield Static(Text(clean(f"Allow {asked.tool}?")), classes="title")
            with VerticalScroll():
                yield Static(Text(clean(asked.detail)))
                if asked.change:
                    change = clean(asked.change)
                    yield Static(Syntax(change, "diff", theme="ansi_dark", background_color="default"))
            with Horizontal():
                yield Button("Yes, once (y)", id="once", variant="primary", compact=True, disabled=True)
                yield Button("Always (a)", id="always", compact=True, disabled=True)
                yield Button("No (n)", id="no", compact=True, disabled=True)

    def on_mount(self) -> None:
        """Wait until the user is not typing."""
        self._timer = self.set_timer(QUIET, self._listen)

    def on_resize(self, event: events.Resize) -> None:
        """Leave room for the title and the buttons: what does not fit is scrolled to."""
        self.query_one(VerticalScroll).styles.max_height = max(1, event.size.height * 9 // 10 - 5)

    def on_key(self, event: events.Key) -> None:
        """Wait again: a letter with others around it was meant for the editor."""
        if not event.is_printable and event.key != "enter":
            return
        self._alone, self._quiet, self._given = self._quiet, False, None
        self._timer.stop()
        self._timer = self.set_timer(QUIET, self._listen)

    def _listen(self) -> None:
        if self._given is not None:
            self.dismiss(self._given)
            return
        self._quiet = True
        for button in self.query(Button):
            button.disabled = False
        if self.focused is None:
            self.query_one(VerticalScroll).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Answer by a button."""
        answers: dict[str | None, Answer] = {"once": "once", "always": "always"}
        self.dismiss(answers.get(event.button.id, "no"))

    def action_answer(self, answer: Answer) -> None:
        """Answer by a key, unless others came before it or follow."""
        if self._alone:
            self._given = answer


class Picker(Dialog[int]):
    """Asks for one of several lines; Escape takes none."""

    CSS = "Picker OptionList { max-height: 20; height: auto; text-wrap: nowrap; text-overflow: ellipsis; }"

    def __init__(self, title: str, lines: Sequence[str], chosen: int = 0) -> None:
        super().__init__()
        self._title = title
        self._lines = lines
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """Show the lines."""
        with Vertical():
            yield Static(Text(clean(self._title)), classes="title")
            yield OptionList(*(Text(clean(line), no_wrap=True, overflow="ellipsis") for line in self._lines))

    def on_mount(self) -> None:
        """Begin at the line that was named."""
        found = self.query_one(OptionList)
        found.highlighted = self._chosen
        found.focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take a line."""
        self.dismiss(event.option_index)


class TextDialog(Dialog[str]):
    """Has a text edited and confirmed; Escape leaves it."""

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
        """Confirm or leave by a button."""
        self.dismiss(self.query_one(TextArea).text if event.button.id == "confirm" else None)

    def action_confirm(self) -> None:
        """Take the text as it stands."""
        self.dismiss(self.query_one(TextArea).text)
