from __future__ import annotations

from tests.cli.calling import EXAMPLES
from tests.support.recordings import GOOD, TOO_FEW, with_rules


def test_sessions_that_go_well(foldline):
    done = foldline("check", GOOD, EXAMPLES / "research.jsonl", "--window", 20_000, "--jobs", 1)
    assert (done.code, done.out) == (0, "2 sessions, 0 failed, under foldline\n")
    assert foldline("check", EXAMPLES / "res*.jsonl", "--json").json == {
        "sessions": 1,
        "policies": ["foldline"],
        "problems": [],
        "failed": [],
    }


def test_each_problem_is_a_line_and_the_exit_code_is_1(foldline):
    done = foldline("check", GOOD, "--window", 20_000, "--policy", "pi,amp")
    assert done.code == 1
    assert done.out.splitlines() == [
        f"failed: {GOOD}: policy amp, request 25: the window is exceeded: 20,204 tokens, the limit is 20,000",
        "1 session, 1 failed, under pi, amp",
    ]


def test_problems_as_json(foldline, tmp_path):
    file = with_rules(tmp_path / "rules.jsonl")
    done = foldline("check", file, "--window", TOO_FEW, "--json")
    assert done.code == 1
    first = done.json["problems"][0]
    assert first["text"].startswith("Never change the file src/legacy/")
    assert {key: first[key] for key in ("session", "policy", "kind")} == {
        "session": str(file),
        "policy": "foldline",
        "kind": "lost_rule",
    }


def test_a_file_that_cannot_be_replayed_fails(foldline, tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"not": "a session"}')
    done = foldline("check", other, GOOD, "--jobs", 1)
    assert done.code == 1
    assert f"failed: {other}" in done.out
    assert done.out.endswith("2 sessions, 1 failed, under foldline\n")


def test_mistakes_of_the_call(foldline):
    assert foldline("check", GOOD, "--policy", "foldlin").code == 2
    assert foldline("check", "*.nothing").code == 2
    assert foldline("check", GOOD, "--policy", ",").code == 2


def test_an_empty_name_is_no_policy(foldline, monkeypatch):
    monkeypatch.setenv("FOLDLINE_POLICY", "amp")
    assert foldline("check", GOOD, "--policy", "pi,", "--json").json["policies"] == ["pi"]
