"""The executor: a plan's steps beside the event loop, cancelled at any point."""

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

import foldline
from foldline.core.checkpoint.request import SummaryRequest
from foldline.core.ledger.facts.kinds import Ledger
from foldline.executor import execute
from foldline.summarizers.offline import OfflineSummarizer


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
        self.go.wait(60)
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


class Raises:
    name = "model:broken"

    async def summarize(self, request):
        raise RuntimeError("the model is away, and so is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")


def test_a_summariser_that_raises_is_named_in_the_receipt():
    """Its error stood in the log alone: a receipt said `offline`, and nobody knew why."""
    messages = [
        {"role": role, "content": f"{role} {turn} " + "word " * 80}
        for turn in range(30)
        for role in ("user", "assistant")
    ]
    done = foldline.compact(messages, 2_000, summarizer=Raises())
    assert done.receipt.summarizer == "offline"
    told = [
        note for note in done.receipt.notes if note.startswith("model:broken wrote no summary: the model")
    ]
    assert len(told) == 1
    assert "sk-proj-abc" not in told[0]


async def test_whoever_runs_a_plan_is_told_of_a_summary_that_failed():
    def steps():
        reply = yield SummaryRequest("first", "", "", (), "before", Ledger(), 100)
        return reply

    heard = []
    reply = await execute(steps(), Raises(), failed=heard.append)
    assert (reply.stop, reply.notes) == ("failed", tuple(heard))
    assert heard[0].startswith("model:broken wrote no summary: the model is away")


async def cancelled(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)


async def test_a_step_that_runs_in_its_thread_is_never_closed_from_outside():
    steps = Steps()
    task = asyncio.create_task(execute(steps, Waits(), aside=True))
    assert await asyncio.to_thread(steps.begun.wait, 60)
    await cancelled(task)
    steps.go.set()
    assert await asyncio.to_thread(steps.done.wait, 60)
    assert steps.closed == []


async def test_a_plan_that_waits_for_its_summary_is_closed_when_it_is_cancelled():
    steps, summarizer = Steps(), Waits()
    steps.go.set()
    task = asyncio.create_task(execute(steps, summarizer, aside=True))
    await asyncio.wait_for(summarizer.begun.wait(), 60)
    await cancelled(task)
    assert steps.closed == ["waiting"]


async def test_a_program_that_ends_has_no_threads_and_folds_all_the_same():
    """A script that ended while a draft was made printed two errors, and its session counted a failure."""

    def steps():
        reply = yield SummaryRequest("first", "", "", (), "before", Ledger(), 100)
        return reply.stop

    threads = ThreadPoolExecutor()
    asyncio.get_running_loop().set_default_executor(threads)
    threads.shutdown()
    assert await execute(steps(), OfflineSummarizer(), aside=True) == "end"
