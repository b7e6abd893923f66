"""A store that each released version wrote is read, and written on, by this one.

`python -m tests.stores.test_earlier VERSION` writes the store of the version that is installed, once a release.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline.dialects import get

WRITTEN = Path(__file__).parents[1] / "data" / "stores"
RULE = "Never delete a letter of the harbour."
NUMBERS = range(12)


def talk(number: int) -> list[dict[str, Any]]:
    """A question, a call with its result, and an answer."""
    function = {"name": "read", "arguments": f'{{"path": "shelf/{number}.txt"}}'}
    return [
        {"role": "user", "content": f"What is in box {number}? {RULE if number == 0 else ''}".strip()},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
        },
        {
            "role": "tool",
            "tool_call_id": f"call_{number}",
            "content": f"Letters of {1900 + number}. Ünïcode \U0001f4e6. " * 20,
        },
        {"role": "assistant", "content": f"Box {number} holds the letters of {1900 + number}."},
    ]


async def write(file: Path) -> None:
    """Write a store with a session that has one of each: folds, an undo, a pin, an exclusion, a branch, a fork."""
    async with foldline.open(f"sqlite:///{file}", "harbour", window=8_000) as session:
        for number in NUMBERS:
            ids = await session.append(*talk(number))
            if number == 3:
                await session.pin(ids[3])
            if number in (5, 8):
                await session.compact(target=1_200)
            if number == 6:
                await session.undo()
            if number == 10:
                await session.exclude(ids[2])
        left = await session.append({"role": "user", "content": "Burn them all."})
        await session.rewind(left[0])
        async with await session.fork("copy") as fork:
            await fork.append({"role": "user", "content": "And in the cellar?"})


@pytest.mark.parametrize("name", sorted(file.name for file in WRITTEN.iterdir()))
async def test_the_store_of_an_earlier_version_is_read_and_written_on(name, tmp_path):
    shutil.copy(WRITTEN / name, tmp_path / "s.db")
    async with foldline.open(f"sqlite:///{tmp_path / 's.db'}", "harbour") as session:
        whole = [message for number in NUMBERS for message in talk(number)]
        assert await session.history() == whole
        assert await session.verify() == []
        figures = await session.stats()
        assert (figures.total_messages, figures.summaries) == (len(whole), 1)
        view = await session.context()
        assert get("openai-chat").validate(view) == []
        assert RULE in str(view)
        assert whole[15]["content"] in str(view), "it is pinned"
        assert whole[42]["content"] not in str(view), "it was taken out"
        assert any("1902" in hit.snippet for hit in await session.recall("letters of 1902"))
        assert sorted(one.text for one in await session.branches() if not one.current) == ["Burn them all."]
        await session.undo()
        await session.undo()
        assert len(await session.context()) > len(view)
        await session.append({"role": "user", "content": "Thanks."})
        assert (await session.history())[-1]["content"] == "Thanks."
        assert await session.verify() == []
    async with foldline.open(f"sqlite:///{tmp_path / 's.db'}", "copy") as fork:
        assert (await fork.history())[-1]["content"] == "And in the cellar?"


if __name__ == "__main__":
    asyncio.run(write(WRITTEN / f"sqlite-{sys.argv[1]}.db"))
