from __future__ import annotations

import pytest
from tests.core.ledger.test_edits import talk

from foldline.core.ledger.collect import collect
from foldline.core.ledger.facts import changes
from foldline.core.ledger.facts.edits import FileEdit
from foldline.core.ledger.page.page import compose, parse
from foldline.core.measure.tokens import OFFLINE


@pytest.mark.parametrize(
    ("edits", "note"),
    [
        ([("limit = 3", "limit = 5")], "`limit = 3` became `limit = 5`"),
        ([("a = 1\nb = 2", "a = 1\nb = 2\nretry_rows(a)")], "added `retry_rows(a)`"),
        (
            [("old_name(x)\ny", "fetch_rates(x)\nkeep_row(y)")],
            "adds `fetch_rates`, `keep_row`; removes `old_name`",
        ),
        ([("x", "x")], ""),
    ],
)
def test_a_change_is_told_by_its_line_or_by_the_names_that_came_and_went(edits, note):
    made = [FileEdit("src/a.py", old, new, "e1") for old, new in edits]
    assert changes.notes(made).get("src/a.py", "") == note


def test_a_file_that_was_written_whole_says_what_it_defines():
    made = FileEdit(
        "src/a.py", "", "class Rates:\n    def load_all(self): ...\n\ndef main(): ...", "e1", whole=True
    )
    assert changes.notes([made]) == {"src/a.py": "defines `Rates`, `load_all`, `main`"}


def test_what_a_result_shows_is_nobodys_change():
    assert changes.notes([FileEdit("src/a.py", "a", "b", "e1", shown=True)]) == {}


def test_the_log_says_how_the_newest_files_were_changed_and_is_read_back():
    edit = ("edit", {"path": "src/rates.py", "old": "limit = 3", "new": "limit = 5"})
    text = compose(collect(talk(edit, answers=["ok"])), 600, OFFLINE.count).text
    assert "  - In `src/rates.py`: `limit = 3` became `limit = 5`" in text
    back = parse(text)
    assert [fact.notes for fact in back.work[0].files] == [("`limit = 3` became `limit = 5`",)]
