"""Split a range larger than the summariser's window: one part's summary is the next one's `previous`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from foldline.core.checkpoint.request import RequestKind, SummaryRequest
from foldline.core.checkpoint.summary import LEAST_CAP, chunks, worded
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import Counter

MOST_PARTS: Final = (
    8  # calls for one summary; a range that needs more of them loses from the middle of each part
)
LEAST_SHARE: Final = (
    4  # 1 / LEAST_SHARE of a prompt is for the conversation, however long what stands beside it
)


class Parts(msgspec.Struct, frozen=True):
    """Runs of entries to summarise one after another, and the cap of their results in characters."""

    runs: tuple[tuple[Said, ...], ...]
    result_cap: int
    left_out: bool = False


def size_of(request: SummaryRequest, counter: Counter) -> int:
    """Return the tokens of the prompt of a request, nothing left out."""
    words = worded(request)
    return counter.count(words.system) + counter.count(words.prompt)


def split(request: SummaryRequest, room: int, counter: Counter) -> Parts:
    """Split what is folded so that the prompt of each part takes at most `room` tokens.

    Results are shortened further before there are more than `MOST_PARTS` parts. A request for display is
    never split: two sentences can be said of what is left of it.
    """
    whole = Parts((request.folded,), request.result_cap)
    size = size_of(request, counter)
    if size <= room or request.kind == "display" or len(request.folded) < 2:
        return msgspec.structs.replace(whole, left_out=size > room)
    beside = size_of(msgspec.structs.replace(request, folded=()), counter)
    previous = 0 if request.previous else request.tokens
    each = max(room - beside - previous, room // LEAST_SHARE)
    cap = request.result_cap
    runs = chunks(request.folded, each, counter, result_cap=cap, thinking=request.thinking)
    while len(runs) > MOST_PARTS and cap > LEAST_CAP:
        cap = max(cap // 2, LEAST_CAP)
        runs = chunks(request.folded, each, counter, result_cap=cap, thinking=request.thinking)
    return Parts(_joined(runs), cap, left_out=len(runs) > MOST_PARTS)


def _joined(runs: Sequence[tuple[Said, ...]]) -> tuple[tuple[Said, ...], ...]:
    """Join neighbouring runs evenly into at most `MOST_PARTS`."""
    if len(runs) <= MOST_PARTS:
        return tuple(runs)
    edges = [len(runs) * place // MOST_PARTS for place in range(MOST_PARTS + 1)]
    return tuple(tuple(entry for run in runs[start:end] for entry in run) for start, end in pairwise(edges))


def requests(request: SummaryRequest, parts: Parts, tokens: int) -> list[SummaryRequest]:
    """Return one request per part, without the summaries before it; `tokens` is the cap of a summary.

    The last one is of the request's own kind and for its goal; those before it carry everything on.
    """
    last = len(parts.runs) - 1
    made: list[SummaryRequest] = []
    for place, run in enumerate(parts.runs):
        kind = request.kind if place == last else _kind(first=place == 0 and not request.previous)
        own = {} if place == last else {"goal": None, "rejected": "", "attempt": 0}
        part = {"folded": run, "kind": kind, "tokens": tokens, "result_cap": parts.result_cap, **own}
        made.append(msgspec.structs.replace(request, **part))
    return made


def _kind(*, first: bool) -> RequestKind:
    return "first" if first else "update"
