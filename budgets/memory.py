"""Does a live session hold its view, or its whole history?"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

from budgets.sessions import exchanges
from budgets.table import Row

import foldline

WINDOW = 50_000
BATCH = 100
LEAST = 1.0  # megabytes: less is noise, and no ratio is made of it

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")  # "5" sets the peak back, see proc(5)


async def say(url: str, messages: int) -> None:
    """Say so many messages to a session in SQLite that compacts as its policy wants."""
    async with foldline.open(url, "bench", window=WINDOW) as session:
        for start in range(0, messages, BATCH):
            await session.append(*exchanges(start, start + BATCH))
            await session.context()


def resident(field: str) -> float:
    """Return a figure of this process in megabytes: `VmRSS` is what it holds now, `VmHWM` its peak.

    `getrusage` is of no use: Linux hands a process the peak of the one that started it.
    """
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:")) / 1024


def child(messages: int) -> float:
    """Return the megabytes that this process came to hold at most while a session said so many messages."""
    _CLEAR.write_text("5", encoding="ascii")
    before = resident("VmRSS")
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".budgets-") as name:
        asyncio.run(say(f"sqlite:///{name}/memory.db", messages))
    return max(0.0, resident("VmHWM") - before)


def held(messages: int) -> float:
    """Measure a session in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "budgets.memory", str(messages)], check=True, capture_output=True
    )
    return float(done.stdout)


def main(*, full: bool = False) -> list[Row]:
    """Measure a session of 10,000 messages beside one of 100,000 (20,000 in the quick run)."""
    if not _STATUS.exists():
        print("memory: needs /proc, which only Linux has", file=sys.stderr)
        return []
    few, many = 10_000, 100_000 if full else 20_000
    short, long = held(few), held(many)
    return [
        Row(f"memory of a session of {few:,} messages, window {WINDOW:,}, at most", short, "MB"),
        Row(f"memory of a session of {many:,} messages, at most", long, "MB"),
        Row(f"memory: {many:,} / {few:,} messages", max(long, LEAST) / max(short, LEAST), "x", most=1.5),
    ]


if __name__ == "__main__":
    print(child(int(sys.argv[1])))
