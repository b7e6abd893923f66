"""A stored session as a session file, for work that reads files."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

from foldline.errors import SessionNotFound
from foldline.exports.base import line
from foldline.lab.sources import is_stored, place_of
from foldline.stores import open_store
from foldline.transcripts import header_line


@contextmanager
def as_file(name: str) -> Generator[str]:
    """Give the path of a source: a file's own, or that of a copy in our own form, which is gone at the end.

    Raises SessionNotFound where the store does not have the session any more.
    """
    if not is_stored(name):
        yield name
        return
    with tempfile.NamedTemporaryFile(prefix="foldline-", suffix=".jsonl") as copy:
        asyncio.run(_copy(name, copy.file))
        yield copy.name


async def _copy(name: str, copy: IO[bytes]) -> None:
    url, session = place_of(name)
    store = open_store(url)
    try:
        leaf = await store.leaf(session)
        if leaf is None:
            raise SessionNotFound(f"{name}: this session is not in the store any more")
        copy.write(header_line(session=session, leaf=leaf))
        async for entry in store.all(session):
            copy.write(line(entry))
        copy.flush()
    finally:
        await store.close()
