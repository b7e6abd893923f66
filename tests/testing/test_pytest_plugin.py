"""The plugin for pytest, in runs of pytest of its own."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest
from tests.support.recordings import GOOD, RULE, TOO_FEW, with_bad_image, with_rules

pytest_plugins = ["pytester"]

ONE = "def test_one():\n    assert True\n"


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("HOME", str(pytester.path))
    (pytester.path / "recordings").mkdir()

    def call(*args):
        return pytester.runpytest_inprocess("-p", "foldline.pytest_plugin", *map(str, args))

    return call


def test_one_test_for_each_session_and_policy(run, pytester):
    shutil.copy(GOOD, pytester.path / "recordings" / "good.jsonl")
    with_rules(pytester.path / "recordings" / "rules.jsonl")
    pytester.makepyfile(test_mine=ONE)
    done = run(
        "--foldline-sessions=recordings", "--foldline-window=20000", "--foldline-policy=foldline, codex", "-v"
    )
    done.assert_outcomes(passed=5)
    done.stdout.fnmatch_lines(
        [
            "*collected 5 items",
            "test_mine.py::test_one PASSED*",
            "recordings/good.jsonl::foldline PASSED*",
            "recordings/good.jsonl::codex PASSED*",
            "recordings/rules.jsonl::foldline PASSED*",
            "recordings/rules.jsonl::codex PASSED*",
        ]
    )


def test_failures_name_session_policy_request_and_what_is_wrong(run, pytester):
    folder = pytester.path / "recordings"
    shutil.copy(GOOD, folder / "long.jsonl")
    with_rules(folder / "rules.jsonl")
    with_bad_image(folder / "image.jsonl")
    (folder / "other.json").write_text('{"not": "a session"}')
    done = run(
        "--foldline-sessions", "recordings/long.jsonl", "--foldline-window=20000", "--foldline-policy=amp"
    )
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [
            r"_+ recordings/long\.jsonl under amp _+",
            r"request 25: the window is exceeded: 20,204 tokens, the limit is 20,000",
            r"FAILED recordings/long\.jsonl::amp - request 25: the window .*",
        ]
    )
    assert "Traceback" not in done.stdout.str()

    done = run(
        "--foldline-sessions",
        "recordings/[io]*",
        "--foldline-sessions",
        folder / "rules.jsonl",
        f"--foldline-window={TOO_FEW}",
    )
    done.assert_outcomes(failed=3)
    shown = done.stdout.str()
    assert f"a rule of the user is missing from the view: {RULE.format(0)}" in shown
    assert re.search(
        r"image\.jsonl under foldline _+\nrequest \d+: the view is invalid: message \d+: ", shown
    )
    assert re.search(r"other\.json:1: JSON lines without messages", shown)
    assert shown.count("the view is invalid") == 2  # as a failure, and in the summary
    assert "pytest_plugin.py" not in shown


def test_the_id_of_a_test_runs_it_again_alone(run, pytester):
    for name in ("good", "other"):
        shutil.copy(GOOD, pytester.path / "recordings" / f"{name}.jsonl")
    pytester.makepyfile(test_mine=ONE)
    run("recordings/good.jsonl::foldline").assert_outcomes(passed=1)
    args = ("--foldline-sessions=recordings", "--foldline-policy=foldline,codex")
    run("recordings/good.jsonl::codex", *args).assert_outcomes(passed=1)


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_without_a_token_is_a_mistake_of_the_call(run, window):
    assert run(f"--foldline-window={window}").ret == pytest.ExitCode.USAGE_ERROR


def test_k_and_m_select_among_them(run, pytester):
    shutil.copy(GOOD, pytester.path / "recordings" / "good.jsonl")
    pytester.makepyfile(test_mine=ONE)
    args = ("--foldline-sessions=recordings", "--strict-markers")
    run(*args, "-m", "foldline").assert_outcomes(passed=1, deselected=1)
    run(*args, "-m", "not foldline").assert_outcomes(passed=1, deselected=1)
    run(*args, "-k", "test_one").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("named", ["nowhere", "recordings", "*.jsonl"])
def test_no_session_is_a_mistake_of_the_call(run, named):
    done = run(f"--foldline-sessions={named}")
    assert done.ret == (pytest.ExitCode.TESTS_FAILED if named == "nowhere" else pytest.ExitCode.USAGE_ERROR)


def test_an_unknown_policy_is_said(run, pytester):
    shutil.copy(GOOD, pytester.path / "recordings" / "good.jsonl")
    done = run("--foldline-sessions=recordings", "--foldline-policy=foldlin")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*foldlin*did you mean*foldline*"])


def test_unused_it_loads_nothing_and_adds_nothing(run, pytester):
    pytester.makepyfile(test_mine=ONE)
    run().assert_outcomes(passed=1)
    code = (
        "import sys, pytest; before = set(sys.modules); import foldline.pytest_plugin\n"
        "print(*sorted(name for name in set(sys.modules) - before if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["foldline", "foldline.pytest_plugin"]
