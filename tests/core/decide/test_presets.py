"""Each preset against the behaviour of the system it comes from."""

import msgspec
import pytest
from tests.support.triggers import decision

from foldline.core.decide.policy import Keep, Policy, summary_cap, usable_of
from foldline.core.decide.presets import PRESETS, preset, resolve
from foldline.core.decide.triggers import Compact, StartDraft, Stay, thresholds
from foldline.core.measure.window import Amount, Window
from foldline.errors import PolicyError
from foldline.policies import changed

SONNET = Window(200_000, output=8_192)
SMALL = Window(32_768, output=4_096)
MOMENTS = ("turn_start", "after_reply", "after_tools", "before_smaller_window", "append")


def test_there_are_ten_presets_and_three_tunings():
    assert list(PRESETS) == [
        "foldline",
        "coop",
        "klaude",
        "gencode",
        "gencode:low-cost",
        "gencode:balanced",
        "gencode:high-quality",
        "moldable",
        "pi",
        "claude-code",
        "codex",
        "opencode",
        "amp",
    ]
    assert all(preset(name).name == name and preset(name).summary for name in PRESETS)


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(
        PolicyError, match=r"no policy 'coup' \(did you mean 'coop'\?\); there are foldline, coop, .*, amp"
    ):
        preset("coup")


def test_presets_are_plain_data():
    for policy in PRESETS.values():
        assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(policy)), Policy) == policy


@pytest.mark.parametrize(
    ("name", "window", "model", "threshold"),
    [
        ("foldline", SONNET, None, 100_000),
        ("coop", SONNET, None, 170_000),
        ("coop", Window(1_000_000), None, 970_000),
        ("klaude", SONNET, None, 200_000 - 16_384),
        ("klaude", SMALL, None, 32_768 - 8_192),
        ("gencode", SONNET, None, 191_808),
        ("gencode", Window(128_000, output=4_096), None, 123_904),
        ("gencode", Window(200_000, output=64_000), None, 168_000),
        ("moldable", SONNET, None, 150_000),
        ("moldable", Window(128_000), None, 96_000),
        ("pi", SONNET, None, 183_616),
        ("claude-code", SONNET, None, 190_000),
        ("codex", SONNET, "o4-mini", 180_000),
        ("codex", Window(272_000), "openai:gpt-5-codex", 244_000),
        ("codex", Window(400_000), "openai:something-else", 380_000),
        ("codex", Window(272_000), None, 258_400),
        ("codex", Window(100_000), "o3", 95_000),
        ("opencode", SONNET, None, 191_808),
        ("opencode", Window(200_000, output=64_000), None, 136_000),
    ],
)
def test_a_preset_compacts_above_its_threshold_not_at_it(name, window, model, threshold):
    policy = preset(name)
    moment = policy.check_at[0]
    at = decision(threshold, window, policy, moment, model=model)
    above = decision(threshold + 1, window, policy, moment, model=model)
    assert not isinstance(at, Compact)
    assert isinstance(above, Compact)


@pytest.mark.parametrize(
    ("name", "moments"),
    [
        ("foldline", {"turn_start", "after_reply", "after_tools", "before_smaller_window"}),
        ("coop", {"turn_start"}),
        ("klaude", {"turn_start", "after_tools"}),
        ("gencode", {"turn_start", "after_reply", "after_tools", "append"}),
        ("moldable", {"turn_start"}),
        ("pi", {"after_reply"}),
        ("claude-code", {"turn_start", "after_tools"}),
        ("codex", {"turn_start", "after_tools"}),
        ("opencode", {"turn_start", "after_tools"}),
        ("amp", set()),
    ],
)
def test_a_preset_looks_at_a_full_window_at_its_moments(name, moments):
    full = {m: decision(10**9, SONNET, preset(name), m) for m in MOMENTS}
    assert {m for m, decision in full.items() if isinstance(decision, Compact)} == moments


@pytest.mark.parametrize(
    ("name", "large", "small", "rule"),
    [
        ("foldline", 18_361, 2_785, "turn"),
        ("coop", 20_000, 20_000, "user_or_plain_assistant"),
        ("klaude", 20_000, 11_468, "not_result"),
        ("pi", 20_000, 20_000, "user"),
    ],
)
def test_a_preset_keeps_so_many_tokens_from_a_place_that_its_rule_allows(name, large, small, rule):
    policy = preset(name)
    kept = [policy.keep.amount.resolve(window, usable_of(policy, window)) for window in (SONNET, SMALL)]
    assert (*kept, policy.cut_rule) == (large, small, rule)


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("coop", {"summary_prompt": "checkpoint", "summary_role": "user", "thinking_in_transcript": False}),
        ("klaude", {"summary_role": "user", "ack": None}),
        ("gencode", {"keep": Keep(messages=10), "summary_prompt": "continuation", "summary_role": "system"}),
        ("gencode", {"prune_minimum": Amount(tokens=20_000), "prune_protect": Amount(tokens=40_000)}),
        ("gencode", {"summary_tokens": Amount(tokens=1_500)}),
        ("moldable", {"keep": Keep(messages=10, message_fraction=0.3), "versions": True}),
        ("moldable", {"summary_prompt": "handoff", "summary_tokens": Amount(tokens=2_000)}),
        ("pi", {"cross_boundary": False, "summary_prompt": "handoff"}),
        ("claude-code", {"keep": Keep(), "quote_user_tokens": 0, "summary_prompt": "detailed"}),
        ("codex", {"keep": Keep(), "quote_user_tokens": 20_000, "summary_position": "after"}),
        ("opencode", {"keep": Keep(), "continuation": "Continue if you have next steps."}),
        ("amp", {"keep": Keep(), "summary_prompt": "handoff", "enable_compaction": True}),
    ],
)
def test_a_preset_keeps_and_tells_what_its_original_does(name, fields):
    assert {field: getattr(preset(name), field) for field in fields} == fields


@pytest.mark.parametrize(
    ("tuning", "minimum", "protect"),
    [("low-cost", 10_000, 20_000), ("balanced", 20_000, 40_000), ("high-quality", 30_000, 60_000)],
)
def test_tunings_of_gencode_differ_in_what_they_prune_alone(tuning, minimum, protect):
    tuned = preset(f"gencode:{tuning}")
    assert tuned == msgspec.structs.replace(
        preset("gencode"),
        name=tuned.name,
        summary=tuned.summary,
        prune_minimum=Amount(tokens=minimum),
        prune_protect=Amount(tokens=protect),
    )


def test_moldable_never_compacts_under_ten_messages():
    policy = preset("moldable")
    assert decision(199_000, SONNET, policy, "turn_start", messages=9).why == "few_messages"
    assert isinstance(decision(199_000, SONNET, policy, "turn_start", messages=10), Compact)


def test_pi_hands_off_within_four_fifths_of_the_reserve():
    policy = preset("pi")
    assert summary_cap(policy, SONNET, usable_of(policy, SONNET)) == 16_384 * 8 // 10
    tuned = changed(policy, {"reserve": 8_192})
    assert summary_cap(tuned, SONNET, usable_of(tuned, SONNET)) == 6_553
    own = changed(policy, {"reserve": 32_768, "summary_tokens": 2_000})
    assert summary_cap(own, SONNET, usable_of(own, SONNET)) == 2_000


def test_amp_never_compacts_by_itself():
    assert decision(10**9, SONNET, preset("amp"), "turn_start").why == "never"
    assert decision(10**9, SONNET, preset("amp"), "overflow").why == "disabled"


def test_foldline_drafts_between_its_two_triggers():
    policy = preset("foldline")
    limits = thresholds(policy, SONNET)
    sizes = (limits.soft, limits.soft + 1, limits.hard, limits.hard + 1)
    found = [type(decision(size, SONNET, policy, "turn_start", messages=5)) for size in sizes]
    assert found == [Stay, StartDraft, StartDraft, Compact]


@pytest.mark.parametrize(
    ("context", "soft", "hard"), [(100_000, 66_300, 72_250), (1_000_000, 92_000, 100_000)]
)
def test_the_triggers_of_foldline_stay_where_a_large_window_grows(context, soft, hard):
    limits = thresholds(preset("foldline"), Window(context=context))
    assert (limits.soft, limits.hard) == (soft, hard)


@pytest.mark.parametrize(
    ("field", "large", "small"),
    [
        ("min_gain", 10_000, 2_785),
        ("prune_minimum", 15_000, 5_570),
        ("prune_protect", 15_000, 4_177),
        ("summary_tokens", 13_000, 5_570),
    ],
)
def test_budgets_of_foldline_shrink_with_the_window(field, large, small):
    policy = preset("foldline")
    found = [getattr(policy, field).resolve(window, usable_of(policy, window)) for window in (SONNET, SMALL)]
    assert found == [large, small]


class TestResolve:
    policy = Policy(
        name="mine",
        hard=Amount(fraction=0.5),
        limits={"gpt": 70_000, "gpt-5": 90_000},
        per_model={"claude-": {"min_messages": 3}, "claude-opus": {"keep": {"messages": 4}}},
    )

    def test_the_longest_prefix_wins(self):
        assert resolve(self.policy, "gpt-4", SONNET).hard == Amount(tokens=70_000)
        assert resolve(self.policy, "gpt-5.2", SONNET).hard == Amount(tokens=90_000)
        assert resolve(self.policy, "claude-opus-4-5", SONNET).keep == Keep(messages=4)
        assert resolve(self.policy, "claude-opus-4-5", SONNET).min_messages == 0
        assert resolve(self.policy, "claude-sonnet-4-5", SONNET).min_messages == 3

    @pytest.mark.parametrize("name", ["claude-x", "anthropic:claude-x", "openrouter:anthropic/claude-x"])
    def test_providers_and_vendors_in_front_do_not_matter(self, name):
        assert resolve(self.policy, name, SONNET).min_messages == 3

    def test_a_prefix_may_name_the_provider(self):
        policy = Policy(name="mine", per_model={"openai:": {"min_messages": 7}})
        assert resolve(policy, "openai:gpt-5", SONNET).min_messages == 7
        assert resolve(policy, "gpt-5", SONNET).min_messages == 0

    def test_other_models_and_none_leave_it_as_it_is(self):
        for model in ("llama", "", None):
            resolved = resolve(self.policy, model, SONNET)
            assert resolved == msgspec.structs.replace(self.policy, limits={}, per_model={})

    def test_resolving_twice_changes_nothing(self):
        once = resolve(self.policy, "gpt-5.2", SONNET)
        assert resolve(once, "gpt-5.2", SONNET) == once

    def test_changes_that_do_not_fit_are_refused(self):
        broken = Policy(name="mine", per_model={"x": {"min_messages": "many"}})
        with pytest.raises(PolicyError, match=r"'mine', per_model: .*min_messages"):
            resolve(broken, "x-1", SONNET)
