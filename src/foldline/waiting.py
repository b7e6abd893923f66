"""Run what waits for a network from code that is not async."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_waiting(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in an event loop of its own; where one runs already, in a thread beside it.

    That loop stands still meanwhile: code that is async should await instead.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="foldline") as thread:
        return thread.submit(context.run, asyncio.run, coroutine).result()
