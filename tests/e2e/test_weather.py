"""Runs against a faulty server over HTTP with the real SDKs, one of five killed and resumed.

`tests/support/weather.py` says what a run is and what must hold after it; `plan_of(seed, folder)` is the run of a seed.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

import pytest
from tests.support.weather import plan_of, run_plan

pytestmark = pytest.mark.slow

TOGETHER = 5  # runs at a time: most of one is waiting
CHECKED, SOAKED = 15, 1_000
UNMENDED = (
    0.05  # share of runs that may end with an error of ours: a window told too wide, a message too long
)


async def live_through(seeds, folder):
    """Live through the runs of these seeds; return how they ended."""
    room = asyncio.Semaphore(TOGETHER)

    async def one(seed):
        where = folder / str(seed)
        where.mkdir()
        async with room:
            return await run_plan(plan_of(seed, where))

    return await asyncio.gather(*(one(seed) for seed in seeds))


def judge(outcomes):
    """Nothing is wrong with any of them, nearly all of them ended well, and there was something to survive."""
    ends = Counter(outcome.end for outcome in outcomes)
    figures = sum((outcome.figures for outcome in outcomes), Counter())
    killed = sum(outcome.killed > 0 for outcome in outcomes)
    sys.stdout.write(
        f"{len(outcomes):,} runs, {killed:,} killed: {dict(ends)}; {dict(sorted(figures.items()))}\n"
    )
    assert {outcome.plan.seed: outcome.problems for outcome in outcomes if outcome.problems} == {}
    assert ends["done"] >= (1 - UNMENDED) * len(outcomes)
    assert killed >= len(outcomes) // 6, "a run that was over before its time came was not killed"
    assert figures["boundary threshold"] >= len(outcomes)
    assert figures["boundary overflow"] >= len(outcomes) // 4
    assert figures["by a model"] >= len(outcomes) // 4


async def test_nothing_is_lost_in_bad_weather(tmp_path):
    judge(await live_through(range(CHECKED), tmp_path))


@pytest.mark.soak
async def test_nothing_is_lost_in_a_thousand_storms(tmp_path):
    judge(await live_through(range(SOAKED), tmp_path))
