"""A gate before an answer: the model is at work until the test opens it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future, InvalidStateError


class Gate:
    """Hold an answer back until `open` is called, from any thread; it then stays open.

    `Answer(text="Done.", wait=gate)` makes a model that is busy for as long as the test needs it, however
    fast the machine is.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = False
        self._waiting: list[Future[None]] = []

    def open(self) -> None:
        """Let the answer go."""
        with self._lock:
            self._opened = True
        for one in self._waiting:
            with contextlib.suppress(InvalidStateError):  # whoever waited has gone
                one.set_result(None)

    async def passed(self) -> None:
        """Wait until the gate is open."""
        own: Future[None] = Future()
        with self._lock:
            if self._opened:
                return
            self._waiting.append(own)
        await asyncio.wrap_future(own)


async def wait_for(wait: float | Gate) -> None:
    """Wait so many seconds, or for a gate."""
    if isinstance(wait, Gate):
        await wait.passed()
    else:
        await asyncio.sleep(wait)
