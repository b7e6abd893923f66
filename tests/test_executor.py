"""The executor: a plan's steps beside the event loop, cancelled at any point."""

import asyncio
import threading
from collections.abc import Generator

import pytest

from foldline.executor import execute


class Steps(Generator):
    """A plan whose step takes as long as it is held, and that says what is done to it meanwhile.

    Closing a generator that another thread runs inside a `yield from` ends the interpreter (CPython 3.11).
    """

    def __init__(self) -> None:
        self.begun, self.go, self.done = threading.Event(), threading.Event(), threading.Event()
        self.running = False
        self.closed: list[str] = []

    def send(self, value):
        self.running = True
        self.begun.set()
        self.go.wait(10)
        self.running = False
        self.done.set()
        return "a request"

    def throw(self, *_):
        raise AssertionError("nothing is thrown into a plan")

    def close(self):
        self.closed.append("running" if self.running else "waiting")


class Waits:
    name = "model:waits"

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def summarize(self, request):
        self.begun.set()
        await asyncio.Event().wait()


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)


async def test_a_step_that_runs_in_its_thread_is_never_closed_from_outside():
    steps = Steps()
    task = asyncio.create_task(execute(steps, Waits(), aside=True))
    await asyncio.to_thread(steps.begun.wait, 10)
    await cancelled(task)
    steps.go.set()
    await asyncio.to_thread(steps.done.wait, 10)
    assert steps.closed == []


async def test_a_plan_that_waits_for_its_summary_is_closed_when_it_is_cancelled():
    steps, summarizer = Steps(), Waits()
    steps.go.set()
    task = asyncio.create_task(execute(steps, summarizer, aside=True))
    await asyncio.wait_for(summarizer.begun.wait(), 10)
    await cancelled(task)
    assert steps.closed == ["waiting"]
