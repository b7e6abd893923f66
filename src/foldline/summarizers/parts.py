"""Split a range larger than the summariser's window; each part's summary is the next part's `previous`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from foldline.core.checkpoint.request import SummaryRequest
from foldline.core.checkpoint.summary import LEAST_CAP, chunks, worded
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import Counter

MOST_PARTS: Final = 8  # calls for one summary; in a larger range the middle of each part is left out
LEAST_SHARE: Final = 4  # at least 1 / LEAST_SHARE of a prompt is for the conversation


class Parts(msgspec.Struct, frozen=True):
    """Runs of entries to summarise one after another, and the cap of their results in characters."""

    runs: tuple[tuple[Said, ...], ...]
    result_cap: int
    left_out: bool = False


def size_of(request: SummaryRequest, counter: Counter) -> int:
    """Return the tokens of a request's whole prompt."""
    words = worded(request)
    return counter.count(words.system) + counter.count(words.prompt)


def split(request: SummaryRequest, room: int, counter: Counter) -> Parts:
    """Split what is folded so that the prompt of each part takes at most `room` tokens.

    Results are shortened further before there are more than `MOST_PARTS` parts. A request for display is
    never split: for two sentences a shortened conversation is enough.
    """
    size = size_of(request, counter)
    if size <= room or request.kind == "display" or len(request.folded) < 2:
        return Parts((request.folded,), request.result_cap, left_out=size > room)
    frame = size_of(msgspec.structs.replace(request, folded=()), counter)
    previous = 0 if request.previous else request.tokens
    part_room = max(room - frame - previous, room // LEAST_SHARE)
    cap = request.result_cap
    runs = chunks(request.folded, part_room, counter, result_cap=cap, thinking=request.thinking)
    while len(runs) > MOST_PARTS and cap > LEAST_CAP:
        cap = max(cap // 2, LEAST_CAP)
        runs = chunks(request.folded, part_room, counter, result_cap=cap, thinking=request.thinking)
    return Parts(_join(runs), cap, left_out=len(runs) > MOST_PARTS)


def _join(runs: Sequence[tuple[Said, ...]]) -> tuple[tuple[Said, ...], ...]:
    """Join neighbouring runs evenly into at most `MOST_PARTS`."""
    if len(runs) <= MOST_PARTS:
        return tuple(runs)
    edges = [len(runs) * place // MOST_PARTS for place in range(MOST_PARTS + 1)]
    return tuple(tuple(entry for run in runs[start:end] for entry in run) for start, end in pairwise(edges))


def requests(request: SummaryRequest, parts: Parts, tokens: int) -> list[SummaryRequest]:
    """Return one request per part, without the summaries before it; `tokens` is the cap of a summary.

    The last has the request's own kind and goal; those before it keep everything.
    """
    last = len(parts.runs) - 1
    result: list[SummaryRequest] = []
    for index, run in enumerate(parts.runs):
        part: dict[str, Any] = {"folded": run, "tokens": tokens, "result_cap": parts.result_cap}
        if index < last:
            kind = "first" if index == 0 and not request.previous else "update"
            part |= {"kind": kind, "goal": None, "rejected": "", "attempt": 0}
        result.append(msgspec.structs.replace(request, **part))
    return result
