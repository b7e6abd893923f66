"""Recorded sessions checked in one's own tests."""

from __future__ import annotations

import pytest
from tests.cli.calling import EXAMPLES, talk, write_lines
from tests.support.live import policy_with
from tests.support.recordings import GOOD, RULE, TOO_FEW, with_bad_image, with_rules

from foldline.core.decide.presets import PRESETS
from foldline.errors import FormatError, InputError, PolicyError
from foldline.testing import SessionProblem, assert_view_valid, check_session

POLICIES = [name for name in PRESETS if ":" not in name and name != "amp"]


@pytest.fixture(autouse=True)
def without_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_the_example_goes_well_under_every_policy_that_folds(policy):
    assert check_session(GOOD, window=20_000, policy=policy) == []


@pytest.mark.parametrize("name", ["research.jsonl", "support-chat.json"])
def test_other_examples_go_well(name):
    assert check_session(EXAMPLES / name, window=9_000) == []


def test_a_window_that_is_exceeded_is_told_once_with_its_first_request():
    (found,) = check_session(str(GOOD), window=20_000, policy="amp")
    assert (found.policy, found.request, found.kind) == ("amp", 25, "window_exceeded")
    assert str(found) == (
        f"{GOOD}: policy amp, request 25: the window is exceeded: 20,204 tokens, the limit is 20,000"
    )


def test_the_window_is_the_files_own_unless_one_is_named():
    assert check_session(GOOD, policy="amp") == []


def test_a_lost_rule_is_told_word_for_word(tmp_path):
    found = check_session(with_rules(tmp_path / "s.jsonl"), window=TOO_FEW, policy=policy_with())
    assert {one.kind for one in found} == {"lost_rule"}
    assert {one.text for one in found} < {RULE.format(n) for n in range(80)}
    assert len({one.text for one in found}) == len(found)
    assert RULE.format(0) in {one.text for one in found}
    assert "a rule of the user is missing from the view: Never change the file" in str(found[0])


def test_rules_that_have_room_are_kept(tmp_path):
    assert check_session(with_rules(tmp_path / "s.jsonl"), window=9_000) == []


def test_a_rule_with_a_secret_is_kept_without_it(tmp_path):
    rule = "Never use the key sk-proj-4f9Qm2Lk8Zt1Vb6Nw3Xc7Rd5Yh0Jg2PsTa9Ue4Mi in production."
    said = talk(rule, *(f"About part {n}." for n in range(39)), long=200)
    file = write_lines(tmp_path / "s.jsonl", said)
    assert check_session(file, window=6_000) == []


def test_a_rule_that_the_user_lifted_is_not_missed(tmp_path):
    said = talk(
        "Never push to main.",
        "Fine.",
        "You may now push to main.",
        *("More of it." for _ in range(40)),
        long=200,
    )
    assert check_session(write_lines(tmp_path / "s.jsonl", said), window=6_000) == []


@pytest.mark.parametrize(("policy", "window"), [("foldline", None), ("pi", 3_000)])
def test_an_invalid_view_is_told_with_the_rule_of_the_api(tmp_path, policy, window):
    (found,) = check_session(with_bad_image(tmp_path / "s.jsonl"), policy=policy, window=window)
    assert found.kind == "invalid_view"
    assert "image/jpeg" in found.text
    assert isinstance(found, SessionProblem)


def test_the_settings_have_their_say(tmp_path):
    (tmp_path / ".foldline").mkdir()
    (tmp_path / ".foldline" / "settings.toml").write_text(
        'window = 20000\npolicy = "mine"\n[policies.mine]\nbase = "amp"\n', encoding="utf-8"
    )
    (found,) = check_session(GOOD)
    assert (found.policy, found.request) == ("mine", 25)


def test_what_cannot_be_replayed_raises(tmp_path):
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises((FormatError, InputError)):
        check_session(tmp_path / "empty.json")
    with pytest.raises(InputError):
        check_session(tmp_path / "missing.json")
    with pytest.raises(PolicyError, match="did you mean"):
        check_session(GOOD, policy="foldlin")


def test_a_view_that_is_valid_and_one_that_is_not():
    assert_view_valid([{"role": "user", "content": "Hi"}], "anthropic", system="Be kind.")
    with pytest.raises(AssertionError, match=r"(?s)invalid for anthropic:\nmessage 0: .*\(text-empty\)"):
        assert_view_valid([{"role": "user", "content": [{"type": "text", "text": ""}]}], "anthropic")
