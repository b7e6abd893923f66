"""Does a live session hold its view, or its whole history?"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import tracemalloc
from pathlib import Path

import foldline
from sessions import prompt, reply
from table import Row

WINDOW = 50_000
BATCH = 100


async def held(url: str, messages: int) -> tuple[int, int]:
    """Say so many messages, compacting as the policy wants; return bytes held in the end, and at most."""
    gc.collect()
    tracemalloc.start()
    async with foldline.open(url, "bench", window=WINDOW) as session:
        for start in range(0, messages, BATCH):
            natives = [one for n in range(start, start + BATCH, 2) for one in (prompt(n), reply(n))]
            await session.append(*natives)
            await session.context()
        await session.compact()
        gc.collect()
        now, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return now, most


def main(*, full: bool = False) -> list[Row]:
    """Measure a session in SQLite of 100,000 messages (10,000 in the quick run) beside one a tenth as long."""
    many = 100_000 if full else 10_000
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as name:
        url = f"sqlite:///{name}/memory.db"
        warm = asyncio.run(held(f"sqlite:///{name}/warm.db", 1_000))
        short = asyncio.run(held(f"sqlite:///{name}/short.db", many // 10))
        long = asyncio.run(held(url, many))
    return [
        Row(f"held by a session of {many:,} messages, window {WINDOW:,}", long[0] / 1e6, "MB"),
        Row("the same, at most", long[1] / 1e6, "MB"),
        Row(f"held: {many:,} / {many // 10:,} messages", long[0] / short[0], "x", most=1.5),
        Row(f"at most: {many:,} / {many // 10:,} messages", long[1] / max(short[1], warm[1]), "x", most=1.5),
    ]
