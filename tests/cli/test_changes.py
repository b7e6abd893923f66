"""`foldline exclude`, `undo`, `redo` and `merge`: what is in the context of a stored session, changed."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.calling import talk, write_lines

import foldline as library


@pytest.fixture
def entries(foldline, tmp_path):
    """The entries of a stored session."""
    file = write_lines(tmp_path / "s.jsonl", talk("Is it a zebra?", "A zebra.", "And now?", "A lion."))
    assert foldline("import", file, "--id", "work").code == 0
    return [one["id"] for one in foldline("show", "work", "--json").json if one["type"] == "said"]


def viewed(foldline) -> str:
    return foldline("show", "work", "--view").out


def test_a_message_is_taken_out_and_brought_back(foldline, entries):
    done = foldline("exclude", "work", entries[0][:10], "--json").json
    assert done["receipt"]["dropped"]["edits"] == {"excluded": 1}
    assert "Is it" not in viewed(foldline)
    assert "less)" in foldline("exclude", "work", entries[1], "--part", 0).out
    assert "zebra" not in viewed(foldline)
    assert "excluded: manual" in foldline("show", "work").out
    assert "zebra" in foldline("search", "zebra").out
    assert foldline("undo", "work").code == foldline("undo", "work").code == 0
    assert "Is it a zebra?" in viewed(foldline)
    assert foldline("verify").code == 0


def test_what_was_done_last_is_undone_and_redone(foldline, entries):
    assert "there is no compaction to undo in work" in foldline("undo", "work").err
    assert "there is no undo to revert in work" in foldline("redo", "work").err
    foldline("exclude", "work", entries[0])
    less = foldline("undo", "wor", "--json").json
    assert "Is it a zebra?" in viewed(foldline)
    more = foldline("redo", "work", "--json").json
    assert "Is it a zebra?" not in viewed(foldline)
    assert (less["entry"], less["session"]) == (more["entry"], "work")
    assert less["view_tokens"] > more["view_tokens"]
    assert "`foldline redo work` reverts this" in foldline("undo", "work").out
    assert "redone: " in foldline("redo", "work").out
    assert foldline("undo", "none").code == 2
    assert foldline("verify").code == 0


def test_an_id_that_looks_like_markup_is_printed_as_it_is(foldline, tmp_path):
    file = write_lines(tmp_path / "s.jsonl", talk("Is it a zebra?", "A zebra."))
    foldline("import", file, "--id", "work[/]")
    (entry, *_) = (one["id"] for one in foldline("show", "work[/]", "--json").json if one["type"] == "said")
    foldline("exclude", "work[/]", entry)
    assert "`foldline redo work[/]` reverts this" in foldline("undo", "work[/]").out


def test_what_cannot_be_excluded_is_refused(foldline, entries):
    assert "0 messages have an id that begins with 'zzz'" in foldline("exclude", "work", "zzz").err
    assert "has no part 3" in foldline("exclude", "work", entries[0], "--part", 3).err
    assert foldline("exclude", "none", entries[0]).code == 2


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
def test_what_cannot_be_merged_is_refused(foldline):
    own = foldline("merge", "work", "--json").json[0]["leaf"]
    assert "nothing was said on" in foldline("merge", "work", own).err
    unknown = foldline("merge", "work", "7")
    assert "no branch '7' (`foldline merge work` lists the branches), and no session '7'" in unknown.err
    assert unknown.code == foldline("merge", "none").code == 2
