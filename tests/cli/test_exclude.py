"""`foldline exclude`: a message of a stored session taken out of its context, and brought back."""

from __future__ import annotations

import pytest
from tests.cli.calling import talk, write_lines


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


def test_what_cannot_be_done_is_refused(foldline, entries):
    assert "0 messages have an id that begins with 'zzz'" in foldline("exclude", "work", "zzz").err
    assert "has no part 3" in foldline("exclude", "work", entries[0], "--part", 3).err
    assert foldline("exclude", "none", entries[0]).code == 2
