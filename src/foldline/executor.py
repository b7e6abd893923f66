"""Run the steps of a compaction plan with a summariser."""

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


class _PlanResult(Generic[T]):
    """The result of a finished plan, which in a thread cannot be returned by a StopIteration."""

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
    """Run a plan, or any generator of summary requests, to its end and return its outcome.

    If the summariser raises or reports that it failed, the plan falls back, the receipt notes the reason, and
    `failed` is called with it. With `aside`, planning and offline summaries run in a thread so that the event
    loop is not blocked; nothing that the plan reads may change meanwhile. Every request has `prefix`, the
    session's next request, and `on_text`, the callback for streamed summary text. Cancellation propagates;
    nothing was written.
    """
    reply: SummaryReply | None = None
    while True:
        # If this is cancelled during a step, the plan ends in its thread; closing it here can crash CPython.
        step = await _aside(_step, steps, reply) if aside else _step(steps, reply)
        if isinstance(step, _PlanResult):
            return step.outcome
        try:
            fields = {"prefix": prefix, "on_text": on_text}
            fields = {name: value for name, value in fields.items() if value is not None}
            request = msgspec.structs.replace(step, **fields) if fields else step
            reply = await request_summary(summarizer, request, aside=aside)
        except Exception as error:  # no failed model call may break the session
            reason = redact(str(error))[:QUOTED].strip() or type(error).__name__
            log.warning("summary by %s failed: %s", summarizer.name, reason)
            note = f"{summarizer.name} wrote no summary: {reason}"
            reply = SummaryReply("", summarizer.name, stop=FAILED, notes=(note,))
        except BaseException:
            steps.close()
            raise
        if reply.stop == FAILED and (step.folded or step.previous):  # otherwise nothing was to be summarised
            failed("; ".join(reply.notes))


async def request_summary(summarizer: Summarizer, request: SummaryRequest, *, aside: bool) -> SummaryReply:
    """Request a summary; with `aside`, the offline summariser runs in a thread."""
    if aside and type(summarizer) is OfflineSummarizer:  # a subclass may await something else
        return await _aside(OfflineSummarizer.write, summarizer, request)
    return await summarizer.summarize(request)


async def _aside(work: Callable[..., T], *args: Any) -> T:
    """Run work in a thread, or inline if the interpreter is shutting down and starts no threads."""
    context = contextvars.copy_context()
    try:
        future = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(work, *args))
    except RuntimeError:
        return work(*args)
    return await future


def _step(
    steps: Generator[SummaryRequest, SummaryReply | None, T], reply: SummaryReply | None
) -> SummaryRequest | _PlanResult[T]:
    try:
        return steps.send(reply)
    except StopIteration as end:
        outcome: T = end.value
        return _PlanResult(outcome)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, such as a compaction without a model, from synchronous code.

    Works inside a running event loop too. Raises RuntimeError if the coroutine suspends.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits: run it in an event loop")
