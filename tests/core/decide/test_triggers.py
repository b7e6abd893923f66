import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.triggers import decision

from foldline.core.decide.breaker import STRIKES, BreakerState
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS
from foldline.core.decide.triggers import (
    Compact,
    Refuse,
    StartDraft,
    Stay,
    counts,
    thresholds,
)
from foldline.core.measure.overflow import fitting_output
from foldline.core.measure.window import Amount, Floor, Window

WINDOW = Window(100_000, output=8_000)
PLAIN = Policy(name="plain", reserve=Amount(tokens=10_000), hard=Amount(fraction=1.0, of="usable"))
SOFT = msgspec.structs.replace(PLAIN, soft=Amount(fraction=0.5, of="usable"), background=True)
OPEN = BreakerState(strikes=STRIKES)


def at(size, policy=PLAIN, moment="turn_start", **more):
    return decision(size, WINDOW, policy, moment, **more)


def test_a_trigger_fires_above_its_threshold_not_at_it():
    assert at(90_000) == Stay("below", "turn_start", 90_000, usable=90_000, threshold=90_000)
    assert at(90_001) == Compact("threshold", "turn_start", 90_001, usable=90_000, threshold=90_000)


def test_the_soft_trigger_drafts_and_the_hard_one_compacts():
    assert at(45_000, SOFT).threshold == 45_000
    assert isinstance(at(45_000, SOFT), Stay)
    assert at(45_001, SOFT) == StartDraft("turn_start", 45_001, usable=90_000, threshold=45_000)
    assert isinstance(at(90_000, SOFT), StartDraft)
    assert at(90_001, SOFT) == Compact("threshold", "turn_start", 90_001, 90_000, 90_000)


def test_a_soft_trigger_without_background_or_compaction_does_nothing():
    assert at(60_000, msgspec.structs.replace(SOFT, background=False)).why == "below"
    assert at(60_000, msgspec.structs.replace(SOFT, enable_compaction=False)).why == "below"


def test_no_trigger_lies_above_usable():
    loose = msgspec.structs.replace(PLAIN, hard=Amount(tokens=500_000))
    assert thresholds(loose, WINDOW).hard == 90_000
    assert isinstance(at(90_001, loose), Compact)


@pytest.mark.parametrize("context", [90_001, 100_000])
def test_a_context_that_fits_changes_nothing_of_what_a_policy_sees(context):
    assert at(80_000, context=context) == at(80_000)


def test_a_context_above_the_input_limit_is_compacted_though_the_policy_sees_less():
    assert at(80_000, context=100_001) == Compact("threshold", "turn_start", 100_001, 90_000, 100_000)
    assert at(95_000, context=100_001) == at(95_000), "the policy's own trigger says so already"
    assert at(50_000, SOFT, context=100_001) == Compact("threshold", "turn_start", 100_001, 90_000, 100_000)
    assert isinstance(at(80_000, context=100_001, floor=Floor(pins=91_000)), Refuse)
    assert at(80_000, context=100_001, breaker=OPEN).why == "breaker"
    assert at(80_000, context=100_001, new_messages=0).why == "nothing_new"


def test_a_policy_is_asked_about_the_whole_context_only_where_it_looks_at_it():
    for name, rules in PRESETS.items():
        moment = "turn_start" if "turn_start" in rules.check_at else "after_reply"
        found = decision(1_000, WINDOW, rules, moment, context=200_000)
        assert isinstance(found, Compact) == (name not in ("coop", "moldable", "amp")), name


@pytest.mark.parametrize("moment", ["turn_start", "after_reply", "after_tools", "before_smaller_window"])
def test_only_the_moments_of_the_policy_count(moment):
    policy = msgspec.structs.replace(PLAIN, check_at=(moment,))
    for other in ("turn_start", "after_reply", "after_tools", "before_smaller_window"):
        decision = at(95_000, policy, other)
        assert isinstance(decision, Compact) == (other == moment)
        if other != moment:
            assert decision.why == "moment"


def test_append_stands_for_every_moment_that_follows_one():
    policy = msgspec.structs.replace(PLAIN, check_at=("append",))
    assert [
        m
        for m in ("turn_start", "after_reply", "after_tools", "append", "before_smaller_window")
        if counts(policy, m)
    ] == ["turn_start", "after_reply", "after_tools", "append"]


def test_a_switch_to_a_smaller_window_is_named_as_the_reason():
    assert at(95_000, moment="before_smaller_window").reason == "model_switch"
    assert at(95_000, moment="before_smaller_window", new_messages=0).reason == "model_switch"


def test_a_disabled_policy_stays_on_overflow_too_unless_told_otherwise():
    off = msgspec.structs.replace(PLAIN, enabled=False)
    assert at(95_000, off).why == "disabled"
    assert at(95_000, off, "overflow").why == "disabled"
    enabled = msgspec.structs.replace(off, on_overflow=True)
    assert at(95_000, enabled).why == "disabled"
    assert at(95_000, enabled, "overflow") == Compact("overflow", "overflow", 95_000, 90_000)


def test_overflow_can_be_switched_off_alone():
    policy = msgspec.structs.replace(PLAIN, on_overflow=False)
    assert isinstance(at(95_000, policy), Compact)
    assert at(95_000, policy, "overflow").why == "disabled"


def test_nothing_starts_where_neither_pruning_nor_compaction_is_allowed():
    neither = msgspec.structs.replace(PLAIN, enable_pruning=False, enable_compaction=False)
    assert at(95_000, neither).why == "disabled"
    assert at(95_000, neither, "overflow").why == "disabled"
    assert isinstance(at(95_000, msgspec.structs.replace(neither, enable_pruning=True)), Compact)


def test_sub_agents_skip_thresholds_but_not_overflow():
    assert at(95_000, by_subagent=True).why == "subagent"
    assert at(60_000, SOFT, by_subagent=True).why == "subagent"
    assert isinstance(at(95_000, moment="overflow", by_subagent=True), Compact)


def test_an_overflow_needs_no_threshold_no_moment_and_no_minimum():
    policy = Policy(name="p", check_at=(), min_messages=10)
    assert at(5, policy).why == "never"
    assert isinstance(at(5, policy, "overflow", messages=1, new_messages=0), Compact)


def test_too_few_messages_stay():
    policy = msgspec.structs.replace(PLAIN, min_messages=10)
    assert at(95_000, policy, messages=9).why == "few_messages"
    assert isinstance(at(95_000, policy, messages=10), Compact)


def test_nothing_said_since_the_last_boundary_is_a_no_op():
    assert at(95_000, new_messages=0).why == "nothing_new"
    assert isinstance(at(95_000, new_messages=1), Compact)


def test_a_floor_above_usable_is_refused_with_its_breakdown():
    floor = Floor(system=60_000, tools=30_001)
    refused = at(95_000, floor=floor)
    assert refused == Refuse(
        "threshold", "turn_start", 95_000, 90_000, 90_001, {"system": 60_000, "tools": 30_001}, 90_000
    )
    assert isinstance(at(95_000, floor=Floor(system=90_000)), Compact)
    assert at(95_000, moment="overflow", floor=Floor(pins=90_001)).breakdown == {"pins": 90_001}
    assert isinstance(at(60_000, SOFT, floor=Floor(pins=90_001)), Refuse)
    assert isinstance(at(80_000, floor=Floor(pins=90_001)), Stay), (
        "nothing was asked for, so nothing is refused"
    )
    assert isinstance(at(95_000, floor=Floor(pins=90_001), breaker=OPEN), Refuse)


def test_an_open_breaker_holds_back_thresholds_and_drafts_but_not_overflow():
    assert at(95_000, breaker=OPEN).why == "breaker"
    assert at(60_000, SOFT, breaker=OPEN).why == "breaker"
    assert isinstance(at(95_000, moment="overflow", breaker=OPEN), Compact)
    spent = BreakerState(strikes=STRIKES, overflow_strikes=STRIKES)
    assert at(95_000, moment="overflow", breaker=spent).why == "breaker"


def test_the_model_picks_its_limit():
    policy = msgspec.structs.replace(PLAIN, limits={"small": 1_000})
    assert at(1_001, policy, model="openai:small-2").threshold == 1_000
    assert isinstance(at(1_001, policy, model="openai:small-2"), Compact)
    assert isinstance(at(1_001, policy), Stay)


@given(
    st.sampled_from(list(PRESETS.values())),
    st.integers(0, 300_000),
    st.integers(0, 300_000),
    st.sampled_from(
        ["turn_start", "after_reply", "after_tools", "append", "before_smaller_window", "overflow"]
    ),
)
def test_a_larger_size_never_calls_for_less(policy, size, more, moment):
    order = (Stay, StartDraft, Compact)
    first = decision(size, WINDOW, policy, moment)
    then = decision(size + more, WINDOW, policy, moment)
    assert order.index(type(then)) >= order.index(type(first))


@given(st.sampled_from(list(PRESETS.values())), st.integers(1_000, 2_000_000), st.integers(0, 200_000))
def test_every_view_larger_than_usable_is_compacted_by_every_preset_that_acts(policy, context, output):
    window = Window(context, output=output)
    usable = thresholds(policy, window).usable
    assert 0 < usable <= window.input_limit
    moment = policy.check_at[0] if policy.check_at else "turn_start"
    found = decision(usable + 1, window, policy, moment)
    assert isinstance(found, Compact) == (policy.hard is not None)


def test_a_smaller_output_is_offered_where_the_request_then_fits():
    window = Window(200_000, input=200_000, output=64_000)
    assert fitting_output(150_000, window, 64_000) == 50_000
    assert fitting_output(130_000, window, 64_000) is None, "it fits as it is"
    assert fitting_output(199_500, window, 64_000) is None, "too little is left for an answer"
    assert fitting_output(190_000, Window(200_000, input=180_000), 64_000) is None, "the input is too large"
