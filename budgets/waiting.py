"""Does anybody wait for a summary? What context() adds at a boundary beside a turn without one, with a summariser of 20 s.

The conversation grows steadily and the store is SQLite, every append durable. A turn comes after a pause, as one
does whose reply a model has to write; then the same without a pause, where a plain turn finds every cache warm. While
the summary is being written the pause is one at which the hard trigger is not reached before it is there.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from budgets.sessions import prompt, reply
from budgets.table import Row

import foldline
from foldline.summarizers.offline import OfflineSummarizer

SUMMARY = 20.0  # seconds
WINDOW = 200_000  # tokens
PAUSE = 1.2  # seconds between turns while a summary is written: 36,000 tokens lie between the triggers
REPLY = 0.2  # seconds between the other turns
TEXT = "The value of the retry limit is read from the settings file before each request is sent. " * 120


class Slow:
    """A summariser that takes its time; its text is the offline one's."""

    name = "model:slow"

    async def summarize(self, request: Any) -> Any:
        await asyncio.sleep(SUMMARY)
        return OfflineSummarizer().write(request)


class Seen:
    """What happened since it was asked last."""

    def __init__(self, session: Any) -> None:
        self.drafting = False
        self.committed = 0
        self.waited = 0
        session.on("draft_started", self._begun)
        session.on("draft_ready", self._ready)
        session.on("compacted", self._done)

    def _begun(self, _: Any) -> None:
        self.drafting = True

    def _ready(self, _: Any) -> None:
        self.drafting = False

    def _done(self, event: Any) -> None:
        self.committed += 1
        self.waited += not event.drafted


def longer(message: dict[str, Any]) -> dict[str, Any]:
    """Return a reply of some 2,400 tokens: people write shorter than models and tools."""
    return {**message, "content": f"{message['content']}\n{TEXT}"}


async def measured(
    url: str, boundaries: int, pause: float
) -> tuple[list[float], list[float], list[float], int]:
    """Return the seconds of turns without a boundary, of their contexts, and of contexts that commit one.

    The last figure is how many summaries were waited for; `pause` in seconds stands between turns.
    """
    whole: list[float] = []
    plain: list[float] = []
    bound: list[float] = []
    async with foldline.open(url, "bench", window=WINDOW, summarizer=Slow()) as session:
        seen, number = Seen(session), 0
        while len(bound) < boundaries:
            asked, answer = prompt(number), longer(reply(number))
            before, drafting = seen.committed, seen.drafting
            start = time.perf_counter()
            await session.append(asked)
            middle = time.perf_counter()
            await session.context()
            end = time.perf_counter()
            await session.append(answer)
            done = time.perf_counter()
            if seen.committed > before:
                bound.append(end - middle)
            elif not drafting and not seen.drafting:  # nothing else runs on this machine's other core
                whole.append(done - start)
                plain.append(end - middle)
            number += 1
            await asyncio.sleep(PAUSE if seen.drafting else pause)
    return whole, plain, bound, seen.waited


def rows(boundaries: int, pause: float) -> list[Row]:
    """Go through so many boundaries, with a pause between turns or without one."""
    gc.collect()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        whole, plain, bound, waited = asyncio.run(measured(url, boundaries, pause))
    turn, usual = statistics.median(whole), statistics.median(plain)
    added = [max(0.0, taken - usual) for taken in bound]
    how = f"{pause:g} s between turns" if pause else "no pause"
    return [
        Row(f"{how}: turn without a boundary (append, context, append), median", turn * 1e3, "ms"),
        Row(f"{how}: turn without a boundary, worst", max(whole) * 1e3, "ms"),
        Row(f"{how}: context() without a boundary, median", usual * 1e3, "ms"),
        Row(
            f"{how}: context() adds at {len(bound)} boundaries, median", statistics.median(added) * 1e3, "ms"
        ),
        Row(f"{how}: context() adds at a boundary, worst", max(added) * 1e3, "ms"),
        Row(f"{how}: median added / median turn", statistics.median(added) / turn, "x", most=2.0),
        Row(f"{how}: worst added / worst turn", max(added) / max(whole), "x", most=2.0),
        Row(f"{how}: summaries that somebody waited for", waited, "", most=0),
    ]


def main(*, full: bool = False) -> list[Row]:
    """Go through three boundaries, ten where `full`, with pauses and without."""
    boundaries = 10 if full else 3
    return [*rows(boundaries, REPLY), *rows(boundaries, 0.0)]
