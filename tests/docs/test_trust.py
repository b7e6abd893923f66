"""The table of `docs/testing.md`: each kind of reported case names a test that is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.+?) \| `(tests/[\w/]+\.py)::(test_\w+)` \|$", PAGE, re.MULTILINE)


def test_every_point_has_its_row():
    section = PAGE.partition("## Each kind of reported case")[2]
    assert section.count("\n| ") == len(ROWS) + 2  # the head and its line
    assert len(ROWS) >= 80
    assert len({point for point, _, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("file", "name"), [(file, name) for _, file, name in ROWS])
def test_the_test_that_a_point_names_is_there(file, name):
    said = (ROOT / file).read_text(encoding="utf-8")
    assert re.search(rf"^ *(?:async )?def {name}\(", said, re.MULTILINE), f"{file} has no {name}"
