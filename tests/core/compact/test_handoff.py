"""A hand-off: what the new session gets, and what the old one keeps."""

import msgspec
import pytest
from tests.support.log import Log
from tests.support.logs import DIALECTS, add, ask_for, compact_log, problems, view_of
from tests.support.talk import assistant, call, calls, entries, log_of, repeat, system, tool, user

from foldline.core.checkpoint.checkpoint import recognise
from foldline.core.checkpoint.request import FAILED, SummaryReply
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.handoff import EDITED, display, handoff, opening, start_of
from foldline.core.compact.rebase import drafted, with_summary
from foldline.core.decide.ask import FoldRequest, Nothing
from foldline.core.decide.presets import preset
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted, Live, Noted, Pinned, StandingConstraints
from foldline.core.log.log import verify
from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.core.view_items import AddedItem
from foldline.errors import FloorExceeded

LINK = Noted("", None, "link", {"session": "old", "how": "handoff"}, at=1.0)
RULE = "Never touch anything under migrations/ without asking me first."
AMP = preset("amp")


def worked() -> Log:
    log = log_of(system("You mend code."), user(f"Mend the login page. {RULE}"))
    add(log, calls("c1", text="I will read it."))
    add(log, tool("c1", "def login(user): return user.name\n" * 40))
    add(log, assistant(repeat("The page calls login in src/login.py", 30)))
    add(log, user("Now write the tests for src/login.py."))
    return log


def hand_over(log: Log, ask, *replies, text: str | None = None):
    fold = view_of(log)
    start = start_of(fold, LINK)
    steps = handoff(CompactionInput(fold, ask, OFFLINE), start, text=text)
    asked, answers = [], list(replies)
    try:
        asked.append(next(steps))
        while True:
            asked.append(steps.send(answers.pop(0) if answers else None))
    except StopIteration as end:
        outcome = end.value
    return outcome, asked, start


def goal(text: str = "Write the tests for src/login.py", policy=AMP, **more):
    return msgspec.structs.replace(ask_for(policy, context=8_000, **more), goal=text)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_new_session_starts_with_its_system_prompt_and_the_checkpoint_and_is_whole(dialect):
    outcome, asked, start = hand_over(worked(), goal())

    assert isinstance(outcome, Compacted)
    entries = opening(start, outcome)
    assert verify(entries) == []
    items = ViewState(entries, counter=OFFLINE).view()
    assert problems(items, dialect) == []
    assert [i.kind if isinstance(i, AddedItem) else i.entry.message.role for i in items] == [
        "system",
        "checkpoint",
    ]
    assert [r.kind for r in asked] == ["handoff"]
    assert asked[0].goal == "Write the tests for src/login.py"


def test_the_users_rules_pins_and_live_state_go_over_word_for_word():
    log = worked()
    path = log.path()
    log.append([*_pinned(log, path[2].id, "I will read it.")], seen=log.leaf)
    todos = Live("todos", "- [ ] tests")

    outcome, _, start = hand_over(log, msgspec.structs.replace(goal(), live=(todos,)))

    assert isinstance(outcome, Compacted)
    text = outcome.checkpoint.text
    assert RULE in text
    assert "I will read it.\n</pinned>" in text
    assert outcome.checkpoint.live == (todos,)
    assert [fact.text for fact in msgspec.convert(outcome.ledger, Ledger).constraints] == [RULE]
    assert ViewState(opening(start, outcome), counter=OFFLINE).pins.keys() == {path[2].id}


def _pinned(log: Log, target: str, text: str):
    from foldline.core.log.log import chained

    return [chained(Pinned("", None, target, on=True, text=text), log.leaf)]


def test_an_earlier_checkpoint_goes_over_with_what_the_view_holds():
    log = worked()
    assert isinstance(compact_log(log, ask_for("claude-code")), Compacted)
    add(log, assistant(repeat("Here are the tests in tests/test_login.py", 10)))

    outcome, asked, _ = hand_over(log, goal())

    assert isinstance(outcome, Compacted)
    assert asked[0].previous
    assert RULE in outcome.checkpoint.text


def test_without_a_goal_it_is_for_the_newest_request():
    _, asked, _ = hand_over(worked(), msgspec.structs.replace(goal(), goal=None))
    assert asked[0].goal == "Now write the tests for src/login.py."


def test_a_summary_that_is_none_is_asked_for_again_and_then_written_by_rule():
    bad = SummaryReply("Sure, I will write the tests.", "model:test")

    outcome, asked, _ = hand_over(worked(), goal(), bad, bad)

    assert isinstance(outcome, Compacted)
    assert len(asked) == 2
    assert outcome.receipt.summarizer == "offline"
    assert outcome.receipt.messages_before > outcome.receipt.messages_after == 2


def test_what_the_user_wrote_is_taken_as_it_is_and_a_rule_taken_out_of_it_holds_no_more():
    text = "## Task\nWrite the tests."

    outcome, asked, _ = hand_over(worked(), goal(), text=text)

    assert isinstance(outcome, Compacted)
    assert asked == []
    assert (outcome.checkpoint.summary, outcome.receipt.summarizer) == (text, EDITED)
    assert outcome.ledger.get("constraints", []) in ([], ())
    assert outcome.receipt.constraints == StandingConstraints(0, (), (RULE,))
    held, _, _ = hand_over(worked(), goal(), text=f"{text}\n{RULE}")
    assert len(held.ledger["constraints"]) == 1
    assert held.receipt.constraints == StandingConstraints(1, (RULE,))


def test_a_text_larger_than_the_window_is_refused_with_the_floor():
    with pytest.raises(FloorExceeded, match="cannot fit"):
        hand_over(worked(), goal(), text="word " * 9_000)


def test_a_hand_off_that_never_fits_names_the_smallest_view_that_was_tried():
    sizes = [3_000, 900, 1_400, 700, 2_000, 1_100]
    replies = [SummaryReply("word " * size, "offline") for size in sizes]
    ask = msgspec.structs.replace(goal(), target=500)
    with pytest.raises(FloorExceeded) as refused:
        hand_over(worked(), ask, *replies)
    assert 700 < refused.value.floor < 1_000, "the view with the summary of 700 words"
    assert refused.value.budget == 500


def test_a_preview_edited_by_hand_names_the_rules_that_went_out_with_the_edit():
    log = worked()
    state = view_of(log)
    made = compact_log(log, ask_for(AMP, context=8_000, goal="Go on"))
    assert isinstance(made, Compacted)
    edited = with_summary(drafted(state, made), "## Goal\nWrite the tests.")
    assert isinstance(edited.boundary, Compacted)
    assert edited.boundary.receipt.constraints == StandingConstraints(0, (), (RULE,))
    whole = with_summary(drafted(state, made), f"## Goal\nWrite the tests.\n- {RULE}")
    assert whole.boundary.receipt.constraints == made.receipt.constraints


def test_nothing_said_is_nothing_to_hand_over():
    assert hand_over(log_of(system()), goal())[0] == Nothing("nothing_to_fold")


def test_a_later_compaction_of_the_new_session_updates_the_checkpoint():
    outcome, _, start = hand_over(worked(), goal())
    log = Log(opening(start, outcome))
    for n in range(6):
        add(log, user(repeat(f"Write test {n}", 60)))
        add(log, assistant(repeat(f"Wrote test {n} in tests/test_login.py", 60)))

    again = compact_log(log, ask_for("foldline"))

    assert isinstance(again, Compacted)
    assert RULE in again.checkpoint.text
    assert recognise([ViewState(log.path(), counter=OFFLINE).view()[1].message]) is not None


def test_the_receipt_counts_every_summary_that_was_asked_for():
    bad = SummaryReply(
        "Sure, I will write the tests.", "model:test", usage=Usage(input=100, output=7), price=0.25
    )

    outcome, asked, _ = hand_over(worked(), goal(), bad, bad)

    assert isinstance(outcome, Compacted)
    assert len(asked) == 2
    assert (outcome.receipt.usage.input, outcome.receipt.usage.output) == (200, 14)
    assert outcome.receipt.price == 0.5


def test_instructions_and_earlier_summaries_go_over_wherever_they_stand():
    block = "<user_instructions>\nOil the wheel.\n</user_instructions>"
    log = log_of(system("You mend code."), user(f"{block}\nMend the login page."), assistant("Mended."))
    add(log, system("# Prices\nAn hour costs 90 euro."))
    add(
        log,
        user(
            "You are in the middle of a conversation that has been summarized.\n\nThe logout page was mended."
        ),
    )
    add(log, assistant("Go on."))
    boundary, _, start = hand_over(log, goal())
    assert [entry.message.text for entry in start.leading] == [
        "You mend code.",
        "# Prices\nAn hour costs 90 euro.",
    ]
    carried = [one.text for one in boundary.checkpoint.carried]
    assert carried == ["The logout page was mended.", block]


# ---- two sentences for people


TALK = (
    user("Port the parser to Rust. " + "It reads the settings of every service, line by line. " * 12),
    assistant("I begin with the lexer.", call("c1", path="src/lexer.rs")),
    tool("c1", "fn main() {}\n" * 40),
    assistant("The lexer is ported. Next I will port the grammar."),
)
CODE = "Port the parser to Rust"


def display_text(*replies: SummaryReply | None) -> str:
    state = ViewState(entries(*TALK, tokens=200), counter=OFFLINE)
    ask = FoldRequest(policy=preset("foldline"), window=Window(context=32_000), reason="manual")
    steps = display(CompactionInput(state, ask, OFFLINE))
    request = next(steps)
    assert request.kind == "display"
    assert [entry.message for entry in request.folded] == list(TALK)
    with pytest.raises(StopIteration) as end:
        steps.send(*replies)
    return end.value.value


def test_a_models_two_sentences_are_taken_on_one_line():
    reply = SummaryReply("The lexer was ported to Rust.\nThe grammar is open.", "model:m")
    assert display_text(reply) == "The lexer was ported to Rust. The grammar is open."


@pytest.mark.parametrize(
    "reply",
    [None, SummaryReply("", "m", FAILED), SummaryReply("", "m"), SummaryReply("x " * 4_000, "m", "length")],
)
def test_code_writes_them_where_no_model_did(reply):
    assert display_text(reply).startswith(CODE)
    assert "Open: " in display_text(reply)


def test_with_nothing_said_there_is_nothing_to_tell():
    ask = FoldRequest(policy=preset("foldline"), window=Window(context=32_000), reason="manual")
    steps = display(CompactionInput(ViewState(counter=OFFLINE), ask, OFFLINE))
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert end.value.value == "Nothing was asked yet. Open: nothing that is known."
