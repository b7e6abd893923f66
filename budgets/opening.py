"""How long does it take to open a long stored session and build what the model is sent?"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from budgets.sessions import STORED, fill
from budgets.table import Row

import foldline

KEPT = 200  # messages behind the newest boundary


async def once(url: str) -> float:
    """Open the session and ask for its context; return what that took, in seconds."""
    start = time.perf_counter()
    async with foldline.open(url, STORED, window=200_000) as session:
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
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".budgets-") as name:
        files = [Path(name) / "short.db", Path(name) / "long.db"]
        asyncio.run(fill(files[0], 1_000, KEPT))
        asyncio.run(fill(files[1], many, KEPT))
        short, long = opened(files)
    return [
        Row(f"open {many:,} messages in SQLite, context of {KEPT}", long * 1e3, "ms", most=10),
        Row(f"open {many:,} / 1,000 messages", long / short, "x", most=1.5),
    ]
