"""Work that must not hold others up: a network from code that is not async, a fold in an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

EACH: Final = 1_000  # bytes that a message counts for, however short it is
HEAVY: Final = 100_000  # bytes from which work on them is done in a thread


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


async def aside(size: int, work: Callable[[], T]) -> T:
    """Do work on messages of that many bytes: at once, or in a thread where others would wait for it."""
    return work() if size < HEAVY else await asyncio.to_thread(work)


async def apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop and a thread of its own, and return what it returns.

    So this loop goes on whatever the work does between two awaits. Cancelled, the work is cancelled at its
    next await, and not waited for. The thread does not keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []
    left = threading.Event()

    async def run() -> T:
        task = asyncio.ensure_future(work)
        begun.append((asyncio.get_running_loop(), task))
        if left.is_set():
            task.cancel()
        return await task

    def settle(found: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(found)  # type: ignore[arg-type]  # what the work returned
        else:
            done.set_exception(error)

    def thread() -> None:
        found, error = None, None
        try:
            found = asyncio.run(run())
        except asyncio.CancelledError:
            error = RuntimeError("the work was cancelled")  # a future cannot hold the other
        except BaseException as raised:
            error = raised
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, found, error)

    threading.Thread(
        target=contextvars.copy_context().run, args=(thread,), name="foldline-apart", daemon=True
    ).start()
    try:
        return await done
    finally:
        left.set()
        for inner, task in begun:
            with suppress(RuntimeError):  # it has ended
                inner.call_soon_threadsafe(task.cancel)
