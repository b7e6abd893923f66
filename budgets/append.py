"""What does a durable append cost beside a raw write of the same bytes, and in a long session?

Each figure is a ratio of medians within one run, in which both sides take turns. The raw side appends the
payload bytes of the turn to a file and calls fdatasync. Budgets: DESIGN.md section 9.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from budgets.sessions import STORED, entries_of, fill
from budgets.table import Row

from foldline.bench.corpus import Talk
from foldline.core.log.entries import Said
from foldline.core.log.log import chained
from foldline.stores import SqliteStore, appending
from foldline.stores.rows import pack
from foldline.stores.tables import Tables

KEPT = 100  # messages behind the boundary of a long session


def turn(before: Said | None, messages: int, size: int, tag: int) -> list[Said]:
    """A turn of so many messages of about `size` payload bytes each."""
    talk = Talk(tag)
    texts = (f"turn {tag} message {n} {talk.words(size // 14)}" for n in range(messages))
    return entries_of(({"role": "user", "content": text} for text in texts), before)


async def append_against_raw(folder: Path, messages: int, size: int, turns: int) -> list[Row]:
    """Time appends of one turn against raw writes of its payloads, alternately."""
    store = SqliteStore(folder / f"{messages}-{size}.db")
    raw = os.open(folder / f"{messages}-{size}.raw", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    bare = bare_table(folder / f"{messages}-{size}-bare.db")
    loop, leaf = asyncio.get_running_loop(), None
    stored: list[float] = []
    written: list[float] = []
    inserted: list[float] = []
    threaded: list[float] = []
    for tag in range(turns + 20):
        batch = turn(leaf, messages, size, tag)
        payloads = [pack(entry) for entry in batch]
        payload = b"".join(payloads)
        for side in (written, inserted, threaded, stored):
            start = time.perf_counter()
            if side is stored:
                await store.append("s", batch, seen=leaf.id if leaf else None)
            elif side is inserted:
                insert(bare, payloads)
            elif side is threaded:
                await loop.run_in_executor(None, write, raw, payload)
            else:
                write(raw, payload)
            side.append(time.perf_counter() - start)
        leaf = batch[-1]
    await store.close()
    os.close(raw)
    bare.close()
    name = f"{messages} x {size:,} B"
    median = {id(side): statistics.median(side[20:]) for side in (stored, written, inserted, threaded)}
    return [
        Row(f"append of {name}", median[id(stored)] * 1e6, "us"),
        Row(f"raw write + fdatasync of {name}", median[id(written)] * 1e6, "us"),
        Row(f"bare SQLite insert and commit of {name}", median[id(inserted)] * 1e6, "us"),
        Row(f"raw / append, {name}", median[id(written)] / median[id(stored)], "x"),
        Row(f"raw / bare SQLite, {name}: the most there is", median[id(written)] / median[id(inserted)], "x"),
        Row(f"bare SQLite / append, {name}", median[id(inserted)] / median[id(stored)], "x", least=0.55),
        Row(f"raw in a thread / append, {name}", median[id(threaded)] / median[id(stored)], "x"),
        Row(
            f"raw / append by means, {name}",
            statistics.mean(written[20:]) / statistics.mean(stored[20:]),
            "x",
        ),
    ]


def bare_table(file: Path) -> sqlite3.Connection:
    """A table of payloads and nothing else, with the store's journal and sync."""
    database = sqlite3.connect(file, isolation_level=None)
    for pragma in ("page_size = 2048", "journal_mode = WAL", "synchronous = FULL"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("CREATE TABLE payloads (key INTEGER PRIMARY KEY, payload BLOB)")
    return database


def insert(database: sqlite3.Connection, payloads: list[bytes]) -> None:
    """Insert a row for each payload in one commit, durable on return."""
    database.execute("BEGIN IMMEDIATE")
    database.executemany("INSERT INTO payloads (payload) VALUES (?)", [(payload,) for payload in payloads])
    database.execute("COMMIT")


def write(raw: int, payload: bytes) -> None:
    """Write the bytes, durable on return."""
    os.write(raw, payload)
    os.fdatasync(raw)


def without_a_loop(folder: Path, messages: int, size: int, turns: int) -> list[Row]:
    """Time the synchronous half alone: what the thread hop adds is the difference."""
    store = SqliteStore(folder / "sync.db")
    tables = store._work(Tables)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # without its thread
    times: list[float] = []
    leaf: Said | None = None
    for tag in range(turns + 20):
        batch = turn(leaf, messages, size, tag)
        start = time.perf_counter()
        appending.append(tables, "s", batch, leaf.id if leaf else None)
        times.append(time.perf_counter() - start)
        leaf = batch[-1]
    asyncio.run(store.close())
    return [
        Row(
            f"append of {messages} x {size:,} B without the thread hop",
            statistics.median(times[20:]) * 1e6,
            "us",
        )
    ]


def flatness(short: Path, long: Path, messages: int) -> list[Row]:
    """Time appends of one message to a session of 1,000 and to a long one, alternately."""

    async def both() -> tuple[list[float], list[float]]:
        sides = [(SqliteStore(file), list[float]()) for file in (short, long)]
        for tag in range(220):
            for store, times in sides:
                leaf = await store.leaf(STORED)
                (entry,) = turn(None, 1, 2_000, tag)
                start = time.perf_counter()
                await store.append(STORED, [chained(entry, leaf)], seen=leaf)
                times.append(time.perf_counter() - start)
        for store, _ in sides:
            await store.close()
        return sides[0][1], sides[1][1]

    few, many = (statistics.median(times[20:]) for times in asyncio.run(both()))
    return [Row(f"append after {messages:,} / after 1,000 messages", many / few, "x", most=1.5)]


def main(*, full: bool = False) -> list[Row]:
    """Measure turns of three sizes; `full` appends to 200,000 messages instead of 20,000."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".budgets-") as name:
        folder = Path(name)
        for messages, size in ((1, 2_000), (4, 4_000), (20, 5_000)):
            rows += asyncio.run(append_against_raw(folder, messages, size, 400))
        rows += without_a_loop(folder, 1, 2_000, 400)
        many = 200_000 if full else 20_000
        short, long = folder / "short.db", folder / "long.db"
        asyncio.run(fill(short, 1_000, KEPT))
        asyncio.run(fill(long, many, KEPT))
        rows += flatness(short, long, many)
    return rows
