"""Stored sessions: the library's `session.export`, branches, and memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from functools import partial

import pytest
from tests.exports.moving import load
from tests.exports.sessions import anthropic_messages, entries
from tests.support.openers import OPEN

import foldline
from foldline.core.log.entries import Entry, Said
from foldline.errors import InputError
from foldline.exports import ExportRequest, export_entries, export_stored, formats
from foldline.stores import MemoryStore, open_store
from foldline.stores.base import MARKS, Mark


@pytest.mark.parametrize("form", sorted(OPEN))
async def test_a_session_exports_itself_whole_and_folded(form):
    async with foldline.open(
        "memory://", "s", model="anthropic:claude-sonnet-4-5", window=3_000, policy="pi"
    ) as session:
        for message in anthropic_messages():
            await session.append(message)
        await session.append({"role": "user", "content": "word " * 4_000})
        await session.append({"role": "assistant", "content": "Done with the words."})
        await session.append({"role": "user", "content": "Go on."})
        await session.compact(target=1_500)
        whole, view = await session.export(form), await session.export(form, view=True)

    OPEN[form](whole)
    OPEN[form](view)
    assert b"Please mend the parser" in whole
    assert view.count(b"word word") < whole.count(b"word word")
    assert b"foldline-checkpoint" in view


async def test_every_form_is_known_to_a_session_and_no_other():
    async with foldline.open("memory://", "s") as session:
        await session.append(*anthropic_messages())
        for form in formats():
            assert await session.export(form)
        with pytest.raises(InputError, match="unknown format 'word'"):
            await session.export("word")


async def test_what_lies_on_other_branches_is_counted():
    store = open_store("memory://")
    path = entries()
    await store.append("s", path, seen=None)
    await store.move("s", path[3].id, seen=path[-1].id)
    pieces: list[bytes] = []
    result = await export_stored(store, "s", ExportRequest("pi", cwd="/project"), pieces.append)

    assert f"entries on other branches left out ({len(path) - 4})" in result.warnings
    assert sum(isinstance(e, Said) for e in load(b"".join(pieces)).entries) == 5


class ReadTwice(MemoryStore):
    """A store in which something happens after the first reading of a path."""

    then: Callable[[], Awaitable[object]] | None = None

    async def path(self, session: str, leaf: str | None = None) -> AsyncIterator[Entry]:
        async for entry in super().path(session, leaf):
            yield entry
        then, self.then = self.then, None
        if then is not None:
            await then()

    async def marks(
        self, session: str, leaf: str | None = None, *, kinds: Collection[Mark] = MARKS
    ) -> list[Entry]:
        found = await super().marks(session, leaf, kinds=kinds)
        then, self.then = self.then, None
        if then is not None:
            await then()
        return found


@pytest.mark.parametrize("view", [False, True])
async def test_an_export_is_of_one_moment_even_if_the_session_is_folded_meanwhile(view):
    store = ReadTwice()
    async with foldline.open(store, "s") as session:
        for number in range(20):
            await session.append({"role": "user", "content": f"Question {number}? " + "word " * 200})
            await session.append({"role": "assistant", "content": f"Answer {number}."})
        before: list[bytes] = []
        request = ExportRequest("claude-code", view=view, cwd="/project")
        await export_stored(store, "s", request, before.append)
        store.then = partial(session.compact, target=2_500)
        meanwhile: list[bytes] = []
        await export_stored(store, "s", request, meanwhile.append)
        assert store.then is None
    assert meanwhile == before


@pytest.mark.parametrize("form", ["pi", "claude-code", "codex", "opencode", "markdown"])
def test_memory_does_not_grow_with_the_session(form):
    """A history is written in the memory of a few of its messages; the entries themselves stand before the count."""
    words = ["x" * 40_000 + str(n) for n in range(100)]
    path = entries([{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(words)])
    written = 0

    def count(piece: bytes) -> None:
        nonlocal written
        written += len(piece)

    tracemalloc.start()
    try:
        export_entries(path, "s", ExportRequest(form, cwd="/project"), count)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert written > 4_000_000
    assert peak < written / 5
