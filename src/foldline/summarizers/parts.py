"""Split a range larger than the summariser's window; each part's summary is the next part's `previous`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from foldline.core.checkpoint.request import SummaryRequest
from foldline.core.checkpoint.summary import LEAST_CAP, chunks, worded
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import Counter

MOST_PARTS: Final = 8  # calls for one summary; in a larger range the middle of each part is left out
LEAST_SHARE: Final = 4  # at least 1 / LEAST_SHARE of a prompt is for the conversation


def size_of(request: SummaryRequest, counter: Counter) -> int:
    """Return the tokens of a request's whole prompt."""
    words = worded(request)
    return counter.count(words.system) + counter.count(words.prompt)


def split(
    request: SummaryRequest, room: int, tokens: int, counter: Counter
) -> tuple[list[SummaryRequest], bool]:
    """Return a request for each part of what is folded, and whether something had to be left out.

    The prompt of each part takes at most `room` tokens, and its summary `tokens`; it lacks the summary before
    it. The last part has the request's own kind and goal; those before it keep everything. Results are
    shortened further before there are more than `MOST_PARTS` parts. A request for display is never split: for
    two sentences a shortened conversation is enough.
    """
    size, cap = size_of(request, counter), request.result_cap
    if size <= room or request.kind == "display" or len(request.folded) < 2:
        return [msgspec.structs.replace(request, tokens=tokens)], size > room
    frame = size_of(msgspec.structs.replace(request, folded=()), counter)
    previous = 0 if request.previous else request.tokens
    part_room = max(room - frame - previous, room // LEAST_SHARE)
    runs = chunks(request.folded, part_room, counter, result_cap=cap, thinking=request.thinking)
    while len(runs) > MOST_PARTS and cap > LEAST_CAP:
        cap = max(cap // 2, LEAST_CAP)
        runs = chunks(request.folded, part_room, counter, result_cap=cap, thinking=request.thinking)
    parts = [
        msgspec.structs.replace(request, folded=run, tokens=tokens, result_cap=cap) for run in _join(runs)
    ]
    for index, part in enumerate(parts[:-1]):
        kind = "first" if index == 0 and not request.previous else "update"
        parts[index] = msgspec.structs.replace(part, kind=kind, goal=None, rejected="", attempt=0)
    return parts, len(runs) > MOST_PARTS


def _join(runs: Sequence[tuple[Said, ...]]) -> tuple[tuple[Said, ...], ...]:
    """Join neighbouring runs evenly into at most `MOST_PARTS`."""
    if len(runs) <= MOST_PARTS:
        return tuple(runs)
    edges = [len(runs) * place // MOST_PARTS for place in range(MOST_PARTS + 1)]
    return tuple(tuple(entry for run in runs[start:end] for entry in run) for start, end in pairwise(edges))
