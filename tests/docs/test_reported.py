"""tests/data/reported.toml: each kind of reported case names a test that exists."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.docs.test_parity import names_in

ROOT = Path(__file__).parents[2]
REPORTED = tomllib.loads((ROOT / "tests" / "data" / "reported.toml").read_text(encoding="utf-8"))


def test_the_list_is_whole():
    assert len(REPORTED) >= 80


@pytest.mark.parametrize("named", REPORTED.values(), ids=list(REPORTED))
def test_the_test_of_a_reported_case_exists(named):
    file, name = named.split("::")
    assert name in {each.rpartition("::")[2] for each in names_in(file)}
