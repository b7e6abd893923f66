"""A session said message by message to one system, which makes a view wherever the agent asked its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from foldline.bench.system import LiveSystem, Messages, System, clock, message_texts, size
from foldline.dialects import get

LIMIT = 0.25  # of the time of a measure, after which a session is stopped and told so far
RAISED_MOST = 20  # requests that may fail before the error is told in place of the figures


class LiveResult(msgspec.Struct):
    """What came of a session; `left` is the share of what was said or returned that is still readable."""

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
        """How far the session came, where it was stopped."""
        return "" if self.requests == self.planned else f"stopped after {self.requests:,} requests"


def run_session(
    system: System, log: Messages, window: int, seconds: float, *, judged: bool = True
) -> LiveResult:
    """Say a log to a system, and have its views `judged` by a strict provider.

    It takes `LIMIT` of the seconds at most, of the processor's.
    """
    found = LiveResult(planned=sum(one["role"] == "assistant" for one in log))
    live, begun = system.opened(window), clock()
    before: list[str] = []
    try:
        for number, message in enumerate(log):
            if message["role"] == "assistant":
                if clock() - begun > LIMIT * seconds:
                    break
                now = _asked(system, live, found, judged=judged)
                before = _counted(found, now, before, window)
            found.seconds += timed(live.say, message)
            if number == len(log) - 1:
                found.left = left(log, live)
    finally:
        live.close()
    return found


def _asked(system: System, live: LiveSystem, found: LiveResult, *, judged: bool) -> list[str]:
    """Ask for a view, and look at it as a provider would; return its texts, none where it raises."""
    found.requests += 1
    begun = clock()
    try:
        view = live.view()
    except Exception:
        found.raised += 1
        if found.raised >= RAISED_MOST and found.raised == found.requests:
            raise
        return []
    finally:
        found.seconds += clock() - begun
    if judged:
        problems = {one.rule for one in get(system.dialect).validate(list(view))}
        found.invalid += bool(problems)
        found.broken.update(problems)
    return message_texts(view)


def _counted(found: LiveResult, now: list[str], before: list[str], window: int) -> list[str]:
    """Count what is sent, and what of it stood in the request before; return the request."""
    sizes = [size(text) for text in now]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False)))
    found.tokens += sum(sizes)
    found.cached += sum(sizes[:same])
    found.overflows += sum(sizes) > window
    return now or before


def timed(work: Any, *args: Any) -> float:
    """Return the seconds of the processor that a call takes."""
    begun = clock()
    work(*args)
    return clock() - begun


def left(log: Sequence[dict[str, Any]], live: LiveSystem) -> float | None:
    """Return the share of user messages and results still readable; None where the caller keeps them."""
    history = live.history()
    if history is None:
        return None
    kept = "\n".join(message_texts(history))
    wanted = list(_contents(log))
    return sum(text in kept for text in wanted) / len(wanted)


def _contents(log: Sequence[dict[str, Any]]) -> Iterator[str]:
    return iter(dict.fromkeys(str(one["content"]) for one in log if one["role"] in ("user", "tool")))
