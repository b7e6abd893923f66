"""The one executor: runs a plan's steps with a summariser. Manual, threshold, overflow: only the reason differs."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from foldline.core.checkpoint.request import SummaryReply
from foldline.core.plan import Outcome, Steps
from foldline.summarizers.base import Summarizer

T = TypeVar("T")
log = logging.getLogger("foldline")


async def execute(steps: Steps, summarizer: Summarizer) -> Outcome:
    """Run a plan to its end; a summariser that raises is answered for by None, and the plan falls back.

    Cancellation passes through: nothing was written.
    """
    reply: SummaryReply | None = None
    try:
        request = next(steps)
        while True:
            try:
                reply = await summarizer.summarize(request)
            except Exception as error:  # whatever a model call raises, the session must go on
                log.warning("summary by %s failed: %s", summarizer.name, error)
                reply = None
            request = steps.send(reply)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        steps.close()


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from code that is not async, inside a running event loop too.

    A coroutine that never waits (the offline path) is simply stepped through.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("the coroutine waits: run it in an event loop")
