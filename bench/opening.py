"""How long does it take to open a long stored session and build what the model is sent?"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from bench.sessions import entries_of, prompt, reply
from bench.table import Row

import foldline
from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.core.log.log import chained
from foldline.stores.sqlite import SqliteStore

KEPT = 200  # messages behind the newest boundary
BATCH = 1_000


async def fill(file: Path, messages: int) -> None:
    """Write a session of so many messages whose newest boundary keeps the last `KEPT` of them."""
    store = SqliteStore(file)
    leaf = None
    for start in range(0, messages, BATCH):
        natives = [one for n in range(start, start + BATCH, 2) for one in (prompt(n), reply(n))]
        batch = entries_of(natives, before=leaf)
        await store.append("bench", batch, seen=leaf.id if leaf else None)
        leaf, kept = batch[-1], batch[-KEPT].id
    assert leaf is not None
    checkpoint = Checkpoint(text="the work so far " * 1_500, summary="the work so far")
    boundary = Compacted("", None, checkpoint, Receipt("threshold"), first_kept=kept)
    await store.append("bench", [chained(boundary, leaf.id)], seen=leaf.id)
    await store.close()


async def once(url: str) -> float:
    """Open the session and ask for its context; return what that took, in seconds."""
    start = time.perf_counter()
    async with foldline.open(url, "bench", window=200_000) as session:
        messages = await session.context()
        taken = time.perf_counter() - start
        assert len(messages) == KEPT + 1
    return taken


def opened(files: list[Path]) -> list[float]:
    """Return the least time of opening each session, in turns; the files are in the system's cache."""
    times = [[asyncio.run(once(f"sqlite:///{file}")) for file in files] for _ in range(31)]
    return [min(column) for column in zip(*times, strict=True)]


def main(*, full: bool = False) -> list[Row]:
    """Measure a session of 200,000 messages (20,000 in the quick run) beside one of 1,000."""
    many = 200_000 if full else 20_000
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as name:
        files = [Path(name) / "short.db", Path(name) / "long.db"]
        asyncio.run(fill(files[0], 1_000))
        asyncio.run(fill(files[1], many))
        short, long = opened(files)
    return [
        Row(f"open {many:,} messages in SQLite, context of {KEPT}", long * 1e3, "ms", most=10),
        Row(f"open {many:,} / 1,000 messages", long / short, "x", most=1.5),
    ]
