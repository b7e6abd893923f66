"""The notes of the transcript: events, and logged warnings, since the screen hides standard error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import ClassVar, Final

from foldline.agent.commands.boundaries import result_text
from foldline.agent.events import OverflowRetried, TurnEnded
from foldline.session.events import (
    CompactionDone,
    CoolingDown,
    DraftFailed,
    Event,
    PruneDone,
    Struck,
    WarningGiven,
)

log = logging.getLogger("foldline")

DUPLICATES: Final = ("session %s: ", "summary by ")  # start of records that also have an event


class Logged(Event, frozen=True):
    """A warning that was logged."""

    name: ClassVar[str] = "logged"
    text: str


class Notices(logging.Handler):
    """Passes log records of any thread to `put`, until it is closed."""

    def __init__(self, put: Callable[[Logged], None]) -> None:
        super().__init__(logging.WARNING)
        self._put = put
        self._loop = asyncio.get_running_loop()
        log.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a record, unless it also has an event."""
        if not str(record.msg).startswith(DUPLICATES):
            self._loop.call_soon_threadsafe(self._put, Logged(text=record.getMessage()))

    def close(self) -> None:
        """Stop listening."""
        log.removeHandler(self)
        super().close()


def note_for(event: Event) -> tuple[str, str] | None:
    """Return the note for an event and its kind; None if the status line is enough."""
    match event:
        # a command returns its own text
        case CompactionDone() | PruneDone() if event.receipt.reason != "manual":
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
