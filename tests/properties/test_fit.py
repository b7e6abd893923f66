"""Folding a list without a log: budgets, validity, repair, and folding again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs import CONSTRAINTS, any_messages, as_messages

import foldline
from foldline.core.decide.presets import PRESETS
from foldline.dialects import get

policies = st.sampled_from([*PRESETS])


def fit(payloads, **options):
    try:
        return foldline.compact(payloads, **options)
    except foldline.FloorExceeded as error:
        refused = error
    assert refused.floor > refused.budget
    return None


@given(made=any_messages, policy=policies, target=st.integers(150, 3_000))
def test_what_comes_out_is_valid_and_fits(made, policy, target):
    dialect, payloads = made
    done = fit(payloads, target=target, policy=policy, dialect=dialect)
    if done is None:
        return
    assert done.view_tokens == done.receipt.tokens_after <= target
    assert get(dialect).validate(done.messages, done.system) == [] or not done.messages


@given(made=any_messages, policy=policies, target=st.integers(150, 3_000))
def test_folding_twice_in_a_row_changes_nothing(made, policy, target):
    dialect, payloads = made
    done = fit(payloads, target=target, policy=policy, dialect=dialect)
    if done is None or not done.messages:
        return
    again = foldline.compact(done.messages, target=target, policy=policy, dialect=dialect, system=done.system)
    assert again.messages == done.messages
    assert again.cut is None
    assert again.summary is None


def _may_be_made(message):
    """Whether a message may be written for the view: a note, or a result that was never given."""
    return message.get("role") in ("tool", "user") or str(message.get("type")).endswith("_output")


@given(made=any_messages, policy=policies, target=st.integers(150, 3_000))
def test_kept_messages_equal_the_input(made, policy, target):
    dialect, payloads = made
    done = fit(payloads, target=target, policy=policy, dialect=dialect)
    if done is None or done.boundary is None:
        return
    edited = {edit.entry for edit in done.boundary.edits}
    if not edited and done.cut and done.cut["first_kept"] is not None:
        kept = payloads[done.cut["first_kept"] :]
        same = sum(message in kept for message in done.messages)
        assert same >= len(done.messages) - 4 - sum(map(_may_be_made, done.messages))


@given(made=any_messages)
def test_a_valid_list_that_fits_comes_back_unchanged(made):
    dialect, payloads = made
    first = foldline.compact(payloads, target=1_000_000, dialect=dialect)
    assert first.summary is None
    if get(dialect).validate(payloads) == []:
        assert first.messages == payloads
        assert first.receipt.tokens_before == first.receipt.tokens_after


@given(made=any_messages)
def test_an_invalid_list_that_fits_is_only_repaired(made):
    dialect, payloads = made
    done = foldline.compact(payloads, target=1_000_000, dialect=dialect)
    assert done.cut is None
    assert done.messages == [] or get(dialect).validate(done.messages, done.system) == []
    orphans = done.receipt.dropped.get("orphans", [])
    for orphan in orphans:
        assert 0 <= orphan["index"] < len(payloads)


@given(made=any_messages, policy=policies)
def test_constraints_survive_ten_folds_of_a_growing_list(made, policy):
    dialect, payloads = made
    messages = [{"role": "user", "content": f"Please fix the login. {CONSTRAINTS[0]}"}, *payloads]
    for round_ in range(10):
        messages = [
            *messages,
            {"role": "assistant", "content": f"round {round_}: " + "looked at the page " * 40},
            {"role": "user", "content": f"and now step {round_}?"},
        ]
        done = fit(messages, target=900, policy=policy, dialect=dialect)
        if done is None:
            return
        messages = done.messages
        assert CONSTRAINTS[0] in str(messages)


LAUNCHES = {
    "command": [
        (
            "user",
            "<command-message>work</command-message>\n<command-name>/work</command-name>\n<command-args>"
            + "all of it, please " * 60
            + "</command-args>",
        )
    ],
    "skill": [("skill", {"skill": "work"}), ("results", "Launching skill: work")],
}


@pytest.mark.parametrize("launch", LAUNCHES)
@pytest.mark.parametrize("policy", PRESETS)
def test_the_text_of_a_command_or_a_skill_states_no_rule_wherever_a_list_is_cut(policy, launch):
    work = [("assistant", "looked at the page " * 20)]
    for behind in range(13):
        text = ("user", "# Work\n\nNever write code.")
        script = [("user", "look"), *work * 24, *LAUNCHES[launch], text, *work * behind, ("user", "and now?")]
        messages = as_messages("openai-chat", script)
        for _ in range(2):
            done = fit(messages, target=2_000, policy=policy)
            if done is None:
                break
            assert done.ledger is None or not done.ledger.constraints
            messages = [*done.messages, *as_messages("openai-chat", [("assistant", "ok"), ("user", "go on")])]
