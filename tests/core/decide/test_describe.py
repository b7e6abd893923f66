import msgspec
import pytest

from foldline.core.decide.describe import amount, describe
from foldline.core.decide.policy import Keep, Policy
from foldline.core.decide.presets import preset
from foldline.core.measure.window import Amount


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Amount(), "0"),
        (Amount(tokens=20_000), "20,000"),
        (Amount(fraction=0.35), "35%"),
        (Amount(tokens=20_000, fraction=0.125, of="usable"), "min(20,000, 12.5% of usable)"),
        (Amount(fraction=0.8, of="reserve"), "80% of reserve"),
        (Amount(output=True), "max output"),
        (Amount(less=30_000), "input limit − 30,000"),
    ],
)
def test_amounts_are_written_as_people_write_them(given, words):
    assert amount(given) == words


def test_a_policy_is_told_in_a_phrase_for_each_of_its_parts():
    assert describe(preset("foldline")) == {
        "enabled": "yes",
        "triggers": "soft min(92,000, 78% of usable); hard min(100,000, 85% of usable); idle 270 s; reserve min(16,384, 15%)",
        "checked": "turn start, after a reply, after tools, model switch",
        "gains": "≥ min(10,000, 10% of usable) if automatic",
        "keeps": "min(20,000, 10% of usable); whole turns",
        "prunes": "min(15,000, 20% of usable) outside min(15,000, 15% of usable)",
        "summary": "checkpoint ≤ min(13,000, 20% of usable, 10% of what is folded) as user",
        "summary_model": "the session's own",
    }


def test_what_is_gained_exempt_and_different_by_model_is_told():
    policy = Policy(name="p", prune_exempt=("skill", "todo"), per_model={"claude-": {"hard": {}, "keep": {}}})
    description = describe(policy)
    assert description["gains"] == "anything"
    assert description["prunes"] == "20,000 outside 40,000; never skill, todo"
    assert description["models"] == "claude-*: other hard, keep"


def test_limits_of_models_are_told_together():
    policy = Policy(name="p", hard=Amount(tokens=9), limits={"a": 1_000, "b": 2_000, "c": 1_000})
    assert describe(policy)["triggers"] == "9; 1,000 for a, c; 2,000 for b"


def test_what_is_kept_is_told_whole():
    keep = Keep(amount=Amount(tokens=5), messages=4, message_fraction=0.5)
    policy = Policy(name="p", keep=keep, cut_rule="user", cross_boundary=False, quote_user_tokens=7_000)
    assert describe(policy)["keeps"] == (
        "min(5, 4 messages, 50% of messages); from a user message; never across a boundary; "
        "user messages up to 7,000"
    )


def test_a_soft_trigger_without_background_is_not_told():
    policy = msgspec.structs.replace(preset("foldline"), background=False)
    assert describe(policy)["triggers"] == "min(100,000, 85% of usable); reserve min(16,384, 15%)"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "yes"),
        ({"on_overflow": True}, "yes"),
        ({"enabled": False}, "no: no compaction starts automatically"),
        (
            {"enabled": False, "on_overflow": True},
            "no: no compaction starts automatically; an overflow is compacted",
        ),
        ({"on_overflow": False}, "yes; an overflow is left to the caller"),
        ({"enable_compaction": False}, "yes; it never compacts"),
    ],
)
def test_what_starts_by_itself_is_told(fields, words):
    assert describe(Policy(name="p", **fields))["enabled"] == words


def test_the_model_for_summaries_is_told():
    assert describe(Policy(name="p", summary_model="haiku"))["summary_model"] == "haiku"
