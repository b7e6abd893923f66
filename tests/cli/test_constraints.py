"""`foldline constraints`: each rule with its place, and what ended it."""

from __future__ import annotations

import json

import pytest
from tests.cli.calling import SESSION, talk, write_lines

RULES = (
    "Never push to main. Use tabs.",
    "Done.",
    "You may now push to main. Port 8080 must stay free for the proxy.",
    "Done.",
    "Change of plan: use spaces. Change of plan: use port 9090.",
    "Done.",
    "My key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ, never print it.",
)


@pytest.fixture
def file(tmp_path):
    return write_lines(tmp_path / "rules.jsonl", talk(*RULES))


def test_each_rule_stands_with_its_message_and_what_ended_it(file, foldline):
    found = foldline("constraints", file)
    assert found.code == 0
    lines = found.out.splitlines()
    assert [line.split("  ")[-1] for line in lines] == [
        "Standing: 5",
        "You may now push to main.",
        "Port 8080 must stay free for the proxy.",
        "Change of plan: use spaces.",
        "Change of plan: use port 9090. (stated later: overrides the rules above where they differ)",
        "My key is [redacted: Anthropic key], never print it.",
        "Lifted or replaced: 2",
        "Never push to main.",
        "You may now push to main.",
        "Use tabs.",
        "Change of plan: use spaces.",
    ]
    assert lines[1].startswith("message 2 ")
    assert lines[8].split()[:3] == ["lifted", "message", "2"]
    assert lines[10].split()[:3] == ["replaced", "message", "4"]


def test_json_has_the_places_and_what_ended_a_rule(file, foldline):
    found = foldline("constraints", file, "--json").json
    assert [rule["message"] for rule in found["standing"]] == [2, 2, 4, 4, 6]
    assert [rule["later"] for rule in found["standing"]] == [False, False, False, True, False]
    ended = [(rule["text"], rule["message"], rule["how"], rule["by"]["message"]) for rule in found["ended"]]
    assert ended == [("Never push to main.", 0, "lifted", 2), ("Use tabs.", 0, "replaced", 4)]


def test_a_stored_session_says_the_same_as_its_file(file, foldline):
    foldline("import", file, "--id", "rules")
    stored = foldline("constraints", "rules", "--json").json
    read = foldline("constraints", file, "--json").json
    assert [rule["text"] for rule in stored["standing"]] == [rule["text"] for rule in read["standing"]]
    assert [rule["how"] for rule in stored["ended"]] == ["lifted", "replaced"]


def test_a_file_that_was_folded_still_tells_the_rules_that_are_folded_away(tmp_path, foldline):
    foldline("import", SESSION, "--id", "whole")
    whole = foldline("constraints", "whole", "--json").json["standing"]
    foldline("export", "whole", "--format", "jsonl", "-o", tmp_path / "own.jsonl")
    assert foldline("constraints", tmp_path / "own.jsonl", "--json").json["standing"] == whole


def test_a_session_without_rules_and_wrong_calls(tmp_path, foldline):
    plain = write_lines(tmp_path / "plain.jsonl", talk("Please fix the page.", "Done."))
    assert foldline("constraints", plain).out.strip() == "The user stated no standing rule."
    missing = foldline("constraints", "nobody")
    assert (missing.code, missing.out) == (2, "")
    assert "no session 'nobody'" in missing.err
    odd = tmp_path / "odd.txt"
    odd.write_text("no session", encoding="utf-8")
    failed = foldline("constraints", odd, "--json")
    assert failed.code == 2
    assert json.loads(failed.out)["error"]["exit_code"] == 2
