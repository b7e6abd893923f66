"""A process that writes to a store until it is done or killed; prints the id of each entry once it is durable.

python -m tests.stores.writer URL SESSION NAME TURNS
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.stores.build import talk

from foldline.errors import LeafMoved
from foldline.stores import Store, open_store

ROOT = Path(__file__).parents[2]


async def write(url: str, session: str, name: str, turns: int) -> None:
    store = open_store(url)
    try:
        for turn in range(turns):
            while True:
                leaf = await store.leaf(session)
                before = await store.entry(session, leaf) if leaf else None
                batch = talk(
                    before, f"{name} {turn} asks {'x' * (turn * 37 % 5000)}", f"{name} {turn} answers"
                )
                try:
                    await store.append(session, batch, seen=leaf)
                except LeafMoved:
                    continue
                sys.stdout.write("".join(f"{entry.id}\n" for entry in batch))
                sys.stdout.flush()
                break
    finally:
        await store.close()


def run_writers(url: str, session: str, writers: int, turns: int) -> list[list[str]]:
    """Let so many processes write at once; return the ids that each was acknowledged."""
    command = [sys.executable, "-m", "tests.stores.writer", url, session]
    running = [
        subprocess.Popen([*command, f"w{n}", str(turns)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for n in range(writers)
    ]
    acknowledged = [process.communicate(timeout=300)[0].split() for process in running]
    assert [process.returncode for process in running] == [0] * writers
    return acknowledged


async def check_linear(store: Store, session: str, acknowledged: list[list[str]], turns: int) -> None:
    """Assert that the path holds what was acknowledged, once, each writer's in its order, and nothing else."""
    path = [entry async for entry in store.path(session)]
    assert sorted(entry.id for entry in path) == sorted(id_ for ids in acknowledged for id_ in ids)
    seqs = {entry.id: seq for seq, entry in enumerate(path)}
    for number, ids in enumerate(acknowledged):
        assert [seqs[id_] for id_ in ids] == sorted(seqs[id_] for id_ in ids)
        said = [path[seqs[id_]].message.text.split(" x")[0].strip() for id_ in ids]
        assert said == [f"w{number} {t} {x}" for t in range(turns) for x in ("asks", "answers")]
    info = await store.info(session)
    assert info is not None
    assert info.entries == len(path)
    assert await store.verify() == []


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
