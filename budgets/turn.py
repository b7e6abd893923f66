"""What does a turn cost beside the store's own commit, and does it stay the same as the session grows?"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from typing import Any

import msgspec
from budgets.sessions import exchanges, prompt, reply
from budgets.table import Row, cpu

import foldline
from foldline.bench.corpus import Talk
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import preset
from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.core.measure.window import Amount

SIZES = (1_000, 10_000, 100_000)
TURNS = 100
MESSAGES = 10_000
KEPT = 20  # messages behind each boundary


def answered(number: int, *, usage: bool, size: int) -> dict[str, Any]:
    """A reply as the SDK gives it; its usage says how large the context was."""
    whole: dict[str, Any] = {"choices": [{"message": reply(number), "finish_reason": "stop"}], "model": "m"}
    if usage:
        whole["usage"] = {"prompt_tokens": size, "completion_tokens": 100}
    return whole


class Commits:
    """Counts the time that a store's own appends take."""

    def __init__(self, store: Any) -> None:
        self.spent = 0.0
        self._append = store.append
        store.append = self.append

    async def append(self, *args: Any, **named: Any) -> None:
        start = time.process_time()
        await self._append(*args, **named)
        self.spent += time.process_time() - start


async def turns(session: Any, commits: Commits, *, usage: bool) -> float:
    """The median CPU time of a turn (prompt, context, reply) without the store's commits, in seconds."""
    times: list[float] = []
    for number in range(TURNS):
        asked, answer = prompt(number), answered(number, usage=usage, size=session.view_tokens)
        commits.spent, start = 0.0, time.process_time()
        await session.append(asked)
        await session.context()
        await session.append(answer)
        times.append(time.process_time() - start - commits.spent)
    return statistics.median(times)


async def fold(session: Any) -> None:
    """Append a boundary as a compaction does, and read the session again; its summary costs no time.

    What a summary costs is the question of `planning`. A turn is slower or faster by what is in the view.
    """
    kept = session._shared.cursor.state.kept[-KEPT].id  # noqa: SLF001 - the writer's own commit, without a plan
    point = Checkpoint(text="the work so far " * 500, summary="the work so far", tokens=1_500)
    boundary = Compacted("", None, point, Receipt("target"), first_kept=kept)
    assert await session._shared.cursor.commit(boundary)  # noqa: SLF001


def without_folds(policy: str) -> Policy:
    """Return a preset that looks as often as before whether to fold, and fills any window."""
    return msgspec.structs.replace(preset(policy), soft=None, hard=Amount(fraction=1.0, of="usable"))


async def measured(policy: str, *, usage: bool, folds: bool, sizes: tuple[int, ...]) -> list[float]:
    """Return what a turn takes at each size of the session. Where it `folds`, a view holds some 500 messages."""
    window, chosen = (120_000, preset(policy)) if folds else (10**10, without_folds(policy))
    found: list[float] = []
    async with foldline.open("memory://", "bench", window=window, policy=chosen) as session:
        commits, said = Commits(session.store), 0
        for size in sizes:
            while said < size:
                count = min(500, size - said)
                if folds and said:
                    await fold(session)
                await session.append(*exchanges(said, said + count))
                said += count
            found.append(await turns(session, commits, usage=usage))
            said += 2 * TURNS
    return found


async def handed_out(natives: list[Any]) -> tuple[float, float]:
    """Return the CPU time, in seconds, of a context that folds nothing, and of writing it down as JSON."""
    policy = without_folds("foldline")
    async with foldline.open("memory://", "bench", window=10**10, policy=policy) as session:
        await session.append(*natives)
        view = await session.context()
        times: list[float] = []
        for _ in range(20):
            start = time.process_time()
            await session.context()
            times.append(time.process_time() - start)
    return min(times), cpu(lambda: json.dumps(view))


def copies() -> list[Row]:
    """Handing out a view copies it: what that costs beside the least that a caller does with it."""
    found: list[Row] = []
    for name, natives in (("texts", exchanges(0, MESSAGES)), ("with tool calls", Talk().messages(MESSAGES))):
        taken, written = asyncio.run(handed_out(natives))
        found += [
            Row(f"context of {len(natives):,} messages, {name}", taken * 1e3, "ms"),
            Row(f"the same / json.dumps of it, {name}", taken / written, "x"),
        ]
    return found


def rows(policy: str, *, usage: bool, folds: bool, sizes: tuple[int, ...]) -> list[Row]:
    found = asyncio.run(measured(policy, usage=usage, folds=folds, sizes=sizes))
    name = f"turn, {policy}, {'usage' if usage else 'no usage'}"
    if not folds:
        name += ", nothing folded"
    return [
        *(
            Row(
                f"{name}, {size:,} messages",
                taken * 1e3,
                "ms",
                most=1.0,
            )
            for size, taken in zip(sizes, found, strict=True)
        ),
        Row(f"{name}: {sizes[-1]:,} / {sizes[0]:,}", found[-1] / found[0], "x", most=1.5),
    ]


def main(*, full: bool = False) -> list[Row]:
    """Measure sessions that fold, and some that never do; `full` goes to 100,000 messages in all of them."""
    sizes = SIZES if full else SIZES[:2]
    return [
        *rows("foldline", usage=False, folds=True, sizes=SIZES),
        *rows("foldline", usage=True, folds=True, sizes=sizes),
        *rows("klaude", usage=False, folds=True, sizes=sizes),
        *rows("moldable", usage=False, folds=True, sizes=sizes),
        *rows("foldline", usage=False, folds=False, sizes=sizes),
        *rows("foldline", usage=True, folds=False, sizes=sizes),
        *rows("klaude", usage=False, folds=False, sizes=sizes),
        *copies(),
    ]
