"""What is only logged, as events for the screen: standard error is not seen behind it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import ClassVar, Final

from foldline.session.events import Event

log = logging.getLogger("foldline")

TOLD: Final = ("session %s: ", "summary by ")  # begin what is logged beside an event that says the same


class Logged(Event, frozen=True):
    """A warning that was logged."""

    name: ClassVar[str] = "logged"
    text: str


class Notices(logging.Handler):
    """Tells of what is logged, from whichever thread it comes, until it is closed."""

    def __init__(self, tell: Callable[[Logged], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        log.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Tell of one record, unless an event does."""
        if not str(record.msg).startswith(TOLD):
            self._loop.call_soon_threadsafe(self._tell, Logged(text=record.getMessage()))

    def close(self) -> None:
        """Tell of nothing more."""
        log.removeHandler(self)
        super().close()
