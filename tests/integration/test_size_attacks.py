"""Long runs of one thing come to an end: each of these took minutes where a pattern grew with the square."""

import pytest

import foldline

LONG = 400_000
RUNS = {
    "spaces": " ",
    "tabs": "\t",
    "stars": "*",
    "pipes": "|",
    "brackets": "[",
    "quotes": '"',
    "a dot": "a.",
}


@pytest.mark.parametrize("unit", RUNS.values(), ids=RUNS.keys())
def test_a_long_run_in_the_users_text_is_folded(unit):
    run = "x" + unit * (LONG // len(unit)) + "y. Never push to main."
    talk = [{"role": "user", "content": f"Fix it.\n{run}"}]
    for number in range(12):
        talk += [{"role": "assistant", "content": f"Step {number} went well. " * 60}]
        talk += [{"role": "user", "content": f"Go on with {number}."}]
    done = foldline.compact(talk, target=2_000)
    assert done.view_tokens <= 2_000
    assert "Never push to main." in done.summary
