from __future__ import annotations

import pytest
from tests.cli.calling import SESSION, talk, write_lines

from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import preset
from foldline.errors import InputError
from foldline.lab.rounds import CHANGE_AT, RULES, SETTINGS
from foldline.lab.run import ReplaySetup, replay_file

NONE = Policy(name="none", enabled=False)


@pytest.fixture(scope="module")
def rounds():
    report = replay_file(str(SESSION), ReplaySetup((NONE, preset("foldline"), preset("pi")), rounds=5))
    return {one.policy: one.rounds for one in report.policies}


def test_what_never_folds_has_no_rounds(rounds):
    assert rounds["none"] is None


@pytest.mark.parametrize("name", ["foldline", "pi"])
def test_planted_rules_survive_every_round(rounds, name):
    found = rounds[name]
    assert [one["round"] for one in found] == [1, 2, 3, 4, 5]
    assert [one["rules"] for one in found] == [len(RULES)] * 5


def test_replaced_settings_are_current_and_never_stale(rounds):
    for one in rounds["foldline"]:
        assert one["settings"] == len(SETTINGS)
        assert one["stale"] == 0
    assert len(rounds["foldline"]) > CHANGE_AT


def test_a_round_folds_to_a_tenth_of_what_was_said(rounds):
    sizes = [one["said_tokens"] for one in rounds["foldline"]]
    assert sizes == sorted(sizes)
    for one in rounds["foldline"]:
        assert one["view_tokens"] <= one["target"] or "problem" in one
        assert 0 <= one["first_names"] <= 1
    assert rounds["foldline"][-1]["retention"] is None
    assert rounds["foldline"][0]["retention"]["handle"] > 0


def test_a_session_too_short_for_its_rounds_is_told(tmp_path):
    short = str(write_lines(tmp_path / "short.jsonl", talk("one", "two", "three")))
    with pytest.raises(InputError, match="too short for 5 rounds"):
        replay_file(short, ReplaySetup((preset("foldline"),), rounds=5))
