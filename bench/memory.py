"""Does a live session hold its view, or its whole history?"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import foldline
from sessions import prompt, reply
from table import Row

WINDOW = 50_000
BATCH = 100


async def say(url: str, messages: int) -> None:
    """Say so many messages to a session in SQLite that compacts as its policy wants."""
    async with foldline.open(url, "bench", window=WINDOW) as session:
        for start in range(0, messages, BATCH):
            natives = [one for n in range(start, start + BATCH, 2) for one in (prompt(n), reply(n))]
            await session.append(*natives)
            await session.context()


def child(messages: int) -> float:
    """Return the megabytes that this process came to hold at most while a session said so many messages."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as name:
        asyncio.run(say(f"sqlite:///{name}/memory.db", messages))
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def held(messages: int) -> float:
    """Measure a session in a process of its own."""
    done = subprocess.run([sys.executable, __file__, str(messages)], check=True, capture_output=True)
    return float(done.stdout)


def main(*, full: bool = False) -> list[Row]:
    """Measure a session of 10,000 messages beside one of 100,000 (20,000 in the quick run)."""
    few, many = 10_000, 100_000 if full else 20_000
    short, long = held(few), held(many)
    return [
        Row(f"memory of a session of {few:,} messages, window {WINDOW:,}, at most", short, "MB"),
        Row(f"memory of a session of {many:,} messages, at most", long, "MB"),
        Row(f"memory: {many:,} / {few:,} messages", long / short, "x", most=1.5),
    ]


if __name__ == "__main__":
    print(child(int(sys.argv[1])))
