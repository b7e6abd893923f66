"""A range that is too large for one summary, split into runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from foldline.core.checkpoint.serialize import serialize
from foldline.core.log.entries import Said
from foldline.core.log.messages import ToolCall, ToolResult
from foldline.core.measure.tokens import Counter


def chunks(
    folded: Sequence[Said],
    limit_tokens: int,
    counter: Counter,
    *,
    result_cap: int = 2_000,
    thinking: bool = True,
) -> list[tuple[Said, ...]]:
    """Split a range into runs whose transcripts take at most `limit_tokens`, oldest first.

    A call is never split from its result, so one run may still be too large; `worded` shortens it.
    """
    joined = _spans(folded)
    runs: list[tuple[Said, ...]] = []
    run: list[Said] = []
    unit: list[Said] = []
    run_tokens = unit_tokens = 0
    for index, entry in enumerate(folded):
        unit.append(entry)
        unit_tokens += counter.count(serialize([entry], result_cap=result_cap, thinking=thinking))
        if joined[index]:
            continue
        if run and run_tokens + unit_tokens > limit_tokens:
            runs.append(tuple(run))
            run, run_tokens = [], 0
        run += unit
        run_tokens += unit_tokens
        unit, unit_tokens = [], 0
    return [*runs, tuple(run)] if run else runs


def _spans(folded: Sequence[Said]) -> list[bool]:
    """For each entry, whether a call at or before it has its result behind it."""
    edges = [0] * (len(folded) + 1)
    newest: dict[str, int] = {}
    for index, entry in enumerate(folded):
        for part in entry.message.parts:
            if isinstance(part, ToolCall):
                newest[part.id] = index
            elif isinstance(part, ToolResult) and part.call_id in newest:
                edges[newest[part.call_id]] += 1
                edges[index] -= 1
    return [depth > 0 for depth in accumulate(edges[:-1])]
