"""Boundaries that fold nothing: what they shorten and what they must not lose."""

import msgspec
from tests.support.logs import ask_for, compact_log, fold_of, put, say
from tests.support.talk import assistant, calls, log_of, long, sent, system, tool, user

from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Pinned, Pruned
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.core.measure.window import Amount
from foldline.core.trim import least_gain, no_gain
from foldline.errors import FloorExceeded

RULES = Policy(name="rules", hard=Amount(fraction=0.9, of="usable"), enable_pruning=False)
RULE = "Never touch anything under migrations/ without asking me."
OTHER = "Always keep the public API backwards compatible."


def letter(*sentences: str) -> str:
    filler = long("We looked at the page and it was fine.", 100)
    return " ".join([filler, *(f"{sentence} {filler}" for sentence in sentences)])


def exact(log) -> None:
    """Every item takes what is sent for it, and the receipt says as much."""
    for item in fold_of(log).view():
        saved = sum(edit.saved for edit in item.edits)
        assert item.entry.tokens - saved == message_tokens(sent(item), OFFLINE)


def test_constraints_in_what_an_elision_takes_out_are_quoted_behind_it_word_for_word():
    log = log_of(user(letter(RULE, OTHER)))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=900))
    assert isinstance(outcome, Pruned)
    text = sent(fold_of(log).view()[0]).text
    assert text.endswith(f"\n[Standing, word for word:]\n- {RULE}\n- {OTHER}")
    assert outcome.receipt.constraints == {"kept": 2, "texts": [RULE, OTHER]}
    assert outcome.receipt.tokens_after == fold_of(log).tokens <= 900
    exact(log)


def test_a_constraint_that_the_elision_leaves_is_not_quoted_again():
    log = log_of(user(f"{RULE} {letter(OTHER)}"))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=900))
    text = sent(fold_of(log).view()[0]).text
    assert text.startswith(RULE)
    assert text.endswith(f"\n[Standing, word for word:]\n- {OTHER}")
    assert text.count(RULE) == 1
    assert outcome.receipt.constraints["kept"] == 2
    exact(log)


def test_without_constraints_nothing_is_quoted():
    log = log_of(user(letter()))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=500))
    assert "Standing" not in sent(fold_of(log).view()[0]).text
    assert outcome.receipt.constraints == {}
    exact(log)


def test_what_a_tool_or_the_system_says_is_no_constraint_to_quote():
    log = log_of(system("Be brief."), tool("nobody", letter(RULE)), user("go"))
    compact_log(log, ask_for(RULES, reason="target", target=400))
    assert "Standing" not in "".join(
        sent(item).text for item in fold_of(log).view() if hasattr(item, "entry")
    )


def test_of_two_letters_each_gets_its_own_constraints_behind_it():
    log = log_of(user(letter(RULE)), user(letter(OTHER)))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=1_400))
    first, second = (sent(item).text for item in fold_of(log).view())
    assert first.endswith(f"- {RULE}")
    assert second.endswith(f"- {OTHER}")
    assert OTHER not in first
    assert outcome.receipt.tokens_after == fold_of(log).tokens <= 1_400
    exact(log)


def test_a_pinned_letter_is_spared_while_another_makes_room_for_its_constraint():
    log = log_of(user(long("a pinned letter", 100)), user(letter(RULE)))
    first = log.path()[0]
    put(log, Pinned("", None, first.id, on=True, text=first.message.text))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=740))
    assert {edit.entry for edit in outcome.edits} == {log.path()[1].id}
    assert fold_of(log).tokens <= 740


def test_the_note_of_a_late_result_is_not_thought_to_get_smaller():
    log = log_of(tool("nobody", long("what it found", 600)), user("go"))
    size = fold_of(log).tokens
    refused = compact_log(log, ask_for(RULES, reason="target", target=300))
    assert isinstance(refused, FloorExceeded)
    assert (refused.floor, refused.budget) == (size, 300)
    assert refused.breakdown["unanswered"] > 0
    assert fold_of(log).tokens == size


# ---- prunes


def worked(steps: int = 8):
    log = log_of(user("Read the sources."))
    for i in range(steps):
        say(log, calls(f"c{i}"))
        say(log, tool(f"c{i}", long("a line of the file", 100)))
    say(log, assistant("I have read them."))
    say(log, user("Now write the report."))
    return log


PRUNING = msgspec.structs.replace(
    RULES,
    enable_pruning=True,
    enable_compaction=False,
    reserve=Amount(tokens=1_000),
    prune_minimum=Amount(tokens=10),
    prune_protect=Amount(fraction=0.1, of="usable"),
)


def test_amounts_of_a_prune_are_those_of_what_is_usable():
    one = worked().path()[2].tokens
    half = msgspec.structs.replace(PRUNING, reserve=Amount(tokens=10 * one))
    ask = ask_for(half, context=20 * one)
    assert ask.usable == 10 * one
    outcome = compact_log(worked(), ask)
    assert {edit.kind for edit in outcome.edits} == {"blanked"}
    assert len(outcome.edits) == 6
    wide = msgspec.structs.replace(half, prune_protect=Amount(fraction=0.3, of="usable"))
    assert len(compact_log(worked(), ask_for(wide, context=20 * one)).edits) == 4


def test_a_prune_whose_day_is_not_known_says_earlier():
    log = worked()
    compact_log(log, msgspec.structs.replace(ask_for(PRUNING, context=9_000), now=""))
    assert "[Old tool result cleared earlier: " in sent(fold_of(log).view()[2]).results[0].text


def test_what_has_to_be_gained_is_a_share_of_usable_one_token_at_least_and_only_by_itself():
    share = msgspec.structs.replace(PRUNING, min_gain=Amount(fraction=0.2, of="usable"))
    assert least_gain(ask_for(share, context=5_000, reason="threshold")) == 800
    assert least_gain(ask_for(share, context=5_000, reason="manual")) == 1
    assert least_gain(ask_for(PRUNING, context=5_000, reason="threshold")) == 1
    assert no_gain(5, 1_000).detail == "5 tokens of the 1,000 that it has to gain"
