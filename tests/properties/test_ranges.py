"""Ranges that somebody chose to fold, over generated logs: what was to be kept is kept, and undo restores it."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.logs import (
    DIALECTS,
    add,
    add_entry,
    ask_for,
    compact_log,
    fold_range,
    logs,
    problems,
    stored_calls_answered,
    view_of,
)
from tests.support.talk import assistant, outline, repeat, text_of, user

from foldline.core.cut.edits import is_folded
from foldline.core.decide.presets import PRESETS
from foldline.core.log.entries import Compacted, Lifted, Pruned
from foldline.core.view_items import MessageItem

ways = st.sampled_from(["up_to", "since"])
places = st.integers(0, 30)


def _talked(made):
    """A log that ends with some long turns, so that most ranges are worth a summary."""
    _, log = made
    assume(stored_calls_answered(log.path()))
    for number in range(3):
        add(log, user(f"question {number}"))
        add(log, assistant(repeat("went on with the page", 150)))
    return log


def _kept(items, *, among):
    """The messages of the log in a view, with the edits that change what is said in them.

    Thinking that is bound to what stood before goes; an id that is used again changes with the view.
    """
    return [
        (item.entry.id, [edit for edit in item.edits if edit.kind not in ("stripped", "repaired")])
        for item in items
        if isinstance(item, MessageItem) and item.entry.id in among
    ]


@given(made=logs(), way=ways, place=places, policy=st.sampled_from([*PRESETS]))
def test_what_was_not_chosen_is_kept_to_the_byte_and_undo_restores_the_rest(made, way, place, policy):
    log = _talked(made)
    before = view_of(log)
    outcome = fold_range(log, way, place, policy)
    if not isinstance(outcome, Compacted | Pruned):
        assert view_of(log).view() == before.view()
        return
    after, chosen = view_of(log), place % len(before.kept)
    assert outcome.receipt.tokens_before == before.tokens
    assert outcome.receipt.tokens_after == after.tokens < before.tokens
    for dialect in DIALECTS:
        assert problems(after.view(), dialect) == []
    if isinstance(outcome, Compacted):
        assert way == "up_to"
        stay = {entry.id for entry in after.kept}
        assert [entry.id for entry in before.kept if entry.id in stay] == [entry.id for entry in after.kept]
        assert _kept(after.view(), among=stay) == _kept(before.view(), among=stay)
        prompts = [i for i, entry in enumerate(before.kept) if i > chosen and entry.message.is_prompt]
        assert len(before.kept) - len(stay) <= max([*prompts[:1], *_batch_ends(before, chosen), chosen + 1])
    else:
        assert way == "since"
        there = next(i for i, item in enumerate(after.view()) if item not in before.view())
        assert after.view()[:there] == before.view()[:there]
        assert "summary" in outline(after.view())[there:]
        stay = {entry.id for entry in before.kept[:chosen]}
        assert _kept(after.view(), among=stay) == _kept(before.view(), among=stay)
        folded = {entry.id for entry in before.kept if is_folded(after.edits.get(entry.id, ()))}
        others = {entry.id for entry in before.kept} - folded
        assert _kept(after.view(), among=others) == _kept(before.view(), among=others)
    add_entry(log, Lifted("", None, outcome.id, lifted=True))
    assert view_of(log).view() == before.view()


def _batch_ends(state, at):
    """Where what belongs to the calls of a message ends; in an open batch that is the end of all."""
    ends = [one.end + 1 for one in state.pairing.batches if one.start <= at <= one.end]
    prompts = [len(state.kept)] if state.kept[at].message.is_prompt else []
    return [*ends, *prompts]


@given(made=logs(), place=places, policy=st.sampled_from([*PRESETS]), target=st.integers(300, 1_500))
def test_a_later_fold_takes_a_folded_range_whole_or_leaves_it_as_it_is(made, place, policy, target):
    log = _talked(made)
    if not isinstance(fold_range(log, "since", place, policy), Pruned):
        return
    add(log, user("and now?"))
    add(log, assistant(repeat("went on with the tests", 50)))
    before = view_of(log)
    ranges = [entry.id for entry in before.kept if is_folded(before.edits.get(entry.id, ()))]
    outcome = compact_log(log, ask_for(policy, reason="target", target=target, context=3_000))
    after = view_of(log)
    for dialect in DIALECTS:
        assert problems(after.view(), dialect) == []
    if isinstance(outcome, Compacted):
        shown = [one for one in after.view() if not isinstance(one, MessageItem) and one.kind == "summary"]
        assert all(one in before.view() for one in shown)
        left = [entry.id for entry in after.kept if is_folded(after.edits.get(entry.id, ()))]
        assert left == ranges[len(ranges) - len(left) :]
        assert bool(left) == bool(shown)
        assert text_of(shown) in text_of(before.view())
