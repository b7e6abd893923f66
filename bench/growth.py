"""Does a call stay as quick as a store grows? One store, more and more sessions, the same calls on sessions of it.

`python -m bench.growth [--store URL] [--messages N] [--short] [--copied] COUNT...` fills a store (a new SQLite file, or an
empty database of your own) up to each COUNT of sessions, one after the other, and measures at each: an append of one
message, opening a session with its context, the first page of the list, and the bytes a message takes in an SQLite file.
With --copied the database copies the first session, without --short messages are as long as those of agents.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bench.copies import fill_by_copies
from bench.sessions import entries_of
from bench.table import Row, lines, machine

import foldline
from foldline.bench.corpus import Talk
from foldline.core.log.entries import Checkpoint, Compacted, Entry, Receipt, Said
from foldline.core.log.log import chained
from foldline.stores import SqliteStore, Store, open_store

KEPT = 40  # messages behind the boundary of each session
TRIES = 100  # sessions on which each call is measured


def session_of(messages: int, *, short: bool = False) -> list[Entry]:
    """Return a session of so many messages that was folded once, `KEPT` messages before its end."""
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"step {n}"} for n in range(messages)]
    said = entries_of(talk if short else Talk().messages(messages))
    checkpoint = Checkpoint(text="the work so far " * (5 if short else 500), summary="the work so far")
    boundary = Compacted("", None, checkpoint, Receipt("threshold"), first_kept=said[-KEPT].id)
    return [*said, chained(boundary, said[-1].id)]


async def fill(store: Store, log: Sequence[Entry], start: int, end: int, *, copied: bool) -> float:
    """Write the log as sessions `s<start>` up to `s<end>`; return the seconds that it took."""
    began = time.perf_counter()
    if copied:
        if not start:
            await store.append("s0", log, seen=None)
        await asyncio.to_thread(fill_by_copies, store, max(start, 1), end)
        return time.perf_counter() - began
    for number in range(start, end):
        await store.append(f"s{number}", log, seen=None)
        if sys.stderr.isatty() and number % 100 == 0:
            print(f"\r{number:,} sessions", end="", file=sys.stderr)
    return time.perf_counter() - began


async def timed(call: Callable[[str], Awaitable[object]], sessions: Sequence[str]) -> float:
    """Return the median time of a call over these sessions, in milliseconds."""
    times: list[float] = []
    for session in sessions:
        began = time.perf_counter()
        await call(session)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3


async def measure(store: Store, count: int, leaf: str, rows: list[Row]) -> None:
    """Measure the calls at so many sessions, on some that nothing was appended to."""
    chosen = [f"s{number}" for number in random.Random(count).sample(range(1, count), min(TRIES, count - 1))]
    (one,) = entries_of([{"role": "user", "content": "And now the next step, please."}])
    news = chained(one, leaf)

    async def append(session: str) -> None:
        await store.append(session, [news], seen=leaf)

    async def opened(session: str) -> None:
        async with foldline.open(store, session, window=200_000) as found:
            await found.context()

    async def listed(_: str) -> None:
        await store.sessions(limit=50)

    async def described(session: str) -> None:
        await store.info(session)

    fresh = [session for session in chosen if await store.leaf(session) == leaf]
    for what, call, on in (
        ("open and context", opened, fresh),
        ("append", append, fresh),
        ("one session's figures", described, chosen),
        ("list of 50", listed, chosen[:20]),
    ):
        rows.append(Row(f"{what}, {count:,} sessions", await timed(call, on), "ms"))


async def run(store: Store, counts: Sequence[int], messages: int, *, short: bool, copied: bool) -> list[Row]:
    """Fill a store up to each count, and measure there."""
    log = session_of(messages, short=short)
    natives = sum(
        len(entry.message.native.raw) for entry in log if isinstance(entry, Said) and entry.message.native
    )
    rows = [Row("native bytes of a message", natives / messages, "bytes")]
    filled = 0
    for count in counts:
        taken = await fill(store, log, filled, count, copied=copied)
        rows.append(Row(f"filling up to {count:,}", (count - filled) * len(log) / taken, "entries/s"))
        filled = count
        await measure(store, count, log[-1].id, rows)
        if isinstance(store, SqliteStore):
            size = sum(file.stat().st_size for file in store.file.parent.glob(f"{store.file.name}*"))
            rows.append(Row(f"stored / native bytes, {count:,} sessions", size / count / natives, "x"))
    return rows


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=[100, 1_000], metavar="COUNT")
    parser.add_argument("--store", help="an empty database (default: a new SQLite file, removed at the end)")
    parser.add_argument("--messages", type=int, default=1_000, help="of each session (default: 1,000)")
    parser.add_argument("--short", action="store_true", help="messages of a few words, for large counts")
    parser.add_argument("--copied", action="store_true", help="have the database copy the first session")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as name:
        store = open_store(given.store or f"sqlite:///{name}/growth.db")

        async def measured() -> list[Row]:
            try:
                counts = sorted(given.counts)
                return await run(store, counts, given.messages, short=given.short, copied=given.copied)
            finally:
                await store.close()

        print(machine())
        print("\n".join(lines(asyncio.run(measured()))))


if __name__ == "__main__":
    main(sys.argv[1:])
