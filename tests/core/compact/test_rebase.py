"""A boundary planned earlier, applied to the current path: what holds, what is void, and why."""

import math
import re

import msgspec
import pytest
from tests.support.logs import add, add_entry, ask_for, view_of
from tests.support.talk import assistant, call, calls, log_of, repeat, result, signed, system, tool, user

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import plan
from foldline.core.compact.rebase import VOID, Rebased, drafted, holds, rebased
from foldline.core.compact.room import LEAVES
from foldline.core.decide.ask import Nothing
from foldline.core.decide.continuation import Continuation
from foldline.core.decide.price import Cache, Economy, Price
from foldline.core.log.entries import Compacted, Edit, Lifted, Live, Noted, Pinned, Pruned, Receipt
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Amount, Floor
from foldline.executor import execute, run_sync
from foldline.summarizers.offline import OfflineSummarizer

APART = Floor(system=300, tools=40)


def talked(turns: int = 8):
    log = log_of(user("Never touch migrations/ without asking me. Mend the login page."))
    for n in range(turns):
        add(log, assistant(repeat(f"I looked at part {n}", 40)))
        add(log, user(repeat(f"Go on with part {n}", 40)))
    return log


def draft_on(log, ask):
    outcome = run_sync(execute(plan(CompactionInput(view_of(log), ask, OFFLINE)), OfflineSummarizer()))
    assert not isinstance(outcome, Nothing), outcome
    return drafted(view_of(log), outcome)


def moved(log, draft, ask) -> Rebased:
    found = rebased(CompactionInput(view_of(log), ask, OFFLINE), draft)
    assert isinstance(found, Rebased), found
    return found


def test_with_nothing_said_since_it_is_the_planned_one():
    log, ask = talked(), ask_for(reason="threshold", context=1_700, overhead=APART)
    draft = draft_on(log, ask)
    assert moved(log, draft, ask).boundary == draft.boundary


def test_the_receipt_counts_what_came_since_on_both_sides():
    log, ask = talked(), ask_for(reason="threshold", context=1_700, overhead=APART)
    draft = draft_on(log, ask)
    more = [add(log, assistant("Done with it.")), add(log, user("And the logout page?"))]
    add_entry(log, Noted("", None, "title", {"title": "login"}))
    receipt, old = moved(log, draft, ask).boundary.receipt, draft.boundary.receipt
    added = sum(entry.tokens for entry in more)
    assert receipt.tokens_before == old.tokens_before + added
    assert receipt.tokens_after == old.tokens_after + added
    assert receipt.messages_before == old.messages_before + 2
    assert receipt.by_category["system prompt and tools"] == (340, 340)
    assert receipt.by_category["user"][0] == old.by_category["user"][0] + more[1].tokens
    assert receipt.dropped["messages"] == old.dropped["messages"]


def test_thinking_signed_meanwhile_is_taken_out_where_its_prefix_changes():
    log, ask = talked(), ask_for(reason="threshold", context=1_700)
    draft = draft_on(log, ask)
    thought = add(log, signed("I have thought about it."))
    add(log, user("Go on."))
    edits = moved(log, draft, ask).boundary.edits
    assert [(edit.kind, edit.part) for edit in edits if edit.entry == thought.id] == [("stripped", 0)]


def test_inside_a_signed_tool_loop_it_waits_and_then_is_committed():
    log, ask = talked(), ask_for(reason="threshold", context=6_000)
    draft = draft_on(log, msgspec.structs.replace(ask, reason="manual"))
    add(log, signed("Looking.", call("c1")))
    add(log, tool("c1"))
    found = rebased(CompactionInput(view_of(log), ask, OFFLINE), draft)
    assert isinstance(found, Nothing)
    assert found.why == "signed_thinking"
    add(log, assistant("Seen."))
    add(log, user("Good."))
    assert isinstance(
        rebased(CompactionInput(view_of(log), msgspec.structs.replace(ask, reason="manual"), OFFLINE), draft),
        Rebased,
    )


def test_a_checkpoint_that_kept_nothing_keeps_what_was_said_since():
    log, ask = talked(), ask_for("claude-code", context=1_700)
    add(log, assistant("All of it is done."))
    draft = draft_on(log, ask)
    assert draft.boundary.first_kept is None
    new = add(log, user("What is next?"))
    found = moved(log, draft, ask)
    assert found.boundary.first_kept == found.boundary.receipt.first_kept == new.id


@pytest.mark.parametrize("act", ["boundary", "lifted", "rewound", "pruned"])
def test_void_is_what_was_made_for_another_path(act):
    log, ask = talked(), ask_for(reason="threshold", context=1_700)
    draft = draft_on(log, ask)
    assert holds(draft, view_of(log))
    if act == "boundary":
        add_entry(log, draft.boundary)
    elif act == "lifted":
        add_entry(log, Lifted("", None, "x", lifted=True))
    elif act == "pruned":
        add_entry(log, Pruned("", None, Receipt("manual")))
    else:
        log.move(log.path()[2].id)
    assert not holds(draft, view_of(log))
    assert rebased(CompactionInput(view_of(log), ask, OFFLINE), draft) is VOID


def read(times: int = 12):
    """A session that a prune alone makes fit."""
    log = log_of(user("Read all of it."))
    for n in range(times):
        add(log, calls(f"c{n}"))
        add(log, tool(f"c{n}", f"line {n}\n" * 120))
    add(log, assistant("All read."))
    return log


def refused(log, draft, ask) -> Nothing:
    found = rebased(CompactionInput(view_of(log), ask, OFFLINE), draft)
    assert isinstance(found, Nothing), found
    return found


def test_the_fold_with_a_boundary_holds_what_its_view_needs_and_no_more():
    log = log_of(system("Be brief."), user("Mend the login page."))
    for n in range(8):
        add(log, assistant(repeat(f"I looked at part {n}", 40)))
        add(log, user(repeat(f"Go on with part {n}", 40)))
    ask = ask_for("codex", context=3_000)
    draft = draft_on(log, ask)
    boundary = draft.boundary
    assert isinstance(boundary, Compacted)
    assert boundary.leading
    assert boundary.quoted, "codex quotes what the user said"
    before, after = view_of(log), view_of(log).with_boundary(boundary)
    add_entry(log, boundary)
    whole = view_of(log)
    assert [item.tokens for item in after.view() if hasattr(item, "kind")] == [
        item.tokens for item in whole.view() if hasattr(item, "kind")
    ]
    assert after.tokens == whole.tokens
    assert [entry.id for entry in after.quoted] == list(boundary.quoted)
    path = [entry.id for entry in before.entries()]
    kept = path[path.index(boundary.first_kept) :] if boundary.first_kept else []
    assert {entry.id for entry in after.entries()} == {*boundary.leading, *boundary.quoted, *kept, ""}
    assert len(before.entries()) > len(after.entries())


def test_why_it_is_not_committed_is_told():
    log, ask = talked(), ask_for(reason="threshold", context=6_000)
    draft = draft_on(log, msgspec.structs.replace(ask, reason="manual"))
    add(log, signed("Looking.", call("c1")))
    add(log, tool("c1"))
    found = refused(log, draft, ask)
    assert found.detail.startswith("inside a tool loop with signed thinking")

    wide = refused(
        talked(), draft_on(talked(), ask_for(context=1_700)), ask_for(reason="threshold", context=60_000)
    )
    gained = int(re.search(r"[\d,]+", wide.detail)[0].replace(",", ""))
    assert 0 < gained < view_of(talked()).tokens

    log = talked()
    draft = draft_on(log, ask_for(reason="overflow", context=1_700))
    for n in range(12):
        add(log, assistant(repeat(f"part {n}", 80)))
        add(log, user(repeat(f"part {n}", 80)))
    found = refused(log, draft, ask_for(reason="overflow", context=1_700))
    assert re.fullmatch(r"[\d,]+ tokens would remain", found.detail)


def test_exactly_what_has_to_be_gained_is_enough():
    log, ask = talked(), ask_for(reason="threshold", context=1_700)
    draft = draft_on(log, ask)
    receipt = draft.boundary.receipt
    gained = receipt.tokens_before - receipt.tokens_after
    enough = msgspec.structs.replace(ask.policy, min_gain=Amount(tokens=gained))
    more = msgspec.structs.replace(ask.policy, min_gain=Amount(tokens=gained + 1))
    assert isinstance(moved(log, draft, msgspec.structs.replace(ask, policy=enough)), Rebased)
    assert refused(log, draft, msgspec.structs.replace(ask, policy=more)).why == "no_gain"


def test_what_was_planned_is_committed_as_it_is_while_nothing_came_between():
    log, ask = talked(), ask_for(reason="threshold", context=1_700)
    draft = draft_on(log, ask)
    least = msgspec.structs.replace(ask.policy, min_gain=Amount(tokens=1))
    small = ask_for(least, reason="threshold", context=draft.boundary.receipt.tokens_after // 2)
    assert isinstance(rebased(CompactionInput(view_of(log), small, OFFLINE), draft), Rebased)
    add(log, assistant("Done."))
    assert refused(log, draft, small).why == "too_large"


def test_a_draft_leaves_as_much_of_the_hard_trigger_free_as_any_automatic_fold():
    log, ask = talked(), ask_for(reason="threshold", context=1_700)
    draft = draft_on(log, ask)
    add(log, assistant("Done."))
    left = moved(log, draft, ask).boundary.receipt.tokens_after
    rules = msgspec.structs.replace(
        ask.policy,
        reserve=Amount(tokens=0),
        min_gain=Amount(tokens=1),
        hard=Amount(fraction=1.0, of="usable"),
    )
    enough = math.ceil(left / LEAVES)
    assert isinstance(moved(log, draft, ask_for(rules, reason="threshold", context=enough)), Rebased)
    assert refused(log, draft, ask_for(rules, reason="threshold", context=enough - 2)).why == "too_large"


@pytest.mark.parametrize("limit", ["soft", "hard"])
def test_a_prune_has_to_end_below_the_trigger(limit):
    log, ask = read(), ask_for(reason="threshold", context=4_000)
    draft = draft_on(log, ask)
    assert isinstance(draft.boundary, Pruned)
    add(log, user("Thank you."))
    left = moved(log, draft, ask).boundary.receipt.tokens_after

    def at(tokens):
        triggers = {"soft": None, "hard": None, limit: Amount(tokens=tokens)}
        rules = msgspec.structs.replace(ask.policy, **triggers, background=limit == "soft")
        return msgspec.structs.replace(ask, policy=rules)

    assert isinstance(moved(log, draft, at(left + 1)), Rebased)
    assert refused(log, draft, at(left)).why == "too_large"
    assert isinstance(moved(log, draft, msgspec.structs.replace(at(left), reason="manual")), Rebased)


def test_a_prune_is_void_where_what_it_edits_is_gone_and_takes_new_thinking_out():
    log, ask = read(), ask_for(reason="threshold", context=4_000)
    start = log.path()[0].id
    draft = draft_on(log, ask)
    thought = add(log, signed("I have thought about it."))
    add(log, user("Go on."))
    found = moved(log, draft, ask)
    edits = found.boundary.edits
    assert edits[: len(draft.boundary.edits)] == draft.boundary.edits
    new = edits[len(draft.boundary.edits) :]
    assert [(edit.entry, edit.kind) for edit in new] == [(thought.id, "stripped")]
    assert new[0].saved > 0
    assert found.after.tokens == found.boundary.receipt.tokens_after
    add_entry(log, found.boundary)
    last = next(
        entry
        for entry in reversed(log.path())
        if getattr(entry, "message", None) == tool("c11", "line 11\n" * 120)
    )
    short = Edit(last.id, 0, "pruned", result("c11", "(gone)"), 300)
    again = drafted(view_of(log), Pruned("", None, Receipt("manual"), edits=(short,)))
    add(log, user("And on."))
    by_hand = msgspec.structs.replace(ask, reason="manual")
    assert moved(log, again, by_hand).boundary.edits == (short,), "it is out already"
    log.move(start)
    assert not holds(draft, view_of(log))


def test_thinking_before_what_a_prune_edits_stays():
    log = log_of(user("Read all of it."))
    thought = add(log, signed("I begin."))
    add(log, user("Go on."))
    for n in range(12):
        add(log, calls(f"c{n}"))
        add(log, tool(f"c{n}", f"line {n}\n" * 120))
    add(log, assistant("All read."))
    draft = draft_on(log, ask_for(reason="threshold", context=4_000))
    assert isinstance(draft.boundary, Pruned)
    add(log, user("Thank you."))
    edits = moved(log, draft, ask_for(reason="threshold", context=4_000)).boundary.edits
    assert thought.id not in {edit.entry for edit in edits}


def test_a_cut_that_a_late_answer_made_illegal_is_void():
    log, ask = talked(), ask_for("claude-code", context=1_700)
    add(log, assistant("All of it is done."))
    draft = draft_on(log, ask)
    assert draft.boundary.first_kept is None
    open_call = add(log, calls("c1"))
    add(log, tool("c1"))
    assert not holds(msgspec.structs.replace(draft, newest=open_call.id), view_of(log))
    assert holds(draft, view_of(log))


def test_the_state_of_the_program_is_that_of_now_and_bounded():
    log, ask = talked(), ask_for(reason="threshold", context=1_700)
    draft = draft_on(log, ask)
    long_ago = Live("todos", "- mend it\n" * 2_000)
    live = msgspec.structs.replace(ask, live=(long_ago,), reason="manual")
    text = moved(log, draft, live).boundary.checkpoint.text
    assert "- mend it" in text
    assert text.count("- mend it") < 200


def test_a_pinned_message_that_the_view_quotes_is_not_quoted_again():
    log = talked()
    ask = ask_for("codex", context=3_000)
    draft = draft_on(log, ask)
    quoted = next(entry for entry in log.path() if entry.id in draft.boundary.quoted)
    add_entry(log, Pinned("", None, quoted.id, on=True, text=quoted.message.text))
    point = moved(log, draft, ask).boundary.checkpoint
    assert quoted.message.text not in point.text


def test_the_receipt_says_when_it_was_committed_and_what_the_draft_knew():
    log, ask = talked(), ask_for(reason="threshold", context=1_700)
    draft = draft_on(log, ask)
    old = draft.boundary.receipt
    noted = msgspec.structs.replace(old, notes=("written in two parts", "pays after 3 requests"))
    draft = msgspec.structs.replace(draft, boundary=msgspec.structs.replace(draft.boundary, receipt=noted))
    add(log, assistant("Done."))
    later = msgspec.structs.replace(ask, now="2026-11-22T00:00:00Z")
    found = moved(log, draft, later)
    receipt = found.boundary.receipt
    assert receipt.created_at == "2026-11-22T00:00:00Z"
    assert receipt.notes == ("written in two parts",), "what a draft says of its price is out of date"
    assert receipt.messages_after == old.messages_after + 1 == len(found.after.items())
    assert found.after.tokens + ask.overhead_tokens == receipt.tokens_after


@pytest.mark.parametrize("policy", ["foldline", "claude-code"])
def test_a_fold_that_was_made_with_a_nameless_boundary_takes_its_name(policy):
    log, ask = talked(), ask_for(policy, context=1_700)
    add(log, assistant("All of it is done."))
    draft = draft_on(log, ask)
    found = moved(log, draft, ask)
    placed = add_entry(log, found.boundary)
    found.after.set_id(placed)
    whole = view_of(log)
    assert found.after.boundaries == whole.boundaries == (placed.id,)
    assert found.after.boundary == whole.boundary
    assert found.after.entries()[-1] == placed
    assert [getattr(item, "source", None) for item in found.after.view()] == [
        getattr(item, "source", None) for item in whole.view()
    ]


def test_a_prune_takes_its_name_and_leaves_the_checkpoint_before_it():
    log, ask = talked(), ask_for(context=1_700)
    first = add_entry(log, draft_on(log, ask).boundary)
    for n in range(12):
        add(log, calls(f"c{n}"))
        add(log, tool(f"c{n}", f"line {n}\n" * 120))
    add(log, assistant("All read."))
    found = moved(log, draft_on(log, ask_for(reason="threshold", context=4_000)), ask)
    assert isinstance(found.boundary, Pruned)
    placed = add_entry(log, found.boundary)
    found.after.set_id(placed)
    assert found.after.boundaries[-2:] == (first.id, placed.id)
    assert found.after.boundary == first
    assert found.after.view() == view_of(log).view()


def test_where_the_session_stands_is_said_while_nothing_kept_shows_it():
    log, ask = talked(), ask_for("claude-code", context=1_700, reason="manual")
    add(log, assistant("Shall I go on?"))
    draft = draft_on(log, ask)
    edited = msgspec.structs.replace(
        ask, continuation=Continuation("waiting", "question", question="Shall I go on?")
    )
    assert "<standing" in moved(log, draft, edited).boundary.checkpoint.text
    add(log, assistant("I mean with the page."))
    found = moved(log, draft, edited)
    assert found.boundary.first_kept is not None
    assert "<standing" not in found.boundary.checkpoint.text


def test_whether_it_pays_is_worked_out_anew_with_what_the_summary_cost():
    economy = Economy(
        Price(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75), Cache(1_000_000, idle=1.0)
    )
    log, ask = talked(), ask_for(reason="threshold", context=1_700, overhead=APART, economy=economy)
    draft = draft_on(log, ask)
    cost = msgspec.structs.replace(draft.boundary.receipt, price=0.25)
    draft = msgspec.structs.replace(draft, boundary=msgspec.structs.replace(draft.boundary, receipt=cost))
    add(log, assistant("Done with it."))
    receipt = moved(log, draft, ask).boundary.receipt
    sizes = (receipt.tokens_before, receipt.tokens_after)
    assert receipt.notes[-1] == economy.balance(*sizes, same=340, summary=0.25).words
    assert receipt.notes[-1] != economy.balance(*sizes, same=340, summary=0).words
    assert sum("pays" in note for note in receipt.notes) <= 1


def test_what_was_said_since_it_was_planned_is_new_behind_it():
    log, ask = talked(), ask_for(reason="threshold", context=1_700, overhead=APART)
    draft = draft_on(log, ask)
    add(log, assistant("Done with it."))
    add(log, user("And the logout page?"))
    found = moved(log, draft, ask)
    assert found.boundary.seen == draft.newest
    assert len(found.after.kept) - found.after.fresh_from == 2
    add_entry(log, found.boundary)
    assert view_of(log).fresh_from == found.after.fresh_from, "read from the log it is the same"
    add(log, assistant("Yes."))
    assert len(view_of(log).kept) - view_of(log).fresh_from == 3


SECRET = "Pelican7!Harbor#42"


def test_a_draft_says_no_secret_that_was_given_since():
    log, ask = talked(), ask_for(reason="threshold", context=1_700, overhead=APART)
    draft = draft_on(log, ask)
    point = msgspec.structs.replace(draft.boundary.checkpoint, summary=f"Log in with {SECRET}.")
    draft = msgspec.structs.replace(draft, boundary=msgspec.structs.replace(draft.boundary, checkpoint=point))
    assert SECRET in moved(log, draft, ask).boundary.checkpoint.text
    add(log, user(f"The password={SECRET} is the new one."))
    found = moved(log, draft, ask)
    assert "Log in with [redacted" in found.boundary.checkpoint.text
    assert SECRET not in str(msgspec.to_builtins(found.boundary))


def test_a_prune_that_was_drafted_says_no_secret_of_the_view():
    log, ask = talked(), ask_for(reason="manual", context=20_000, overhead=APART)
    add(log, user(f"The password={SECRET} is the new one."))
    add(log, calls("a"))
    answer = add(log, tool("a", repeat("a line", 2_000)))
    edit = Edit(answer.id, 0, "blanked", result("a", f"[cleared; it said {SECRET}]"), saved=1_500)
    prune = Pruned("", None, Receipt("threshold", notes=(f"{SECRET} was there",)), (edit,))
    draft = drafted(view_of(log), prune)
    add(log, assistant("Done."))
    found = moved(log, draft, ask)
    assert "[cleared; it said [redacted" in str(found.boundary.edits[0].replacement)
    assert SECRET not in str(msgspec.to_builtins(found.boundary))
