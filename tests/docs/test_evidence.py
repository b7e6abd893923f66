"""The tables of docs/results/README.md are those of the result files, and a tool that saves writes both."""

from __future__ import annotations

import msgspec
import pytest
from tools import results
from tools.results import Result, Table

PAGE = "# Page\n<!-- table: some -->\nold\n<!-- end -->\nafter\n"
TABLE = Table(("what", "tokens"), [("`a`", "1"), ("b", "2")], "Sizes", ("of two", "things"))


def test_the_page_holds_what_the_result_files_say():
    text = results.PAGE.read_text(encoding="utf-8")
    assert text == results.filled(text), "run python -m tools.results"


def test_every_result_file_stands_in_the_page():
    named = {found[2] for found in results.PLACE.finditer(results.PAGE.read_text(encoding="utf-8"))}
    assert named == {path.stem for path in results.FOLDER.glob("*.json")}


@pytest.mark.parametrize("path", sorted(results.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_result_file_says_how_it_was_made_and_its_rows_are_whole(path):
    found = msgspec.json.decode(path.read_bytes(), type=Result)
    assert all((found.command, found.date, found.commit, found.machine))
    for table in found.tables:
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_what_is_saved_comes_into_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    path = results.save("some", "python -m tools.some --save", [TABLE], tmp_path, page)

    found = msgspec.json.decode(path.read_bytes(), type=Result)
    assert found.tables == [TABLE]
    assert page.read_text() == "\n".join(
        [
            "# Page",
            "<!-- table: some -->",
            "",
            f"`python -m tools.some --save`, {found.date}, commit {found.commit}; {found.machine}.",
            "",
            "**Sizes**",
            "",
            "| what | tokens |",
            "| --- | ---: |",
            "| `a` | 1 |",
            "| b | 2 |",
            "",
            "of two  ",
            "things",
            "",
            "<!-- end -->",
            "after",
            "",
        ]
    )
    results.write(page, tmp_path)
    assert page.read_text().count("**Sizes**") == 1


def test_a_page_may_show_some_rows_of_a_table(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- table: some (ok|MISSED) -->\n<!-- end -->\n")
    rows = [("first", "1", "ok"), ("second", "2", ""), ("third", "3", "**MISSED**")]
    results.save("some", "python", [Table(("what", "measured", "verdict"), rows)], tmp_path, page)

    text = page.read_text()
    assert "| first | 1 | ok |" in text
    assert "| third | 3 | **MISSED** |" in text
    assert "second" not in text
