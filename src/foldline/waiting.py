"""Run async work in synchronous code, and heavy work without blocking the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

MESSAGE_BYTES: Final = 1_000  # to count for each message in addition to its content
HEAVY: Final = 100_000  # bytes from which work runs in a thread


def run_waiting(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion in a new event loop, in another thread if this one runs a loop.

    Blocks the calling thread and its loop: async code should await the coroutine instead.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="foldline") as thread:
        return thread.submit(context.run, asyncio.run, coroutine).result()


async def run_off_loop(size: int, work: Callable[[], T]) -> T:
    """Run work on `size` bytes of messages: inline if they are few, otherwise in a thread."""
    return work() if size < HEAVY else await asyncio.to_thread(work)


async def run_in_own_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in another thread with its own event loop, and return its result.

    Work that blocks between two awaits does not block the caller's loop. If this call is cancelled, the work
    is cancelled at its next await, without waiting for it. The thread does not keep the process alive.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []
    abandoned = threading.Event()

    async def run() -> T:
        task = asyncio.ensure_future(work)
        started.append((asyncio.get_running_loop(), task))
        if abandoned.is_set():
            task.cancel()
        return await task

    def settle(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(result)  # type: ignore[arg-type]  # the result of the work
        else:
            outcome.set_exception(error)

    def thread() -> None:
        result, error = None, None
        try:
            result = asyncio.run(run())
        except asyncio.CancelledError:
            error = RuntimeError("the work was cancelled")  # a future cannot hold a CancelledError
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the caller's loop was closed
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(
        target=contextvars.copy_context().run, args=(thread,), name="foldline-apart", daemon=True
    ).start()
    try:
        return await outcome
    finally:
        abandoned.set()
        for inner, task in started:
            with suppress(RuntimeError):  # its loop is closed
                inner.call_soon_threadsafe(task.cancel)
