"""The selector of `/autocompact`: on or off, how much to leave free, how much to keep word for word."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from foldline.config import CompactionSettings
from foldline.core.decide.policy import Policy
from foldline.tui.dialogs import BOX


class OnOff(Button):
    """A switch that says on or off in words, also where there is no colour."""

    def __init__(self, *, value: bool, id: str) -> None:  # noqa: A002 - as in Textual
        super().__init__("on" if value else "off", id=id, compact=True)
        self.value = value

    def turn(self) -> None:
        """Turn it."""
        self.value = not self.value
        self.label = "on" if self.value else "off"


class AutocompactScreen(ModalScreen[dict[str, Any] | None]):
    """Asks for what `[compaction]` holds; returns the keys to set, None where nothing is to change."""

    CSS = (
        BOX.format(name="AutocompactScreen")
        + """
    AutocompactScreen .row { height: 1; margin: 0 0 1 0; align-horizontal: left; }
    AutocompactScreen Label { width: 36; }
    AutocompactScreen Input { width: 24; }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave"),
        Binding("ctrl+s", "save", "Save"),
    ]

    def __init__(self, policy: Policy, known: CompactionSettings) -> None:
        super().__init__()
        self._policy = policy
        self._known = known

    def compose(self) -> ComposeResult:
        """Show the three settings as they are."""
        with Vertical():
            yield Static(f"Auto-compaction (over policy {self._policy.name})", classes="title")
            with Horizontal(classes="row"):
                yield Label("Fold by itself")
                yield OnOff(value=self._policy.enabled, id="enabled")
            for name, what in (
                ("reserve", "Leave free (tokens or 15%)"),
                ("keep", "Keep word for word (tokens or 10%)"),
            ):
                with Horizontal(classes="row"):
                    yield Label(what)
                    value = getattr(self._known, name)
                    yield Input(
                        "" if value is None else str(value), placeholder="the policy's", id=name, compact=True
                    )
            with Horizontal():
                yield Button("Save (Ctrl-S)", id="save", variant="primary", compact=True)
                yield Button("Leave (Esc)", id="leave", compact=True)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Save or leave by a button."""
        if isinstance(event.button, OnOff):
            event.button.turn()
        elif event.button.id == "save":
            self.action_save()
        else:
            self.dismiss(None)

    def action_save(self) -> None:
        """Return the settings as they stand."""
        self.dismiss(
            {
                "enabled": self.query_one(OnOff).value,
                **{name: _amount(self.query_one(f"#{name}", Input).value) for name in ("reserve", "keep")},
            }
        )

    def action_leave(self) -> None:
        """Change nothing."""
        self.dismiss(None)


def _amount(text: str) -> int | str | None:
    digits = text.strip().replace(",", "").replace("_", "")
    return int(digits) if digits.isdecimal() else text.strip() or None
