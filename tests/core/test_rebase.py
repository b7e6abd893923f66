"""A boundary that was planned a while ago, put onto the path as it is now: what holds, what is void, and why."""

import msgspec
import pytest
from tests.support.logs import ask_for, fold_of, put, say
from tests.support.talk import assistant, call, calls, log_of, long, signed, tool, user

from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Lifted, Noted, Pinned, Pruned, Receipt
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Floor
from foldline.core.plan import plan
from foldline.core.rebase import VOID, Rebased, drafted, holds, lifted, rebased
from foldline.executor import execute, run_sync
from foldline.summarizers.offline import OfflineSummarizer

APART = Floor(system=300, tools=40)


def talked(turns: int = 8):
    log = log_of(user("Never touch migrations/ without asking me. Mend the login page."))
    for n in range(turns):
        say(log, assistant(long(f"I looked at part {n}", 40)))
        say(log, user(long(f"Go on with part {n}", 40)))
    return log


def draft_on(log, ask):
    outcome = run_sync(execute(plan(fold_of(log), ask, OFFLINE), OfflineSummarizer()))
    assert not isinstance(outcome, Nothing), outcome
    return drafted(fold_of(log), outcome)


def moved(log, draft, ask) -> Rebased:
    found = rebased(draft, fold_of(log), ask, OFFLINE)
    assert isinstance(found, Rebased), found
    return found


def test_with_nothing_said_since_it_is_the_planned_one():
    log, ask = talked(), ask_for(reason="threshold", context=1_500, apart=APART)
    draft = draft_on(log, ask)
    assert moved(log, draft, ask).boundary == draft.boundary


def test_the_receipt_counts_what_came_since_on_both_sides():
    log, ask = talked(), ask_for(reason="threshold", context=1_500, apart=APART)
    draft = draft_on(log, ask)
    more = [say(log, assistant("Done with it.")), say(log, user("And the logout page?"))]
    put(log, Noted("", None, "title", {"title": "login"}))
    receipt, old = moved(log, draft, ask).boundary.receipt, draft.boundary.receipt
    added = sum(entry.tokens for entry in more)
    assert receipt.tokens_before == old.tokens_before + added
    assert receipt.tokens_after == old.tokens_after + added
    assert receipt.messages_before == old.messages_before + 2
    assert receipt.by_category["system prompt and tools"] == (340, 340)
    assert receipt.by_category["user"][0] == old.by_category["user"][0] + more[1].tokens
    assert receipt.dropped["messages"] == old.dropped["messages"]


def test_after_a_rewind_the_receipt_counts_the_view_as_it_is():
    log, ask = talked(30), ask_for(reason="threshold", context=9_000, apart=APART)
    draft = draft_on(log, ask)
    log.move(log.path()[-2].id)  # the newest message that the draft was made on is not on the path any more
    say(log, user(long("Then go on with something else", 40)))
    receipt = moved(log, draft, ask).boundary.receipt
    assert sum(before for before, _ in receipt.by_category.values()) == receipt.tokens_before
    assert sum(after for _, after in receipt.by_category.values()) == receipt.tokens_after


def test_a_reason_that_changed_stands_in_the_receipt():
    log, ask = talked(), ask_for(reason="threshold", context=1_500)
    draft = draft_on(log, ask)
    say(log, assistant("Done."))
    found = moved(log, draft, msgspec.structs.replace(ask, reason="overflow"))
    assert found.boundary.receipt.reason == "overflow"


def test_pins_and_the_number_are_those_of_now():
    log, ask = talked(), ask_for(reason="threshold", context=1_500)
    draft = draft_on(log, ask)
    first = log.path()[0]
    put(log, Pinned("", None, first.id, on=True, text=first.message.text))
    point = moved(log, draft, msgspec.structs.replace(ask, number=4)).boundary.checkpoint
    assert first.message.text in point.text
    assert point.number == 4


def test_thinking_signed_meanwhile_is_taken_out_where_its_prefix_changes():
    log, ask = talked(), ask_for(reason="threshold", context=1_500)
    draft = draft_on(log, ask)
    thought = say(log, signed("I have thought about it."))
    say(log, user("Go on."))
    edits = moved(log, draft, ask).boundary.edits
    assert [(edit.kind, edit.part) for edit in edits if edit.entry == thought.id] == [("stripped", 0)]


def test_inside_a_signed_tool_loop_it_waits_and_then_is_committed():
    log, ask = talked(), ask_for(reason="threshold", context=6_000)
    draft = draft_on(log, msgspec.structs.replace(ask, reason="manual"))
    say(log, signed("Looking.", call("c1")))
    say(log, tool("c1"))
    found = rebased(draft, fold_of(log), ask, OFFLINE)
    assert isinstance(found, Nothing)
    assert found.why == "signed_thinking"
    say(log, assistant("Seen."))
    say(log, user("Good."))
    assert isinstance(
        rebased(draft, fold_of(log), msgspec.structs.replace(ask, reason="manual"), OFFLINE), Rebased
    )


def test_what_leaves_too_much_is_not_committed_by_itself_but_by_hand():
    log, ask = talked(), ask_for(reason="overflow", context=1_500)
    draft = draft_on(log, ask)
    for n in range(12):
        say(log, assistant(long(f"part {n}", 40)))
        say(log, user(long(f"part {n}", 40)))
    found = rebased(draft, fold_of(log), ask, OFFLINE)
    assert isinstance(found, Nothing)
    assert found.why == "too_large"
    by_hand = msgspec.structs.replace(ask, reason="manual")
    assert isinstance(rebased(draft, fold_of(log), by_hand, OFFLINE), Rebased)


def test_what_gains_too_little_is_not_committed():
    log, ask = talked(), ask_for(reason="manual", context=1_500)
    draft = draft_on(log, ask)
    wide = ask_for(reason="threshold", context=60_000)
    found = rebased(draft, fold_of(log), wide, OFFLINE)
    assert isinstance(found, Nothing)
    assert found.why == "no_gain"


def test_a_checkpoint_that_kept_nothing_keeps_what_was_said_since():
    log, ask = talked(), ask_for("claude-code", context=1_500)
    say(log, assistant("All of it is done."))
    draft = draft_on(log, ask)
    assert draft.boundary.first_kept is None
    new = say(log, user("What is next?"))
    found = moved(log, draft, ask)
    assert found.boundary.first_kept == found.boundary.receipt.first_kept == new.id


def test_a_prune_is_moved_with_its_edits_while_its_entries_are_there():
    log = log_of(user("Read all of it."))
    for n in range(12):
        say(log, calls(f"c{n}"))
        say(log, tool(f"c{n}", f"line {n}\n" * 120))
    say(log, assistant("All read."))
    ask = ask_for(reason="threshold", context=4_000)
    draft = draft_on(log, ask)
    assert isinstance(draft.boundary, Pruned)
    say(log, user("Thank you."))
    assert moved(log, draft, ask).boundary.edits == draft.boundary.edits
    for n in range(12):
        say(log, user(long(f"More {n}", 60)))
        say(log, assistant(long(f"Yes {n}", 60)))
    found = rebased(draft, fold_of(log), ask, OFFLINE)
    assert isinstance(found, Nothing)
    assert found.why == "too_large", "a prune alone is enough only below the soft trigger"


@pytest.mark.parametrize("act", ["boundary", "lifted", "rewound", "pruned"])
def test_void_is_what_was_made_for_another_path(act):
    log, ask = talked(), ask_for(reason="threshold", context=1_500)
    draft = draft_on(log, ask)
    assert holds(draft, fold_of(log))
    if act == "boundary":
        put(log, draft.boundary)
    elif act == "lifted":
        put(log, Lifted("", None, "x", lifted=True))
    elif act == "pruned":
        put(log, Pruned("", None, Receipt("manual")))
    else:
        log.move(log.path()[2].id)
    assert not holds(draft, fold_of(log))
    assert rebased(draft, fold_of(log), ask, OFFLINE) is VOID


def test_lifted_are_those_that_are_undone_now():
    path = [Lifted("1", None, "a", True), Lifted("2", "1", "b", True), Lifted("3", "2", "a", False)]
    assert lifted(path) == {"b"}
