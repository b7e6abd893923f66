"""A range that the user chose: its messages, what stays of them, and its receipt."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.logs import add, add_entry, ask_for, compact_log, view_of
from tests.support.talk import assistant, calls, log_of, outline, repeat, system, text_of, tool, user

from foldline.core.decide.ask import FoldRange, Nothing
from foldline.core.decide.presets import preset
from foldline.core.log.entries import Compacted, Pinned, Pruned
from foldline.errors import InputError


def _log():
    """Three turns: the second one with two tool batches."""
    return log_of(
        system(),
        user("First, read it. Never push to main."),
        assistant(repeat("It reads well.", 200)),
        user("Now mend it. Always use tabs."),
        calls("a", text=repeat("I look.", 200)),
        tool("a", repeat("line", 400)),
        calls("b", text=repeat("I mend.", 200)),
        tool("b", repeat("line", 400)),
        assistant(repeat("Mended.", 200)),
        user("And the tests?"),
        assistant(repeat("They pass.", 200)),
    )


def _fold(log, way, number, policy="foldline", **more):
    entry = view_of(log).kept[number].id
    return compact_log(log, ask_for(policy, context=20_000, chosen=FoldRange(entry, way), **more))


def _roles(log):
    return outline(view_of(log).view())


@pytest.mark.parametrize(
    ("number", "first"),
    [
        (0, "Now mend it."),  # a prompt: its whole turn
        (1, "Now mend it."),
        (2, "And the tests?"),
        (3, "I mend."),  # a call: its results too
        (4, "I mend."),
        (6, "Mended."),
        (7, "And the tests?"),
    ],
)
def test_up_to_an_entry_its_exchange_is_folded_and_all_else_is_kept(number, first):
    log = _log()
    before = view_of(log)
    outcome = _fold(log, "up_to", number)
    assert isinstance(outcome, Compacted)
    after = view_of(log)
    assert after.kept[0].message.text.startswith(first)
    assert after.kept == before.kept[-len(after.kept) :]
    assert not any(edit for edit in outcome.edits)
    assert "Never push to main." in text_of(after.view())


def test_up_to_the_newest_exchange_nothing_is_kept_where_all_is_answered():
    log = _log()
    assert _fold(log, "up_to", 9).first_kept is None
    assert _roles(log)[:2] == ["system", "checkpoint"]


def test_what_is_not_answered_stays_and_the_receipt_says_where_the_cut_is():
    log = _log()
    add(log, user("One more."))
    add(log, calls("c"))
    add(log, tool("c", "found"))
    outcome = _fold(log, "up_to", 10)
    kept = view_of(log).kept
    assert [one.message.role for one in kept] == ["assistant", "tool"]
    assert (
        f"less was folded than requested: the nearest legal cut is before {kept[0].id}"
        in outcome.receipt.notes
    )
    with pytest.raises(InputError, match="nothing can be folded up to"):
        _fold(log, "up_to", 0)


def test_a_view_larger_than_its_window_may_be_folded_in_part():
    log = _log()
    entry = view_of(log).kept[1].id
    before = view_of(log).tokens
    outcome = compact_log(log, ask_for(context=1_800, chosen=FoldRange(entry, "up_to")))
    assert isinstance(outcome, Compacted)
    assert outcome.receipt.tokens_after == view_of(log).tokens < before


def test_since_an_entry_a_summary_stands_behind_what_is_kept():
    log = _log()
    before = view_of(log).view()
    outcome = _fold(log, "since", 2)
    assert isinstance(outcome, Pruned)
    after = view_of(log).view()
    assert after[:3] == before[:3]
    assert outline(after[3:]) == ["summary"]
    assert "Always use tabs." in text_of(after[3:])
    assert "never push" not in text_of(after[3:]).lower()
    assert outcome.receipt.dropped["messages"] == 8
    assert outcome.receipt.summarizer == "offline"
    assert outcome.receipt.constraints.texts == ("Always use tabs.",)
    add(log, user("Go on."))
    assert outline(view_of(log).view()[4:]) == ["user"]


def test_since_a_result_the_range_begins_behind_its_batch():
    log = _log()
    outcome = _fold(log, "since", 4)
    mend = view_of(log).kept[5]
    assert _roles(log) == ["system", "user", "assistant", "user", "assistant", "tool", "summary"]
    assert any(f"folded since {mend.id}, less than requested" in note for note in outcome.receipt.notes)


def test_a_summary_stands_behind_the_note_on_calls_that_nobody_answered():
    log = log_of(user("Read it."), calls("a"), tool("nobody"), user("Never mind."))
    add(log, assistant(repeat("All right.", 300)))
    entry = view_of(log).kept[2].id
    compact_log(log, ask_for(context=20_000, chosen=FoldRange(entry, "since")))
    assert _roles(log) == ["user", "assistant", "unanswered", "summary"]


def test_since_an_entry_what_is_not_answered_stays():
    log = _log()
    newest = add(log, user("One more."))
    _fold(log, "since", 2)
    assert _roles(log) == ["system", "user", "assistant", "summary", "user"]
    with pytest.raises(InputError, match="nothing can be folded since"):
        compact_log(log, ask_for(chosen=FoldRange(newest.id, "since")))


@pytest.mark.parametrize("way", ["up_to", "since"])
def test_an_entry_that_is_not_in_the_view_is_refused(way):
    log = _log()
    old = view_of(log).kept[0].id
    _fold(log, "up_to", 0)
    for entry in (old, "nowhere", view_of(log).leading[0].id):
        with pytest.raises(InputError, match="cannot be folded"):
            compact_log(log, ask_for(chosen=FoldRange(entry, way)))


def test_a_range_behind_a_checkpoint_leaves_the_checkpoint_as_it_is():
    log = _log()
    _fold(log, "up_to", 0)
    before = view_of(log).view()
    _fold(log, "since", 6)
    after = view_of(log).view()
    assert after[:-1] == before[:-2]
    assert outline(after)[-1] == "summary"


def test_a_later_fold_tells_what_was_said_in_the_range():
    log = _log()
    _fold(log, "since", 2)
    add(log, user("Go on."))
    add(log, assistant(repeat("Gone on.", 300)))
    add(log, user("Thanks."))
    outcome = compact_log(log, ask_for(reason="target", target=900))
    assert isinstance(outcome, Compacted)
    assert "summary" not in _roles(log)
    assert "Now mend it. Always use tabs." in outcome.checkpoint.summary
    assert len(outcome.receipt.dropped["calls"]) == 1


def test_a_fold_before_the_range_leaves_its_summary():
    log = _log()
    _fold(log, "since", 7)
    shown = view_of(log).view()[-1]
    assert isinstance(_fold(log, "up_to", 1), Compacted)
    assert view_of(log).view()[-1] == shown
    assert _fold(log, "up_to", 5).first_kept == view_of(log).kept[0].id  # never inside the range
    assert view_of(log).view()[-1] == shown
    assert _fold(log, "up_to", 1).first_kept is None  # the whole range
    assert "summary" not in _roles(log)


def test_pins_and_rules_of_a_range_stay_word_for_word():
    log = _log()
    first = view_of(log).kept[2]
    add_entry(log, Pinned("", None, first.id, on=True, text=first.message.text))
    _fold(log, "up_to", 0)  # its checkpoint has the pin, which the view shows
    _fold(log, "since", 0)
    assert _roles(log)[-1] == "summary"
    assert f'<pinned entry="{first.id}">\n{first.message.text}\n</pinned>' in text_of(view_of(log).view())


def test_marks_of_a_range_stay_word_for_word():
    log = _log()
    add(log, user(f"Note this. <keep>The crane is B-48151.</keep> {repeat('And so on.', 300)}"))
    add(log, assistant("Noted."))
    _fold(log, "since", 10)
    assert ">\nThe crane is B-48151.\n</kept-words>" in text_of(view_of(log).view()[-1:])


def test_instructions_in_the_range_stay():
    log = _log()
    rules = "# AGENTS.md instructions for /app\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>"
    add(log, user(rules))
    add(log, system("From now on be terse."))
    add(log, assistant(repeat("Noted.", 200)))
    _fold(log, "since", 2)
    assert _roles(log) == ["system", "user", "assistant", "summary", "system"]
    assert "Use tabs.\n</INSTRUCTIONS>" in text_of(view_of(log).view())


def test_a_range_that_is_smaller_than_its_summary_is_left():
    log = log_of(user("Hi."), assistant("Hello."), user("How are you?"), assistant("Well."))
    outcome = _fold(log, "since", 2)
    assert isinstance(outcome, Nothing)
    assert outcome.why == "no_gain"


def test_a_policy_that_does_not_compact_folds_no_range():
    off = msgspec.structs.replace(preset("foldline"), enable_compaction=False)
    for way in ("up_to", "since"):
        assert _fold(_log(), way, 2, off).why == "disabled"
