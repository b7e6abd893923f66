"""The one executor: runs a plan's steps with a summariser, whatever the reason for the compaction is."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

import msgspec

from foldline.core.checkpoint.request import FAILED, Prefix, SummaryReply, SummaryRequest
from foldline.core.secrets.redact import redact
from foldline.summarizers.base import QUOTED, Summarizer
from foldline.summarizers.offline import OfflineSummarizer

T = TypeVar("T")
log = logging.getLogger("foldline")


class _Ended(Generic[T]):
    """The end of a plan: an exception of its own would not pass through a future."""

    def __init__(self, outcome: T) -> None:
        self.outcome = outcome


async def execute(
    steps: Generator[SummaryRequest, SummaryReply | None, T],
    summarizer: Summarizer,
    *,
    aside: bool = False,
    prefix: Prefix | None = None,
    failed: Callable[[str], None] = lambda _: None,
    on_text: Callable[[str | None], None] | None = None,
) -> T:
    """Run a plan, or whatever asks for summaries as one does, to its end; returns its outcome.

    Where a summariser raises, or says that no model could be asked, the plan falls back, the receipt notes
    why, and `failed` is told. With `aside` the work of the plan, and of code that writes a summary, is done
    in a thread, so that an event loop goes on meanwhile: nothing that the plan reads may change then. Every
    request carries `prefix`, the next request of the session that is folded, and `on_text`, who reads a
    summary while a model writes it. Cancellation passes through: nothing was written.
    """
    reply: SummaryReply | None = None
    while True:
        # A plan that is cancelled while its thread runs ends there; closing it from here can crash CPython.
        step = await _aside(_step, steps, reply) if aside else _step(steps, reply)
        if isinstance(step, _Ended):
            return step.outcome
        try:
            given = {key: one for key, one in (("prefix", prefix), ("on_text", on_text)) if one is not None}
            asked = msgspec.structs.replace(step, **given) if given else step
            reply = await written(summarizer, asked, aside=aside)
        except Exception as error:  # whatever a model call raises, the session must go on
            reply = _failure(summarizer.name, error)
        except BaseException:
            steps.close()
            raise
        if reply.stop == FAILED and (step.folded or step.previous):  # else there was nothing to sum up
            failed("; ".join(reply.notes))


async def written(summarizer: Summarizer, asked: SummaryRequest, *, aside: bool) -> SummaryReply:
    """Ask for a summary; with `aside`, code writes it in a thread."""
    if aside and type(summarizer) is OfflineSummarizer:  # one that is built on it may wait for more
        return await _aside(OfflineSummarizer.write, summarizer, asked)
    return await summarizer.summarize(asked)


async def _aside(work: Callable[..., T], *args: Any) -> T:
    """Do work in a thread; here where the program ends, and begins none any more."""
    context = contextvars.copy_context()
    try:
        done = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(work, *args))
    except RuntimeError:
        return work(*args)
    return await done


def _failure(name: str, error: Exception) -> SummaryReply:
    """Return the reply that says why a summariser gave none."""
    words = redact(str(error))[:QUOTED].strip() or type(error).__name__
    log.warning("summary by %s failed: %s", name, words)
    return SummaryReply("", name, stop=FAILED, notes=(f"{name} wrote no summary: {words}",))


def _step(
    steps: Generator[SummaryRequest, SummaryReply | None, T], reply: SummaryReply | None
) -> SummaryRequest | _Ended[T]:
    try:
        return steps.send(reply)
    except StopIteration as end:
        outcome: T = end.value
        return _Ended(outcome)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from code that is not async, inside a running event loop too.

    A coroutine that never waits, as without a model, is stepped through.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits: run it in an event loop")
