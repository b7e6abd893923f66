"""Logged warnings as events for the screen, which hides standard error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import ClassVar, Final

from foldline.session.events import Event

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
