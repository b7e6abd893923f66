"""Send a session message by message to one system, which makes a view for each call of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from foldline.bench.system import LiveSystem, Messages, System, clock, message_texts, size
from foldline.dialects import get

LIMIT = 0.25  # of the time of a measure, after which a session is stopped and reported as it is
RAISED_MOST = 20  # failed requests after which the error replaces the figures


class LiveResult(msgspec.Struct):
    """The figures of a session; `left` is the share of user messages and results still readable."""

    requests: int = 0
    planned: int = 0
    invalid: int = 0
    raised: int = 0
    overflows: int = 0
    tokens: int = 0  # sent, of them `cached` as they stood in the request before
    cached: int = 0
    seconds: float = 0.0
    left: float | None = None
    broken: Counter[str] = msgspec.field(default_factory=Counter[str])

    @property
    def note(self) -> str:
        """Where the session was stopped; "" if it was not."""
        return "" if self.requests == self.planned else f"stopped after {self.requests:,} requests"


def run_session(
    system: System, log: Messages, window: int, seconds: float, *, judged: bool = True
) -> LiveResult:
    """Send a log to a system; with `judged`, validate its views as a strict provider does.

    It takes at most `LIMIT` of the seconds of processor time.
    """
    result = LiveResult(planned=sum(one["role"] == "assistant" for one in log))
    live, started = system.opened(window), clock()
    before: list[str] = []
    try:
        for number, message in enumerate(log):
            if message["role"] == "assistant":
                if clock() - started > LIMIT * seconds:
                    break
                texts = _view(system, live, result, judged=judged)
                before = _count(result, texts, before, window)
            result.seconds += timed(live.say, message)
            if number == len(log) - 1:
                result.left = left(log, live)
    finally:
        live.close()
    return result


def _view(system: System, live: LiveSystem, result: LiveResult, *, judged: bool) -> list[str]:
    """Make a view and validate it; return its texts, or none if it raises."""
    result.requests += 1
    started = clock()
    try:
        view = live.view()
    except Exception:
        result.raised += 1
        if result.raised >= RAISED_MOST and result.raised == result.requests:
            raise
        return []
    finally:
        result.seconds += clock() - started
    if judged:
        problems = {one.rule for one in get(system.dialect).validate(list(view))}
        result.invalid += bool(problems)
        result.broken.update(problems)
    return message_texts(view)


def _count(result: LiveResult, now: list[str], before: list[str], window: int) -> list[str]:
    """Count the tokens sent, and those at the start that the last request had too; return the request."""
    sizes = [size(text) for text in now]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))
    result.tokens += sum(sizes)
    result.cached += sum(sizes[:same])
    result.overflows += sum(sizes) > window
    return now or before


def timed(work: Any, *args: Any) -> float:
    """Return the processor time of a call in seconds."""
    started = clock()
    work(*args)
    return clock() - started


def left(log: Sequence[dict[str, Any]], live: LiveSystem) -> float | None:
    """Return the share of user messages and results still readable; None if the caller keeps them."""
    history = live.history()
    if history is None:
        return None
    kept = "\n".join(message_texts(history))
    wanted = list(_contents(log))
    return sum(text in kept for text in wanted) / len(wanted)


def _contents(log: Sequence[dict[str, Any]]) -> Iterator[str]:
    return iter(dict.fromkeys(str(one["content"]) for one in log if one["role"] in ("user", "tool")))
