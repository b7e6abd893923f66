"""Boundaries that only shorten messages: what they shorten and what they must keep."""

import msgspec
from tests.support.logs import add, add_entry, ask_for, compact_log, view_of
from tests.support.talk import as_sent, assistant, call, calls, log_of, repeat, system, tool, user

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.receipt import no_gain, standing_in
from foldline.core.compact.trim import NOTES_LEAST, NOTES_SHARE
from foldline.core.cut.notes import HELD
from foldline.core.decide.policy import Policy
from foldline.core.ledger.facts.constraints import standing
from foldline.core.log.entries import Edit, Pinned, Pruned, StandingConstraints
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.core.measure.window import Amount
from foldline.core.view_items import AddedItem, MessageItem
from foldline.errors import FloorExceeded

RULES = Policy(name="rules", hard=Amount(fraction=0.9, of="usable"), enable_pruning=False)
RULE = "Never touch anything under migrations/ without asking me."
OTHER = "Always keep the public API backwards compatible."


def letter(*sentences: str) -> str:
    filler = repeat("We looked at the page and it was fine.", 100)
    return " ".join([filler, *(f"{sentence} {filler}" for sentence in sentences)])


def job_for(rules, **more) -> CompactionInput:
    return CompactionInput(view_of(log_of()), ask_for(rules, **more), OFFLINE)


def exact(log) -> None:
    """Check that the tokens of items and receipt equal those of the messages sent."""
    for item in view_of(log).view():
        saved = sum(edit.saved for edit in item.edits)
        assert item.entry.tokens - saved == message_tokens(as_sent(item), OFFLINE)


def test_constraints_in_what_an_elision_takes_out_are_quoted_behind_it_word_for_word():
    log = log_of(user(letter(RULE, OTHER)))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=900))
    assert isinstance(outcome, Pruned)
    text = as_sent(view_of(log).view()[0]).text
    assert text.endswith(f"\n[Standing, word for word:]\n- {RULE}\n- {OTHER}")
    assert outcome.receipt.constraints == StandingConstraints(2, (RULE, OTHER))
    assert outcome.receipt.tokens_after == view_of(log).tokens <= 900
    exact(log)


def test_a_constraint_that_the_elision_leaves_is_not_quoted_again():
    log = log_of(user(f"{RULE} {letter(OTHER)}"))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=900))
    text = as_sent(view_of(log).view()[0]).text
    assert text.startswith(RULE)
    assert text.endswith(f"\n[Standing, word for word:]\n- {OTHER}")
    assert text.count(RULE) == 1
    assert outcome.receipt.constraints.kept == 2
    exact(log)


def test_what_a_tool_or_the_system_says_is_no_constraint_to_quote():
    log = log_of(system("Be brief."), tool("nobody", letter(RULE)), user("go"))
    compact_log(log, ask_for(RULES, reason="target", target=400))
    assert "Standing" not in "".join(
        as_sent(item).text for item in view_of(log).view() if hasattr(item, "entry")
    )


def test_of_two_letters_each_gets_its_own_constraints_behind_it():
    log = log_of(user(letter(RULE)), user(letter(OTHER)))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=1_400))
    first, second = (as_sent(item).text for item in view_of(log).view())
    assert first.endswith(f"- {RULE}")
    assert second.endswith(f"- {OTHER}")
    assert OTHER not in first
    assert outcome.receipt.tokens_after == view_of(log).tokens <= 1_400
    exact(log)


def test_a_pinned_letter_is_spared_while_another_makes_room_for_its_constraint():
    log = log_of(user(repeat("a pinned letter", 100)), user(letter(RULE)))
    first = log.path()[0]
    add_entry(log, Pinned("", None, first.id, on=True, text=first.message.text))
    outcome = compact_log(log, ask_for(RULES, reason="target", target=740))
    assert {edit.entry for edit in outcome.edits} == {log.path()[1].id}
    assert view_of(log).tokens <= 740


def test_the_note_of_a_late_result_is_not_thought_to_get_smaller():
    log = log_of(tool("nobody", repeat("what it found", 600)), user("go"))
    size = view_of(log).tokens
    refused = compact_log(log, ask_for(RULES, reason="target", target=300))
    assert isinstance(refused, FloorExceeded)
    assert (refused.floor, refused.budget) == (size, 300)
    assert refused.breakdown["unanswered"] > 0
    assert view_of(log).tokens == size


# ---- prunes


def worked(steps: int = 8):
    log = log_of(user("Read the sources."))
    for i in range(steps):
        add(log, calls(f"c{i}"))
        add(log, tool(f"c{i}", repeat("a line of the file", 100)))
    add(log, assistant("I have read them."))
    add(log, user("Now write the report."))
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


def test_what_has_to_be_gained_is_a_share_of_usable_one_token_at_least_and_only_by_itself():
    share = msgspec.structs.replace(PRUNING, min_gain=Amount(fraction=0.2, of="usable"))
    assert job_for(share, context=5_000, reason="threshold").least_gain == 800
    assert job_for(share, context=5_000, reason="manual").least_gain == 1
    assert job_for(PRUNING, context=5_000, reason="threshold").least_gain == 1
    assert no_gain(5, 1_000).detail == "it would gain 5 tokens of the required 1,000"
    assert no_gain(0, 1).detail == "it would gain 0 tokens of the required 1"
    assert no_gain(-1_005, 1).detail == "the checkpoint would be 1,005 tokens larger than what it replaces"


# ---- what a view says, and how much of it


def test_a_constraint_is_in_a_view_where_the_model_can_read_it_word_for_word():
    log = log_of(user(letter(RULE)), assistant("Yes."), user(OTHER.replace("keep the", "keep\n  the")))
    shown = standing(log.path())
    whole = view_of(log).view()
    assert standing_in(shown, whole) == (list(shown), [])
    first = log.path()[0]
    cut = MessageItem(first, (Edit(first.id, 0, "elided", Text("We looked at the page."), 100),))
    here, lost = standing_in(shown, [cut, *whole[1:]])
    assert ([fact.text for fact in here], lost) == ([shown[1].text], [RULE])
    added = AddedItem("checkpoint", Message("user", (Text(f"- {RULE}"),)), "c", 20)
    assert standing_in(shown, [added, cut, *whole[1:]]) == (list(shown), [])
    halves = [AddedItem("late", Message("user", (Text(half),)), "c", 9) for half in (RULE[:20], RULE[20:])]
    assert standing_in(shown[:1], halves)[1] == [RULE]


def test_a_system_prompt_that_alone_is_too_large_is_shortened_by_what_is_too_much():
    log = log_of(system(repeat("You are careful", 900)), user("What is said of the login page?"))
    target = log.path()[0].tokens // 2
    outcome = compact_log(log, ask_for(RULES, reason="target", target=target))
    assert isinstance(outcome, Pruned)
    assert target * 0.9 < outcome.receipt.tokens_after <= target
    exact(log)


def test_where_nothing_can_be_recalled_no_mark_says_so():
    for recall in (True, False):
        log = log_of(user(letter(RULE)))
        ask = msgspec.structs.replace(ask_for(RULES, reason="target", target=900), recall=recall)
        assert isinstance(compact_log(log, ask), Pruned)
        text = as_sent(view_of(log).view()[0]).text
        assert "characters left out" in text
        assert ("; recall " in text) is recall


# ---- what placeholders say of what was held

SOURCES = "\n".join(f"src/rates/table_{n}.py: def rate_{n}(): the rate of zone {n}" for n in range(60))
NOTING = msgspec.structs.replace(
    PRUNING,
    enable_compaction=True,
    hard=Amount(fraction=0.6, of="usable"),
    prune_notes=Amount(tokens=600),
)


def searched(steps: int = 6):
    log = log_of(user("Look at the rates."))
    for i in range(steps):
        add(log, assistant(f"Search {i}.", call(f"c{i}", "grep", pattern=f"rate_{i}")))
        add(log, tool(f"c{i}", SOURCES.replace("rate", f"rate{i}")))
    add(log, assistant("I have seen them."))
    add(log, user("Now write the report."))
    return log


def notes(outcome) -> list[str]:
    return [edit.replacement.text for edit in outcome.edits if HELD in edit.replacement.text]


def pruned_by(policy, **more):
    log = searched()
    ask = ask_for(policy, context=int(view_of(log).tokens * 1.2), reason="threshold")
    return log, compact_log(log, msgspec.structs.replace(ask, **more)), ask


def test_a_prune_that_suffices_says_what_the_results_held_within_its_budget():
    log, outcome, ask = pruned_by(NOTING)
    assert isinstance(outcome, Pruned)
    assert notes(outcome)
    assert all("table_" in note and "\n" not in note for note in notes(outcome))
    said = sum(OFFLINE.count(note.partition(HELD)[2]) for note in notes(outcome))
    assert said <= 600 + 5 * len(notes(outcome))  # and the words before each line
    assert outcome.receipt.tokens_after == view_of(log).tokens
    exact(log)
    assert outcome.receipt.tokens_after < ask.usable * 0.6


def told(outcome) -> int:
    return sum(OFFLINE.count(note.partition(HELD)[2]) for note in notes(outcome))


def test_notes_take_a_share_of_what_was_freed_and_of_usable_at_most():
    rules = msgspec.structs.replace(NOTING, prune_notes=Amount(tokens=1_000_000), min_gain=Amount(tokens=1))
    _, plain, _ = pruned_by(msgspec.structs.replace(rules, prune_notes=Amount()))
    log, rich, _ = pruned_by(rules)
    freed = plain.receipt.tokens_before - plain.receipt.tokens_after
    cost = rich.receipt.tokens_after - plain.receipt.tokens_after
    assert 0 < cost <= freed // NOTES_SHARE + 5 * len(notes(rich))
    exact(log)
    share = Amount(fraction=0.05, of="usable")
    small = msgspec.structs.replace(NOTING, prune_notes=share, reserve=Amount(fraction=0.7))
    log = searched()
    ask = ask_for(small, context=view_of(log).tokens * 4, reason="target", target=5_000)
    outcome = compact_log(log, ask)
    assert told(outcome) <= 0.05 * ask.usable + 5 * len(notes(outcome))


def test_without_a_budget_placeholders_are_what_they_were():
    _, plain, _ = pruned_by(msgspec.structs.replace(NOTING, prune_notes=Amount()))
    _, noting, _ = pruned_by(NOTING)
    assert notes(plain) == []
    assert [(e.entry, e.part) for e in plain.edits] == [(e.entry, e.part) for e in noting.edits]
    assert plain.receipt.tokens_after < noting.receipt.tokens_after


def test_notes_never_cost_a_prune_its_end():
    _, plain, _ = pruned_by(msgspec.structs.replace(NOTING, prune_notes=Amount()))
    target = plain.receipt.tokens_after
    for more in (0, 30, 60, 200):
        _, outcome, _ = pruned_by(NOTING, reason="target", target=target + more)
        assert isinstance(outcome, Pruned)
        assert outcome.receipt.tokens_after <= target + more
        assert more >= NOTES_LEAST or not notes(outcome)


def test_a_result_that_is_kept_by_hand_is_not_spoken_of():
    log = searched()
    pin = log.path()[2]
    add_entry(log, Pinned("", None, pin.id, on=True, text="kept"))
    ask = ask_for(NOTING, context=int(view_of(log).tokens * 1.2), reason="threshold")
    outcome = compact_log(log, ask)
    assert pin.id not in {edit.entry for edit in outcome.edits}


def test_what_a_target_has_room_for_is_not_blanked():
    _, plain, _ = pruned_by(msgspec.structs.replace(NOTING, prune_notes=Amount()))
    target = plain.receipt.tokens_after + 600
    _, outcome, _ = pruned_by(NOTING, reason="target", target=target)
    assert outcome.edits[-1].kind == "elided"
    assert target * 0.9 < outcome.receipt.tokens_after <= target
