"""Each preset against the behaviour of the system it comes from."""

import msgspec
import pytest

from foldline.core.decide.policy import Keep, Policy, summary_cap, usable_of
from foldline.core.decide.presets import PRESETS, UNCAPPED, preset, resolve
from foldline.core.decide.triggers import Compact, StartDraft, Stay, decide, thresholds
from foldline.core.measure.window import Amount, Window
from foldline.errors import PolicyError
from foldline.policies import changed

SONNET = Window(200_000, output=8_192)
SMALL = Window(32_768, output=4_096)
MOMENTS = ("turn_start", "after_reply", "after_tools", "before_smaller_window", "append")


def moments(policy):
    """At which moments a full window compacts."""
    full = {m: decide(10**9, SONNET, policy, m, messages=50) for m in MOMENTS}
    return {m for m, decision in full.items() if isinstance(decision, Compact)}


def fires_above(policy, window, threshold, model=None):
    """At the threshold nothing happens, one token above it a compaction starts."""
    moment = policy.check_at[0]
    at = decide(threshold, window, policy, moment, messages=50, model=model)
    above = decide(threshold + 1, window, policy, moment, messages=50, model=model)
    return not isinstance(at, Compact) and isinstance(above, Compact)


def kept_tokens(policy, window):
    amount = policy.keep.amount
    return amount.resolve(window, usable_of(policy, window)) if amount else None


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


class TestCoop:
    policy = preset("coop")

    def test_compacts_30_000_tokens_before_the_end_at_turn_start_alone(self):
        assert fires_above(self.policy, SONNET, 170_000)
        assert fires_above(self.policy, Window(1_000_000), 970_000)
        assert moments(self.policy) == {"turn_start"}

    def test_keeps_20_000_tokens_from_a_user_message_or_a_plain_reply(self):
        assert kept_tokens(self.policy, SONNET) == 20_000
        assert self.policy.cut_rule == "user_or_plain_assistant"

    def test_shows_the_summary_as_a_user_message_that_is_acknowledged(self):
        assert (self.policy.summary_role, self.policy.summary_prompt) == ("user", "checkpoint")
        assert self.policy.ack
        assert self.policy.prefix == self.policy.suffix == self.policy.continuation == ""

    def test_lets_the_summariser_read_whole_results_but_no_thinking(self):
        assert self.policy.result_cap == UNCAPPED
        assert not self.policy.thinking_in_transcript
        assert not self.policy.enable_pruning


class TestKlaude:
    policy = preset("klaude")

    def test_reserves_16_384_tokens_or_a_quarter_of_a_small_window(self):
        assert fires_above(self.policy, SONNET, 200_000 - 16_384)
        assert fires_above(self.policy, SMALL, 32_768 - 8_192)
        assert fires_above(self.policy, Window(65_536), 65_536 - 16_384)

    def test_checks_before_every_step_of_the_loop(self):
        assert moments(self.policy) == {"turn_start", "after_tools"}

    def test_sub_agents_leave_thresholds_to_their_parent(self):
        stay = decide(199_000, SONNET, self.policy, "after_tools", messages=50, by_subagent=True)
        assert stay.why == "subagent"
        overflow = decide(199_000, SONNET, self.policy, "overflow", messages=50, by_subagent=True)
        assert isinstance(overflow, Compact)

    def test_keeps_20_000_tokens_or_35_percent_never_from_a_result_on(self):
        assert kept_tokens(self.policy, SONNET) == 20_000
        assert kept_tokens(self.policy, SMALL) == 11_468
        assert self.policy.cut_rule == "not_result"

    def test_says_that_the_past_was_compacted_and_lists_files_by_code(self):
        assert "compacted" in self.policy.prefix
        assert (self.policy.summary_role, self.policy.ack) == ("user", None)


class TestGencode:
    policy = preset("gencode")

    @pytest.mark.parametrize(
        ("window", "usable"),
        [
            (Window(200_000, output=8_192), 191_808),
            (Window(128_000, output=4_096), 123_904),
            (Window(1_000_000, output=8_192), 991_808),
            (Window(200_000, output=64_000), 168_000),
        ],
    )
    def test_usable_is_the_window_less_the_output_or_32_000(self, window, usable):
        assert usable_of(self.policy, window) == usable
        assert fires_above(self.policy, window, usable)

    def test_checks_on_every_append(self):
        assert moments(self.policy) == {"turn_start", "after_reply", "after_tools", "append"}

    def test_keeps_the_last_ten_messages_by_count(self):
        assert self.policy.keep == Keep(messages=10)
        assert self.policy.cut_rule == "any"

    def test_prunes_20_000_tokens_outside_the_newest_40_000(self):
        assert self.policy.enable_pruning
        assert self.policy.prune_minimum == Amount(tokens=20_000)
        assert self.policy.prune_protect == Amount(tokens=40_000)

    def test_writes_a_continuation_prompt_of_1_500_tokens_as_a_system_message(self):
        assert self.policy.summary_prompt == "continuation"
        assert self.policy.summary_tokens.resolve(SONNET) == 1_500
        assert self.policy.summary_role == "system"
        assert self.policy.prefix.startswith("[Earlier conversation")

    @pytest.mark.parametrize(
        ("tuning", "minimum", "protect"),
        [("low-cost", 10_000, 20_000), ("balanced", 20_000, 40_000), ("high-quality", 30_000, 60_000)],
    )
    def test_tunings_differ_in_what_they_prune_alone(self, tuning, minimum, protect):
        tuned = preset(f"gencode:{tuning}")
        assert tuned.prune_minimum.resolve(SONNET) == minimum
        assert tuned.prune_protect.resolve(SONNET) == protect
        assert tuned == msgspec.structs.replace(
            self.policy,
            name=tuned.name,
            summary=tuned.summary,
            prune_minimum=tuned.prune_minimum,
            prune_protect=tuned.prune_protect,
        )


class TestMoldable:
    policy = preset("moldable")

    def test_compacts_above_three_quarters_of_the_window_at_turn_start(self):
        assert fires_above(self.policy, SONNET, 150_000)
        assert fires_above(self.policy, Window(128_000), 96_000)
        assert moments(self.policy) == {"turn_start"}

    def test_never_compacts_under_ten_messages(self):
        assert decide(199_000, SONNET, self.policy, "turn_start", messages=9).why == "few_messages"
        assert isinstance(decide(199_000, SONNET, self.policy, "turn_start", messages=10), Compact)

    def test_keeps_ten_messages_or_three_in_ten(self):
        assert self.policy.keep == Keep(messages=10, message_fraction=0.3)
        assert self.policy.cut_rule == "any"

    def test_wraps_a_hand_off_of_2_000_tokens_and_numbers_it(self):
        assert self.policy.summary_prompt == "handoff"
        assert self.policy.summary_tokens.resolve(SONNET) == 2_000
        assert self.policy.prefix.startswith("[Conversation Context - Compacted]")
        assert self.policy.suffix == "---\nThe conversation continues below:"
        assert self.policy.versions
        assert self.policy.result_cap < 500, "names and outcomes, not full output"


class TestPi:
    policy = preset("pi")

    def test_compacts_16_384_tokens_before_the_end_after_a_reply(self):
        assert fires_above(self.policy, SONNET, 183_616)
        assert moments(self.policy) == {"after_reply"}

    def test_keeps_20_000_tokens_from_a_user_message_and_never_crosses_a_boundary(self):
        assert kept_tokens(self.policy, SONNET) == 20_000
        assert self.policy.cut_rule == "user"
        assert not self.policy.cross_boundary
        assert all(other.cross_boundary for name, other in PRESETS.items() if name != "pi")

    def test_hands_off_within_four_fifths_of_the_reserve(self):
        usable = usable_of(self.policy, SONNET)
        assert summary_cap(self.policy, SONNET, usable) == 16_384 * 8 // 10 == 13_107  # "~13107" of the plan
        for reserve, most in ((8_192, 6_553), (32_768, 26_214)):
            tuned = changed(self.policy, {"reserve": reserve})
            assert summary_cap(tuned, SONNET, usable_of(tuned, SONNET)) == most
        assert summary_cap(changed(self.policy, {"reserve": "10%"}), SONNET, 180_000) == 16_000
        own = changed(self.policy, {"reserve": 32_768, "summary_tokens": 2_000})
        assert summary_cap(own, SONNET, usable_of(own, SONNET)) == 2_000
        assert self.policy.summary_prompt == "handoff"
        assert self.policy.prefix.startswith("Another language model worked on this task")
        assert (self.policy.summary_role, self.policy.ack) == ("user", None)


class TestClaudeCode:
    policy = preset("claude-code")

    def test_compacts_at_95_percent_before_requests(self):
        assert fires_above(self.policy, SONNET, 190_000)
        assert moments(self.policy) == {"turn_start", "after_tools"}

    def test_keeps_nothing_but_a_detailed_summary(self):
        assert self.policy.keep == Keep()
        assert self.policy.quote_user_tokens == 0
        assert self.policy.summary_prompt == "detailed"


class TestCodex:
    policy = preset("codex")

    def test_has_limits_by_model_and_else_95_percent(self):
        assert fires_above(self.policy, SONNET, 180_000, model="o4-mini")
        assert fires_above(self.policy, Window(272_000), 244_000, model="openai:gpt-5-codex")
        assert fires_above(self.policy, Window(400_000), 380_000, model="openai:something-else")
        assert fires_above(self.policy, Window(272_000), 258_400)

    def test_a_limit_is_no_more_than_what_the_window_leaves(self):
        assert fires_above(self.policy, Window(100_000), 95_000, model="o3")

    def test_keeps_the_newest_user_messages_and_then_the_summary(self):
        assert self.policy.keep == Keep()
        assert self.policy.quote_user_tokens == 20_000
        assert self.policy.summary_position == "after"
        assert self.policy.summary_prompt == "handoff"
        assert self.policy.prefix


class TestOpencode:
    policy = preset("opencode")

    def test_compacts_where_the_output_no_longer_fits(self):
        assert fires_above(self.policy, SONNET, 191_808)
        assert fires_above(self.policy, Window(200_000, output=64_000), 136_000)

    def test_prunes_then_keeps_a_summary_alone_and_goes_on(self):
        assert self.policy.prune_minimum.resolve(SONNET) == 20_000
        assert self.policy.prune_protect.resolve(SONNET) == 40_000
        assert self.policy.keep == Keep()
        assert self.policy.continuation == "Continue if you have next steps."
        assert not PRESETS["foldline"].continuation


class TestAmp:
    policy = preset("amp")

    def test_never_compacts_by_itself(self):
        assert moments(self.policy) == set()
        assert decide(10**9, SONNET, self.policy, "turn_start", messages=50).why == "never"
        assert decide(10**9, SONNET, self.policy, "overflow", messages=50).why == "disabled"
        assert self.policy.enable_compaction, "by hand it does"

    def test_hands_off_and_keeps_nothing(self):
        assert (self.policy.keep, self.policy.summary_prompt) == (Keep(), "handoff")


class TestFoldline:
    policy = preset("foldline")

    def test_reserves_16_384_tokens_or_15_percent(self):
        assert usable_of(self.policy, SONNET) == 183_616
        assert usable_of(self.policy, SMALL) == 32_768 - 4_915

    def test_drafts_above_70_and_compacts_above_90_percent_of_usable(self):
        limits = thresholds(self.policy, SONNET)
        assert isinstance(decide(limits.soft, SONNET, self.policy, "turn_start", messages=5), Stay)
        assert isinstance(decide(limits.soft + 1, SONNET, self.policy, "turn_start", messages=5), StartDraft)
        assert isinstance(decide(limits.hard, SONNET, self.policy, "turn_start", messages=5), StartDraft)
        assert isinstance(decide(limits.hard + 1, SONNET, self.policy, "turn_start", messages=5), Compact)
        assert moments(self.policy) == {"turn_start", "after_reply", "after_tools", "before_smaller_window"}

    @pytest.mark.parametrize(
        ("field", "large", "small"),
        [
            ("min_gain", 36_723, 5_570),
            ("prune_minimum", 18_361, 2_785),
            ("prune_protect", 40_000, 6_963),
            ("summary_tokens", 13_000, 5_570),
        ],
    )
    def test_budgets_shrink_with_the_window(self, field, large, small):
        amount = getattr(self.policy, field)
        assert amount.resolve(SONNET, usable_of(self.policy, SONNET)) == large
        assert amount.resolve(SMALL, usable_of(self.policy, SMALL)) == small

    def test_keeps_whole_turns_up_to_20_000_tokens_or_a_fifth(self):
        assert kept_tokens(self.policy, SONNET) == 20_000
        assert kept_tokens(self.policy, SMALL) == 5_570
        assert self.policy.cut_rule == "turn"

    def test_works_in_the_background(self):
        assert self.policy.background


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
