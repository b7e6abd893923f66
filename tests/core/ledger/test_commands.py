"""Commands and their outcomes, errors and whether they were fixed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from foldline.core.ledger.facts import commands, errors
from foldline.core.ledger.facts.calls import uses
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def run(*steps: tuple[Any, str] | tuple[Any, str, bool], name: str = "Bash", start: int = 0) -> list[Said]:
    entries: list[Said] = []
    for i, step in enumerate(steps, start):
        arguments = {"command": step[0]} if isinstance(step[0], str) else step[0]
        is_error = step[2] if len(step) > 2 else False
        entries.append(Said(f"a{i}", None, Message("assistant", (ToolCall(f"c{i}", name, arguments),)), ""))
        entries.append(
            Said(f"r{i}", None, Message("tool", (ToolResult(f"c{i}", (Text(step[1]),), is_error),)), "")
        )
    return entries


@pytest.mark.parametrize(
    ("result", "is_error", "passed", "outcome"),
    [
        ("Exit code 2\nmake: *** No rule to make target `x'.  Stop.", True, False, "make: *** No rule to make target `x'.  Stop."),
        ("Exit code: 0\nWall time: 1.2 seconds\nOutput:\n12 passed in 3.1s", False, True, "12 passed in 3.1s"),
        ("Exit code: 1\nWall time: 1.2 seconds\nOutput:\n  2 failing", False, False, "2 failing"),
        (json.dumps({"output": "ok\n3 passed", "metadata": {"exit_code": 0, "duration_seconds": 1.0}}), False, True, None),
        (json.dumps({"output": "boom", "metadata": {"exit_code": 3}}), False, False, None),
        ("building\n\n\nCommand exited with code 2", False, False, "building"),
        ("Process exited with code 0\nOutput:\nBuild succeeded", False, True, "Build succeeded"),
        ("Command: make\nDirectory: /p\nOutput: done\nError: (none)\nExit Code: 0\nSignal: (none)", False, True, None),
        ("out\n<shellId: 0 completed with exit code 0>", False, True, None),
        ("<returncode>1</returncode>\n<output>\nboom\n</output>", False, False, None),
        ("=== 3 failed, 10 passed in 2s ===", False, False, "=== 3 failed, 10 passed in 2s ==="),
        ("10 passed, 0 failed", False, True, "10 passed, 0 failed"),
        ("--- FAIL: TestLogin (0.1s)\nFAIL\nFAIL\tpkg/login\t0.2s", False, False, "--- FAIL: TestLogin (0.1s)"),
        ("src/a.ts(3,4): error TS2304: Cannot find name 'x'.", False, False, "src/a.ts(3,4): error TS2304: Cannot find name 'x'."),
        ("Traceback (most recent call last):\n  File \"x.py\", line 1\nKeyError: 'user'", False, False, "KeyError: 'user'"),
        ("zsh: command not found: pnpm", False, False, "zsh: command not found: pnpm"),
        ("some words that say nothing", False, None, "some words that say nothing"),
        ("", False, None, ""),
        ("x" * 5000, False, None, ""),
        ("boom", True, False, "boom"),
    ],
)  # fmt: skip
def test_whether_a_command_passed(
    result: str, is_error: bool, passed: bool | None, outcome: str | None
) -> None:
    (fact,) = commands.collect(uses(run(("make check", result, is_error))))
    assert fact.passed is passed
    if outcome is not None:
        assert fact.outcome == outcome


def test_a_tool_that_names_only_failing_codes_passes_in_silence() -> None:
    facts = commands.collect(uses(run(("make a", "Exit code 1\nboom", True), ("make b", "built it"))))
    assert [fact.passed for fact in facts] == [False, True]
    facts = commands.collect(
        uses(run(("make a", "Exit code: 1\nboom"), ("make c", "Exit code: 0"), ("make b", "built it")))
    )
    assert [fact.passed for fact in facts] == [False, True, None]


@pytest.mark.parametrize(
    ("name", "arguments", "command"),
    [
        ("Bash", {"command": "make", "description": "Build"}, "make"),
        ("bash", {"command": "make", "timeout": 5}, "make"),
        ("shell", {"command": ["bash", "-lc", "make all"]}, "make all"),
        ("exec_command", {"cmd": "make"}, "make"),
        ("run_shell_command", {"command": "make", "directory": "x"}, "make"),
        ("terminal", "make", "make"),
        ("zorp", {"CommandLine": "make"}, "make"),
        ("run_script", {"script": "make"}, "make"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "x"}, None),
        ("Read", {"file_path": "x"}, None),
        ("zorp", {"command": 3}, None),
        ("zorp", {"command": [1, 2]}, None),
        ("zorp", {"command": "  "}, None),
    ],
)
def test_which_calls_are_commands(name: str, arguments: Any, command: str | None) -> None:
    assert commands.command_of(ToolCall("c", name, arguments)) == command


@pytest.mark.parametrize(
    ("command", "notable"),
    [
        ("ls -la", False),
        ("cd x && pwd && cat y | head -3", False),
        ("git status && git log --oneline", False),
        ("grep -rn x . | wc -l", False),
        ("sed -n '1,3p' x", False),
        ("sed -i 's/a/b/' x", True),
        ("git commit -m x", True),
        ("git -C /p -c a.b=c --no-pager diff", False),
        ("git -C /p push", True),
        ("git", False),
        ("cd x && npm test", True),
        ("FOO=1 pytest -q", True),
        ("", False),
    ],
)
def test_notable(command: str, notable: bool) -> None:
    assert commands.is_notable(command) is notable


def test_repeats_are_counted_and_the_newest_outcome_wins() -> None:
    entries = run(("cd /p && pytest -q", "1 failed"), ("ls", "x"), ("pytest -q 2>&1 | tail -3", "5 passed"))
    (fact,) = commands.collect(uses(entries))
    assert (fact.passed, fact.outcome, fact.uses, fact.entries) == (
        True,
        "5 passed",
        2,
        ("a0", "r0", "a2", "r2"),
    )
    merged = commands.merge(commands.collect(uses(entries[:2])), commands.collect(uses(entries[2:])))
    assert merged == (fact,)
    assert commands.merge(merged, (fact,)) == merged


def test_a_search_without_a_match_is_no_failure() -> None:
    assert errors.collect(uses(run(("make x; grep foo bar", "Exit code 1", True)))) == ()


def test_a_refused_call_is_neither_run_nor_an_error() -> None:
    entries = run(("rm -rf /", "The user doesn't want to proceed with this tool use.", True))
    assert commands.collect(uses(entries)) == ()
    assert errors.collect(uses(entries)) == ()


FAILED = "Exit code 1\nE       KeyError: 'user'\n1 failed"


@pytest.mark.parametrize(
    ("first", "later", "fixed"),
    [
        ("pytest tests/test_a.py", ("pytest tests/test_a.py", "1 passed"), True),
        ("cd /p && pytest tests/test_a.py 2>&1", ("pytest tests/test_a.py | tail -5", "1 passed"), True),
        ("pytest tests/test_a.py", ("pytest", "9 passed"), True),
        ("pytest", ("pytest tests/test_a.py", "1 passed"), False),
        ("pytest tests/test_a.py", ("pytest tests/test_b.py", "1 passed"), False),
        ("pytest tests/test_a.py", ("pytest tests/test_a.py", FAILED), False),
        ("make", ("make", "[watch] build finished"), True),
        ("go test ./a -run X", ("go test ./a", "ok  \tx/a\t0.1s"), True),
        ("go test ./a", ("go build ./a", "successfully built"), False),
    ],
)
def test_an_error_is_fixed_when_the_same_thing_passes_later(
    first: str, later: tuple[str, str], fixed: bool
) -> None:
    facts = errors.collect(uses(run((first, FAILED), later)))
    assert facts[0].fixed is fixed
    assert facts[0].text == "E       KeyError: 'user'"


def test_one_error_with_other_numbers_is_one_error() -> None:
    one = "Exit code 1\nMemoryError: at 0x7f3a in /tmp/abc/x.py after 3 ms"
    two = "Exit code 1\nMemoryError: at 0x99ff in /tmp/zzz/x.py after 14 ms"
    (fact,) = errors.collect(uses(run(("make", one), ("make", two))))
    assert (fact.uses, fact.text, fact.source) == (2, two.split("\n")[1], "make")


def test_an_edit_that_failed_is_fixed_when_the_file_is_edited() -> None:
    edit = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
    miss = "<tool_use_error>String to replace not found in file.</tool_use_error>"
    (fact,) = errors.collect(uses(run((edit, miss, True), (edit, "done"), name="Edit")))
    assert (fact.text, fact.source, fact.fixed) == ("String to replace not found in file.", "Edit a.py", True)
    (fact,) = errors.collect(uses(run((edit, miss, True), name="Edit")))
    assert not fact.fixed


def test_errors_of_two_ranges() -> None:
    old = errors.collect(
        uses(run(("make", "Exit code 1\nerror: boom"), ("npm test", "Exit code 1\nerror: bang")))
    )
    new = errors.collect(uses(run(("npm test", "Exit code 1\nerror: bang"), start=5)))
    merged = errors.merge(old, new, passed=["make 2>&1"])
    assert [(fact.text, fact.fixed, fact.uses) for fact in merged] == [
        ("error: boom", True, 1),
        ("error: bang", False, 2),
    ]
    assert errors.merge(merged, new) == merged


def test_commands_that_only_set_the_scene() -> None:
    assert not commands.is_notable("FOO=1")
    assert errors.runner("cd x && export A=1") == ("", frozenset())
    assert errors.runner("cd x && npm run test -- --fast") == ("npm run test", frozenset({"--", "--fast"}))
    assert errors.runner("pytest -q tests/a.py") == ("pytest", frozenset({"-q", "tests/a.py"}))


def test_a_command_without_an_answer_is_not_run_yet() -> None:
    entries = run(("make", "done"))[:1]
    assert commands.collect(uses(entries)) == ()
    assert errors.collect(uses(entries)) == ()
    assert commands.judge(uses(entries)[0]) == (None, "")


def test_a_failed_call_without_words_is_no_error() -> None:
    assert errors.collect(uses(run(("make", "", True)))) == ()
    assert (
        errors.collect(uses(run(({"query": "x"}, "Error: no index", True), name="Deploy")))[0].source
        == "Deploy"
    )


def test_a_count_of_problems_is_neither_success_nor_failure() -> None:
    [fact] = commands.collect(uses(run(("python check.py", "a.py:19 no hint\n3 problems", False))))
    assert (fact.passed, fact.outcome) == (None, "3 problems")
    assert commands.is_verdict(fact.outcome)
