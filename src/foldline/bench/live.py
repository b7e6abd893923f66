"""Pass a session message by message to one system, which makes a view for each request to the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec

from foldline.bench.system import LiveSystem, Messages, System, clock, message_texts, size
from foldline.dialects import get

LIMIT = 0.25  # share of a measure's time after which a session is stopped; its figures so far are reported
MAX_RAISED = 20  # failed requests after which the error replaces the figures


class LiveResult(msgspec.Struct):
    """The figures of a session; `left` is the share of user messages and results that are still readable."""

    requests: int = 0
    planned: int = 0
    invalid: int = 0
    raised: int = 0
    overflows: int = 0
    tokens: int = 0  # sent
    cached: int = 0  # of these, the beginning that equals the previous request
    seconds: float = 0.0
    left: float | None = None
    broken: Counter[str] = msgspec.field(default_factory=Counter[str])

    @property
    def note(self) -> str:
        """After how many requests the session was stopped; "" if it was not."""
        return "" if self.requests == self.planned else f"stopped after {self.requests:,} requests"


def run_session(
    system: System, log: Messages, window: int, seconds: float, *, judged: bool = True
) -> LiveResult:
    """Pass a log to a system; with `judged`, validate its views as a strict provider does.

    Stops after `LIMIT` of `seconds` of processor time.
    """
    result = LiveResult(planned=sum(message["role"] == "assistant" for message in log))
    live, started = system.opened(window), clock()
    previous: list[str] = []
    try:
        for number, message in enumerate(log):
            if message["role"] == "assistant":
                if clock() - started > LIMIT * seconds:
                    break
                texts = _view(system, live, result, judged=judged)
                previous = _count(result, texts, previous, window)
            result.seconds += timed(live.append, message)
            if number == len(log) - 1:
                result.left = readable_share(log, live)
    finally:
        live.close()
    return result


def _view(system: System, live: LiveSystem, result: LiveResult, *, judged: bool) -> list[str]:
    """Make a view and validate it; return its texts, or none if it raises."""
    result.requests += 1
    started = clock()
    try:
        view = live.context()
    except Exception:
        result.raised += 1
        if result.raised >= MAX_RAISED and result.raised == result.requests:
            raise
        return []
    finally:
        result.seconds += clock() - started
    if judged:
        problems = {problem.rule for problem in get(system.dialect).validate(list(view))}
        result.invalid += bool(problems)
        result.broken.update(problems)
    return message_texts(view)


def _count(result: LiveResult, texts: list[str], previous: list[str], window: int) -> list[str]:
    """Count the tokens of a request, and of its beginning that equals the previous one; return its texts."""
    sizes = [size(text) for text in texts]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(previous, texts, strict=False)))
    result.tokens += sum(sizes)
    result.cached += sum(sizes[:same])
    result.overflows += sum(sizes) > window
    return texts or previous


def timed(work: Any, *args: Any) -> float:
    """Return the processor time of a call in seconds."""
    started = clock()
    work(*args)
    return clock() - started


def readable_share(log: Sequence[dict[str, Any]], live: LiveSystem) -> float | None:
    """Return the share of user messages and results still readable; None if the caller keeps them."""
    history = live.history()
    if history is None:
        return None
    kept = "\n".join(message_texts(history))
    contents = {str(message["content"]) for message in log if message["role"] in ("user", "tool")}
    return sum(content in kept for content in contents) / len(contents)
