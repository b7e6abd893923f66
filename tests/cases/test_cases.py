"""Every reported case beside the checkout has its right value."""

from __future__ import annotations

import pytest
from tests.cases.reported import CASES, CHECKS, REPORTED

pytestmark = [
    pytest.mark.slow,  # each case is a program
    pytest.mark.skipif(
        not CASES.is_dir(),
        reason="no reported cases beside the checkout (../shared/cases, or FOLDLINE_CASES)",
    ),
]


@pytest.mark.parametrize("folder", sorted(CHECKS))
def test_the_case_has_its_right_value(folder):
    CHECKS[folder]()


def test_every_case_has_a_check():
    there = {path.name for path in REPORTED.iterdir() if path.is_dir()}
    there |= {f"newcomer/{path.name}" for path in (CASES / "newcomer").iterdir()}
    assert there == set(CHECKS)
