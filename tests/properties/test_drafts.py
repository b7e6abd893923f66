"""Invariants 2, 3, 4, 9 and 10 for a boundary that was planned a while ago and is put onto the path as it is now."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from tests.support.log import Log
from tests.support.logs import (
    CONSTRAINTS,
    DIALECTS,
    add,
    add_entry,
    ask_for,
    compact_log,
    decode,
    message_lists,
    problems,
    view_of,
)

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import plan
from foldline.core.compact.rebase import Draft, drafted, holds, rebased
from foldline.core.decide.ask import Nothing
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted, Lifted, Noted, Pinned, Pruned, Said
from foldline.core.log.log import chained
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState
from foldline.core.view_items import MessageItem
from foldline.errors import FloorExceeded
from foldline.executor import execute, run_sync
from foldline.summarizers.offline import OfflineSummarizer

LONG = "The server keeps failing when the tests run, and the retry comes too late. " * 5
REASONS = ("threshold", "overflow", "manual")


def draft_of(log: Log, ask) -> Draft | None:
    """Plan a boundary of the log as a session drafts one; None where none comes of it."""
    fold = view_of(log)
    try:
        outcome = run_sync(execute(plan(CompactionInput(fold, ask, OFFLINE)), OfflineSummarizer()))
    except FloorExceeded:
        return None
    return None if isinstance(outcome, Nothing) else drafted(fold, outcome)


@st.composite
def drafts(draw, reasons=REASONS):
    """A log, a boundary planned on it, and what was said meanwhile, notes and pins among it."""
    dialect = draw(st.sampled_from(DIALECTS))
    log = Log()
    for number in range(draw(st.integers(2, 5))):
        add(log, Message("user", (Text(f"Question {number}. {LONG}"),)))
        add(log, Message("assistant", (Text(f"Answer {number}. {LONG}"),)))
    if draw(st.booleans()):
        compact_log(log, ask_for(context=1_000))
    talk(draw, log, dialect)
    add(log, Message("assistant", (Text(f"Done. {LONG}"),)))
    ask = ask_for(reason=draw(st.sampled_from(reasons)), context=draw(st.sampled_from([700, 1_000, 1_600])))
    draft = draft_of(log, ask)
    assume(draft is not None)
    before = view_of(log)
    talk(draw, log, dialect)
    spoken = [e for e in log.path() if isinstance(e, Said) and e.message.text.strip()]
    if draw(st.integers(0, 3)) == 0:
        target = spoken[draw(st.integers(0, len(spoken) - 1))]
        add_entry(log, Pinned("", None, target.id, on=draw(st.booleans()), text=target.message.text))
    return log, ask, draft, before


def talk(draw, log: Log, dialect: str) -> None:
    """Say something in a dialect, with a note among it now and then."""
    for message in decode(dialect, draw(message_lists(dialect))[:5]):
        add(log, message)
        if draw(st.integers(0, 6)) == 0:
            add_entry(log, Noted("", None, "title", {"title": "meanwhile"}))


def committed(log: Log, ask, draft: Draft):
    """Commit a draft; the boundary is None where it is not to be committed, and the log is as it was."""
    found = rebased(CompactionInput(view_of(log), ask, OFFLINE), draft)
    event(found.why if isinstance(found, Nothing) else type(found.boundary).__name__)
    return (found, None) if isinstance(found, Nothing) else (found, add_entry(log, found.boundary))


@given(drafts())
def test_what_a_draft_commits_is_what_the_invariants_demand(made):
    """Valid (1), only grown until then and as received after (2), enough gained (4), nothing lost (10)."""
    log, ask, draft, before = made
    now = view_of(log)
    if not before.open_calls and now.server is before.server:
        assert list(now.items())[: len(before.items())] == list(before.items())
    found, boundary = committed(log, ask, draft)
    if boundary is None:
        assert view_of(log).view() == now.view()
        return
    after = view_of(log)
    assert now.tokens - after.tokens >= (CompactionInput(now, ask, OFFLINE).least_gain if ask.optional else 1)
    for dialect in DIALECTS:
        if not problems(now.view(), dialect):
            assert problems(after.view(), dialect) == []
    _as_received({entry.id for entry in before.entries()}, now, after, boundary)
    _receipt_of(boundary, now, after)
    found.after.set_id(boundary)
    assert found.after.view() == after.view()
    for name in ("tokens", "fresh_from", "usage_from", "anchor", "messages", "pins"):
        assert getattr(found.after, name) == getattr(after, name), name


def _as_received(known, now, after, boundary) -> None:
    """What was said since the draft is in the view, in the same order, without its signed thinking at most."""
    earlier = {i.entry.id: i for i in now.view() if isinstance(i, MessageItem) and i.entry.id not in known}
    shown = [i for i in after.view() if isinstance(i, MessageItem) and i.entry.id not in known]
    assert [item.entry.id for item in shown] == list(earlier)
    stripped = {(edit.entry, edit.part) for edit in boundary.edits if edit.kind == "stripped"}
    for item in shown:
        more = [e for e in item.edits if e not in earlier[item.entry.id].edits and e.kind != "repaired"]
        assert all((edit.entry, edit.part) in stripped for edit in more)


def _receipt_of(boundary, now, after) -> None:
    receipt = boundary.receipt
    assert (receipt.tokens_before, receipt.tokens_after) == (now.tokens, after.tokens)
    assert receipt.messages_after == len(after.items())
    assert sum(pair[1] for pair in receipt.by_category.values()) == sum(item.tokens for item in after.items())
    if not now.open_calls:
        assert receipt.messages_before == len(now.items())
        assert sum(pair[0] for pair in receipt.by_category.values()) == now.tokens


@given(drafts())
def test_the_next_one_folds_from_what_a_committed_draft_kept(made):
    log, ask, draft, _ = made
    _, boundary = committed(log, ask, draft)
    if not isinstance(boundary, Compacted):
        return
    kept = view_of(log).kept
    add(log, Message("user", (Text("Something new to do, please. " * 40),)))
    again = draft_of(log, msgspec.structs.replace(ask, reason="manual", number=2))
    if again is None or not isinstance(again.boundary, Compacted):
        return
    allowed = {entry.id for entry in view_of(log).kept}
    assert {entry.id for entry in kept} <= allowed
    if again.boundary.first_kept is not None:
        assert again.boundary.first_kept in allowed
    first, second = (msgspec.convert(b.ledger, Ledger) for b in (boundary, again.boundary))
    assert second.messages >= first.messages


@given(drafts())
def test_with_nothing_said_since_it_is_the_boundary_that_was_planned(made):
    _, ask, draft, before = made
    found = rebased(CompactionInput(before, ask, OFFLINE), draft)
    if isinstance(found, Nothing):
        assert found.why in ("no_gain", "signed_thinking"), found
        return
    assert found.boundary == draft.boundary


@given(drafts(), st.sampled_from(["undo", "compact"]))
def test_a_boundary_that_came_first_makes_it_void(made, act):
    log, ask, draft, _ = made
    found = [e for e in log.path() if isinstance(e, Compacted | Pruned)]
    if act == "undo" and found:
        add_entry(log, Lifted("", None, found[-1].id, True))
    else:
        add_entry(log, msgspec.structs.replace(draft.boundary, at=1.0))
    fold = view_of(log)
    assert not holds(draft, fold)
    outcome = rebased(CompactionInput(fold, ask, OFFLINE), draft)
    assert isinstance(outcome, Nothing)
    assert outcome.why == "void"


@given(drafts(), st.integers(1, 12))
def test_after_a_rewind_it_holds_only_while_its_cut_is_on_the_path(made, back):
    log, ask, draft, _ = made
    path = log.path()
    log.move(path[max(0, len(path) - back - 1)].id)
    here = {entry.id for entry in log.path()}
    outcome = rebased(CompactionInput(view_of(log), ask, OFFLINE), draft)
    if not isinstance(outcome, Nothing) and isinstance(outcome.boundary, Compacted):
        assert draft.boundary.first_kept is None or draft.boundary.first_kept in here
        boundary = add_entry(log, outcome.boundary)
        assert {*boundary.leading, *boundary.quoted} <= {entry.id for entry in log.path()}
        for dialect in DIALECTS:
            assert problems(view_of(log).view(), dialect) == []


@given(drafts())
def test_pins_and_rules_set_meanwhile_are_in_the_view_word_for_word(made):
    log, ask, draft, _ = made
    rule = add(log, Message("user", (Text(f"One more thing. {CONSTRAINTS[1]}"),)))
    target = next((e for e in log.path() if isinstance(e, Said) and e.message.text.strip()), rule)
    add_entry(log, Pinned("", None, target.id, on=True, text=target.message.text))
    committed(log, ask, draft)
    items = view_of(log).view()
    said = "\n".join((i.entry.message if isinstance(i, MessageItem) else i.message).text for i in items)
    assert CONSTRAINTS[1] in said
    words = " ".join(target.message.text.split())
    squeezed = " ".join(said.split())
    assert words in squeezed or words.replace("</conversation>", "") in squeezed


@pytest.mark.parametrize("position", ["before", "after"])
def test_a_fold_with_a_boundary_holds_what_a_store_would_hand_out(position):
    log = Log()
    for number in range(12):
        add(log, Message("user", (Text(f"Question {number} " + "words " * 120),)))
        add(log, Message("assistant", (Text(f"Answer {number} " + "words " * 120),)))
    policy = "codex" if position == "after" else "foldline"
    draft = draft_of(log, ask_for(policy))
    assert draft is not None
    fold = view_of(log).with_boundary(chained(draft.boundary, log.leaf))
    whole = ViewState([*log.path(), chained(draft.boundary, log.leaf)], counter=OFFLINE)
    assert fold.view() == whole.view()
    assert len(fold.entries()) < len(whole.entries())
