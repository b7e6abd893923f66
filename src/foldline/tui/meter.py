"""The status line, and the meter: how full the window is, the model, the price so far."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.text import Text
from textual.timer import Timer
from textual.widgets import Static

from foldline.terminal import clean

if TYPE_CHECKING:
    from foldline.session.view import Stats

WARM, HOT, FULL = 0.70, 0.85, 0.95  # shares of the usable window from which the meter is coloured
CELLS = 20
WIDE = 110  # columns from which the categories are shown
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TICK = 0.1  # seconds per frame


def colour(share: float) -> str:
    """Return the meter's colour for a share of the usable window."""
    if share >= FULL:
        return "bold red"
    return "red" if share >= HOT else "yellow" if share >= WARM else "green"


def meter_text(stats: Stats | None, *, model: str, usd: float, autocompact: bool, width: int) -> Text:
    """Return the meter for a width in columns; without `stats`, only model and price."""
    line = Text()
    if stats is not None:
        share = stats.context_tokens / stats.usable if stats.usable else 1.0
        filled = min(CELLS, round(share * CELLS))
        line.append("█" * filled, style=colour(share))
        line.append("░" * (CELLS - filled), style="dim")
        line.append(f" {stats.context_tokens:,} / {stats.usable:,} ({share:.0%})", style=colour(share))
    if not autocompact:
        line.append("  auto-compact off", style="bold yellow")
    if model:
        line.append(f"  {model.partition('@http')[0]}", style="cyan")  # its address would fill the line
    if usd:
        line.append(f"  ${usd:.4f}" if usd < 1 else f"  ${usd:.2f}")
    if stats is not None and width >= WIDE:
        line.append(f"  {categories(stats)}", style="dim")
    return line


def categories(stats: Stats) -> str:
    """Return what the window is spent on, the largest first."""
    total = sum(stats.by_category.values()) or 1
    sizes = sorted(stats.by_category.items(), key=lambda pair: -pair[1])
    return " · ".join(f"{name} {tokens / total:.0%}" for name, tokens in sizes[:4] if tokens * 50 >= total)


class StatusLine(Static):
    """The current activity, its seconds, and how to stop it."""

    DEFAULT_CSS = """
    StatusLine {
        height: 1; padding: 0 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._activity = ""
        self._details = ""
        self._since = 0.0
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        """Animate the line during an activity."""
        self._timer = self.set_interval(TICK, self._draw, pause=not self._activity)

    def show(self, activity: str, details: str = "") -> None:
        """Show an activity ("": none) and details."""
        if activity and not self._activity:
            self._since = time.monotonic()
        self._activity, self._details = activity, details
        if self._timer is not None:
            (self._timer.resume if activity else self._timer.pause)()
        self._draw()

    def _draw(self) -> None:
        if not self._activity:
            self.update(Text(clean(self._details)))
            return
        seconds = time.monotonic() - self._since
        line = Text(f"{SPINNER[int(seconds / TICK) % len(SPINNER)]} ", style="bold")
        words = [clean(self._activity), *([f"{seconds:.0f} s"] if seconds >= 1 else []), clean(self._details)]
        line.append(" · ".join(word for word in words if word), style="not bold")
        self.update(line)


class ContextMeter(Static):
    """The meter; `show` redraws it."""

    DEFAULT_CSS = """
    ContextMeter {
        height: 1; padding: 0 1; background: $panel; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def show(self, stats: Stats | None, *, model: str, usd: float, autocompact: bool) -> None:
        """Draw the figures."""
        width = self.size.width or 80
        self.update(meter_text(stats, model=model, usd=usd, autocompact=autocompact, width=width))
