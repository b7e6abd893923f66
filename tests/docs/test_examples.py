"""The checkpoints under docs/examples are what the code makes of the examples today."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.make_examples import EXAMPLES, LEDGER, NOTEBOOK, PLACE, page, with_outputs, with_page

FOLDER = Path(__file__).parents[2] / "docs" / "examples"


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_page_is_what_the_fold_says_today(name):
    target, what = EXAMPLES[name]
    written = (FOLDER / f"{Path(name).stem}.md").read_text(encoding="utf-8")
    assert written == page(name, target, what), "run tools/make_examples.py and read what changed"


def test_the_page_in_the_ledgers_page_is_what_the_fold_says_today():
    written = LEDGER.read_text(encoding="utf-8")
    assert PLACE.search(written)
    assert written == with_page(written), "run tools/make_examples.py and read what changed"


def test_the_notebook_prints_what_it_says():
    written = NOTEBOOK.read_text(encoding="utf-8")
    assert written == with_outputs(written), "run tools/make_examples.py and read what changed"
