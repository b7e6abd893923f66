"""A process that writes to a store until it is done or killed; prints the id of each entry once it is durable.

python -m tests.stores.writer FILE SESSION NAME TURNS
"""

from __future__ import annotations

import asyncio
import sys

from tests.stores.build import talk

from foldline.errors import LeafMoved
from foldline.stores import SqliteStore


async def write(file: str, session: str, name: str, turns: int) -> None:
    store = SqliteStore(file, timeout=60)
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


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
