"""How a run ended: its exit code, what passed and failed, and its first error."""

from __future__ import annotations

import pytest

from foldline.core.ledger.facts.outcomes import outcome


@pytest.mark.parametrize(
    ("output", "passed", "text"),
    [
        ("...\n3 failed, 9 passed in 2.1s", False, "3 failed, 9 passed in 2.1s"),
        ("9 passed in 2.1s", True, "9 passed in 2.1s"),
        ("Tests:       1 failed, 9 passed, 10 total\nTime: 2 s", False, "Tests:       1 failed, 9 passed, 10 total"),
        ("test result: ok. 9 passed; 0 failed; 0 ignored", True, "test result: ok. 9 passed; 0 failed; 0 ignored"),
        ("Found 3 errors in 2 files", False, "Found 3 errors in 2 files"),
        ("Exit code: 2\nmake: *** [all] Error 2", False, "exit 2; make: *** [all] Error 2"),
        ("FAILED tests/a.py::test_x - KeyError: 'a'\n1 failed, 8 passed", False, "1 failed, 8 passed; FAILED tests/a.py::test_x - KeyError: 'a'"),
        ("ok  \tpkg/a\t0.1s", True, "ok  \tpkg/a\t0.1s"),
        ("built in 3 s", None, "built in 3 s"),
        ("one\ntwo\nthree", None, "three"),
        ("", None, ""),
    ],
)  # fmt: skip
def test_an_outcome_counts_what_failed_too(output, passed, text):
    found = outcome(output, is_error=False)
    assert (found.passed, found.text) == (passed, text)


def test_a_flag_says_that_a_run_failed():
    assert outcome("no such table: users", is_error=True).passed is False


def test_colours_and_envelopes_are_left_out():
    found = outcome("Exit code: 0\nWall time: 2 s\nOutput:\n\x1b[32m9 passed\x1b[0m", is_error=False)
    assert (found.passed, found.text) == (True, "9 passed")
