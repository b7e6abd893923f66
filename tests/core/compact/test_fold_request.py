"""The size of a view as the triggers of a policy compare it, and the fold request that follows."""

import msgspec
import pytest
from tests.support.logs import add_entry, ask_for, compact_log, view_of
from tests.support.talk import assistant, call, log_of, system, tool, user

from foldline.core.compact.fold_request import (
    Sizer,
    fold_request,
    number_of,
    part_of_window,
    trigger_facts,
)
from foldline.core.decide.presets import preset
from foldline.core.log.entries import Compacted, Edit, Pruned, Receipt
from foldline.core.log.messages import Text, ToolResult, Usage
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Amount, Floor, Window

WINDOW = Window(10_000, output=1_000)
APART = Floor(system=300, tools=200)
OUTPUT = "a line of the log\n" * 400


def talked(**reply):
    return log_of(
        user("Read it."), assistant("", call("c1")), tool("c1", OUTPUT), assistant("I did.", **reply)
    )


def size(log, name, overhead=0, ratio=1.0):
    return Sizer(preset(name), OFFLINE).size(view_of(log), overhead, ratio)


def pruned(log):
    """Prune the only result of the log."""
    result = next(entry for entry in view_of(log).kept if entry.message.results)
    blank = Edit(result.id, 0, "blanked", ToolResult("c1", (Text("gone"),)), result.tokens - 5)
    add_entry(log, Pruned("", None, Receipt("threshold"), (blank,)))
    return log


@pytest.mark.parametrize("name", ["foldline", "gencode", "coop", "moldable"])
def test_what_a_prune_blanked_is_not_counted_any_more(name):
    """Count a pruned view anew if there is no usage: it would be folded at once otherwise."""
    whole, less = size(talked(), name), size(pruned(talked()), name)
    assert less <= whole
    if name != "moldable":  # it does not count results
        assert whole - less > 1_500


def test_system_prompt_and_tools_count_unless_the_policy_looks_at_messages_alone():
    for name, more in (("foldline", 500), ("gencode", 500), ("coop", 500), ("moldable", 0)):
        assert size(talked(), name, overhead=500) - size(talked(), name) == more


def test_usage_counts_before_estimates_and_the_ratio_scales_our_own():
    used = talked(usage=Usage(input=7_000, output=9))
    assert size(used, "foldline", overhead=500, ratio=3.0) == 7_009
    assert size(used, "gencode", overhead=500) == 7_009
    assert size(used, "coop", overhead=500) == 7_000
    assert size(talked(), "foldline", ratio=2.0) == 2 * size(talked(), "foldline")


def test_each_preset_looks_at_the_usage_as_its_original_does():
    used = talked(usage=Usage(input=100, cache_read=5_000, cache_write=1_000, output=9))
    assert size(used, "coop") == 6_100, "input and cache of the last reply"
    assert size(used, "pi") == 6_109, "the whole of it"
    assert size(used, "moldable") == size(talked(), "moldable"), "text and reasoning alone, whatever it says"


def test_a_growing_view_is_estimated_as_a_whole_one():
    log, sizer = talked(), Sizer(preset("klaude"), OFFLINE)
    fold = view_of(log)
    sizer.size(fold, 0, 1.0)
    more = log_of(*(entry.message for entry in fold.kept), user("And then?"))
    fold.push(view_of(more).kept[-1])
    assert sizer.size(fold, 0, 1.0) == size(more, "klaude")


def test_the_facts_have_the_figures_of_the_view():
    fold = view_of(pruned(talked()))
    ask = fold_request(fold, preset("foldline"), WINDOW, "threshold", overhead=APART, now="")
    facts = trigger_facts(fold, ask, Sizer(preset("foldline"), OFFLINE), OFFLINE, ratio=1.0, now=0.0)
    assert (facts.size, facts.tokens) == (fold.tokens + 500, fold.tokens)
    assert (facts.messages, facts.new_messages) == (4, 0)
    assert facts.floor().system == 300
    assert facts.breaker().strikes == 0
    assert not facts.mended()


HEX = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n" * 220
CHINESE = "构建脚本在第三步失败，因为缓存目录不可写，需要先清理再重试。" * 400


@pytest.mark.parametrize("text", [HEX, CHINESE])
@pytest.mark.parametrize("name", ["klaude", "gencode", "codex", "opencode"])
def test_what_an_estimator_undercounts_is_seen_and_named(name, text):
    log = log_of(user("Decode it."), assistant("", call("c1")), tool("c1", text))
    fold, sizer = view_of(log), Sizer(preset(name), OFFLINE)
    seen, context = sizer.size(fold, 0, 1.0), fold.tokens
    assert seen < context
    for limit, told in ((context - 1, True), (context, False)):
        window = Window(limit, output=100)
        policy = msgspec.structs.replace(
            preset(name), reserve=Amount(), hard=Amount(fraction=1.0, of="usable")
        )
        ask = fold_request(
            fold, policy, window, "threshold", overhead=Floor(), now="", sizer=Sizer(policy, OFFLINE)
        )
        assert bool(ask.notes) == told
    note = fold_request(
        fold, policy, Window(context - 1), "threshold", overhead=Floor(), now="", sizer=sizer
    ).notes
    if note:  # its own trigger may be low enough
        assert f"{seen:,} tokens, Foldline {context:,}" in note[0]
    assert (
        fold_request(fold, policy, Window(100), "manual", overhead=Floor(), now="", sizer=sizer).notes == ()
    )


def test_where_the_model_counts_more_a_compaction_works_with_less_of_the_window():
    fold, policy = view_of(talked()), preset("foldline")

    def window(reason, **more):
        return fold_request(fold, policy, WINDOW, reason, overhead=APART, now="", **more).window

    assert window("threshold", ratio=2.0).input_limit == 5_000
    assert window("threshold", ratio=0.5) == WINDOW
    assert window("manual", ratio=2.0) == WINDOW
    assert window("overflow", ratio=2.0, share=0.7).input_limit == 7_000
    assert part_of_window(WINDOW, 0.5) == Window(5_000, output=1_000)


def test_compactions_are_numbered_from_one():
    fold = view_of(talked())
    assert number_of(fold) == 1
    assert (
        fold_request(
            fold, preset("pi"), WINDOW, "manual", overhead=APART, now="", target=9, instructions="x"
        ).target
        == 9
    )


RULES = "Every table has an owner, and nobody else writes to it. " * 100  # some 1,400 tokens by chars/4


@pytest.mark.parametrize("name", ["coop", "klaude", "gencode", "codex", "opencode", "pi", "moldable"])
def test_leading_messages_count_where_no_usage_is_known(name):
    bare = size(talked(), name)
    assert size(log_of(system(RULES), *(e.message for e in view_of(talked()).kept)), name) - bare >= 1_400


def test_messages_that_a_fold_quotes_count_where_no_usage_is_known():
    log = log_of(
        *(m for n in range(6) for m in (user(f"{n}: {RULES}"), assistant(f"Done. {RULES}"))), user("go on")
    )
    made = compact_log(log, ask_for("codex", context=16_000))
    assert isinstance(made, Compacted)
    fold = view_of(log)
    assert len(fold.quoted) > 2
    assert size(log, "codex") > 0.9 * fold.tokens


def test_what_a_view_leaves_out_does_not_count():
    late = log_of(user("Read it."), assistant("No."), tool("c1", OUTPUT), user("Go on."))
    assert size(late, "klaude") < view_of(late).added_tokens + 20
