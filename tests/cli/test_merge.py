"""`foldline merge`: the branches of a stored session, and one of them noted on its path."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.calling import talk, write_lines

import foldline as library


@pytest.fixture
def branched(foldline, tmp_path):
    """A stored session that left a branch and a fork."""
    file = write_lines(
        tmp_path / "s.jsonl", talk("Mend the page.", "Sessions or tokens?", "Sessions.", "I did so.")
    )
    assert foldline("import", file, "--id", "work").code == 0

    async def leave() -> None:
        async with library.open(session="work") as session:
            async with await session.fork("fork") as fork:
                await fork.append(*talk("The footer, too.", "The footer is mended."))
            await session.branch((await session.entries())[1].entry)
            await session.append(*talk("Tokens.", "I used tokens."))

    asyncio.run(leave())


@pytest.mark.usefixtures("branched")
def test_the_branches_are_listed_and_one_is_noted(foldline):
    listed = foldline("merge", "work", "--json").json
    assert [one["current"] for one in listed] == [True, False]
    assert "Sessions." in foldline("merge", "work").out
    done = foldline("merge", "work", 2, "--instructions", "sessions", "--json").json
    assert "I did so." in done["text"]
    assert "Mend the page." not in done["text"]
    view = foldline("show", "work", "--view", "--json").json
    assert view[-1]["entry"] == done["entry"]
    assert "merged into it" in foldline("merge", "work", listed[1]["leaf"][:8]).err
    assert "The footer is mended." in foldline("merge", "work", "fork").out
    assert foldline("verify").code == 0


@pytest.mark.usefixtures("branched")
def test_what_cannot_be_noted_is_refused(foldline):
    own = foldline("merge", "work", "--json").json[0]["leaf"]
    assert "nothing was said on" in foldline("merge", "work", own).err
    unknown = foldline("merge", "work", "7")
    assert "no branch '7' (`foldline merge work` lists the branches), and no session '7'" in unknown.err
    assert unknown.code == foldline("merge", "none").code == 2
