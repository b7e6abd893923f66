"""Poll for a condition where nothing sends an event."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

SECONDS = 60.0


async def until(condition: Callable[[], Any]) -> None:
    """Wait until a condition holds, which may be a coroutine function; raises TimeoutError after a minute."""
    async with asyncio.timeout(SECONDS):
        while True:
            holds = condition()
            if await holds if inspect.isawaitable(holds) else holds:
                return
            await asyncio.sleep(0.01)


def wait_until(condition: Callable[[], Any], seconds: float = SECONDS) -> None:
    """Wait until a condition holds, in code that is not async; raises TimeoutError after so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.01)
