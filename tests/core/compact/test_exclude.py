"""Messages that the user excludes: what goes with them, what must stay, and that no checkpoint mentions them."""

import msgspec
import pytest
from tests.support.log import Log
from tests.support.logs import DIALECTS, add, add_entry, ask_for, compact_log, problems, view_of
from tests.support.talk import (
    assistant,
    call,
    calls,
    image,
    log_of,
    repeat,
    result,
    signed,
    system,
    text_of,
    tool,
    user,
)

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.exclude import exclude
from foldline.core.cut.exclude import excluded
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.table import collect
from foldline.core.log.entries import Compacted, Lifted, Pinned, Said
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolResult
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.errors import InputError


def said(log: Log) -> list[Said]:
    return [entry for entry in log.path() if isinstance(entry, Said)]


def take_out(log: Log, number: int, part: int | None = None):
    """Exclude a message by its number, and append the boundary."""
    job = CompactionInput(view_of(log), ask_for(), OFFLINE)
    return add_entry(log, exclude(job, said(log)[number].id, part))


def refused(log: Log, number: int, why: str, part: int | None = None) -> None:
    with pytest.raises(InputError, match=why):
        take_out(log, number, part)


def shown(log: Log) -> str:
    """Return the text of the view, which every dialect must be able to send."""
    items = view_of(log).view()
    assert all(problems(items, dialect) == [] for dialect in DIALECTS)
    return text_of(items)


def talk(*more: Message) -> Log:
    return log_of(
        user("first question"),
        assistant("first answer"),
        user("the zebra is striped"),
        assistant("so it is"),
        *more,
    )


def test_a_message_leaves_the_view_and_an_undo_brings_it_back():
    log = talk(user("and now?"))
    before = view_of(log)
    made = take_out(log, 2)
    assert "zebra" not in shown(log)
    assert "so it is" in shown(log)
    after = view_of(log)
    assert made.receipt.reason == "manual"
    assert (made.receipt.tokens_before, made.receipt.tokens_after) == (before.tokens, after.tokens)
    assert before.tokens - after.tokens == said(log)[2].tokens
    assert made.receipt.notes == (
        f"taken out of the context by the user: text of entry {said(log)[2].id} (user)",
    )
    add_entry(log, Lifted("", None, made.id, lifted=True))
    assert view_of(log).view() == before.view()
    add_entry(log, Lifted("", None, made.id, lifted=False))
    assert "zebra" not in shown(log)


def test_a_call_takes_its_result_along_and_a_result_alone_leaves_a_note():
    both = log_of(user("read"), calls("a", "b"), tool("a", "alpha"), tool("b", "beta"), assistant("done"))
    take_out(both, 1, 0)
    assert "alpha" not in shown(both)
    assert "beta" in shown(both)
    alone = log_of(user("read"), calls("a", "b"), tool("a", "alpha"), tool("b", "beta"), assistant("done"))
    made = take_out(alone, 2)
    note = f"[taken out of the context by the user; entry {said(alone)[2].id}]"
    assert "alpha" not in shown(alone)
    assert note in shown(alone)
    assert made.edits[0].replacement == ToolResult("a", (Text(note),))
    whole = take_out(alone, 1)
    assert note not in shown(alone)
    assert "beta" not in shown(alone)
    assert sum(edit.saved for edit in whole.edits) == sum(
        one.tokens - message_tokens(Message(one.message.role), OFFLINE) for one in said(alone)[1:4]
    )


def test_no_fact_is_taken_from_the_note_in_a_results_place():
    log = log_of(user("read"), calls("a"), tool("a", "alpha", is_error=True), assistant("done"))
    take_out(log, 2)
    found = collect(view_of(log).kept)
    assert found.names == ()
    assert all(said(log)[2].id not in item.text + item.more for item in found.items)


def test_an_image_goes_and_the_words_beside_it_stay():
    log = log_of(image("what is this?"), assistant("a cat"), user("and now?"))
    parts = said(log)[0].message.parts
    place = next(at for at, part in enumerate(parts) if isinstance(part, Media))
    take_out(log, 0, place)
    kept = view_of(log).view()[0]
    assert "what is this?" in shown(log)
    assert [edit.part for edit in kept.edits] == [place]


def test_thinking_goes_with_what_it_led_to():
    reply = msgspec.structs.replace(assistant("an answer"), parts=(Thinking("hm"), Text("an answer")))
    log = log_of(user("go"), reply, user("and now?"))
    made = take_out(log, 1, 1)
    assert {edit.part for edit in made.edits} == {0, 1}
    assert "hm" not in shown(log)


def test_signed_thinking_behind_it_is_stripped_and_an_open_loop_refuses():
    log = log_of(user("the zebra"), assistant("yes"), user("go"), signed("look", call("a")), tool("a"))
    refused(log, 0, "unfinished tool loop has signed")
    take_out(log, 4)
    add(log, assistant("done"))
    made = take_out(log, 0)
    assert [edit.kind for edit in made.edits] == ["excluded", "stripped"]
    assert "zebra" not in shown(log)


def test_what_a_provider_ran_goes_whole():
    run = Opaque(
        "anthropic", "server_tool_use", {"type": "server_tool_use", "id": "srv", "input": {"q": "zebra"}}
    )
    found = Opaque(
        "anthropic", "web_search_tool_result", {"tool_use_id": "srv", "content": [{"text": "striped"}]}
    )
    log = log_of(user("go"), Message("assistant", (run, found, Text("done"))), user("and now?"))
    assert {edit.part for edit in take_out(log, 1, 1).edits} == {0, 1}


def test_what_has_to_stay_is_refused_with_the_reason():
    log = log_of(system(), user("go"), assistant("yes"), user("waiting"))
    refused(log, 0, "applies to the whole session")
    refused(log, 3, "nothing would be left for the model to answer")
    refused(log, 1, "has no part 3", part=3)
    add_entry(log, Pinned("", None, said(log)[1].id, on=True, text="go"))
    refused(log, 1, "is pinned")
    add_entry(log, Pinned("", None, said(log)[1].id, on=False))
    take_out(log, 1)
    refused(log, 1, "already taken out of the context")
    add_entry(log, Pinned("", None, said(log)[1].id, on=True, text="go"))
    assert "go" not in shown(log), "a pin of it that came another way does not count meanwhile"
    refused(log_of(user(" "), assistant("yes")), 0, "is empty")
    open_call = log_of(user("go"), calls("a", "b"), tool("a"))
    refused(open_call, 1, "still waits for its result", part=1)


def test_what_was_folded_is_refused():
    log = log_of(
        *[m for n in range(12) for m in (user(f"{n} " + repeat("why")), assistant(f"{n} " + repeat("so")))]
    )
    assert isinstance(compact_log(log, ask_for(context=3_000)), Compacted)
    refused(log, 0, "undo the fold")


@pytest.mark.parametrize("policy", ["foldline", "codex", "pi", "claude-code", "gencode"])
def test_no_fold_tells_of_it_nor_keeps_its_rules(policy):
    log = log_of(
        user("Never touch the zebra table."),
        calls("z"),
        tool("z", "zebra.py line 1"),
        assistant("the zebra is safe"),
    )
    for n in range(10):
        add(log, user(f"{n} " + repeat("why")))
        add(log, assistant(f"{n} " + repeat("so")))
    for number in (0, 1, 3):
        take_out(log, number)
    for _ in range(2):
        made = compact_log(log, ask_for(policy, context=3_000))
        assert isinstance(made, Compacted)
        assert "zebra" not in made.checkpoint.text + str(made.ledger)
        assert set(excluded(log.path())) == {said(log)[number].id for number in (0, 1, 2, 3)}
        for n in range(4):
            add(log, user(f"{n} " + repeat("and")))
            add(log, assistant(f"{n} " + repeat("then")))
    assert "zebra" not in shown(log)


def test_what_is_out_of_the_kept_messages_stays_out_behind_a_fold():
    log = log_of(
        *[m for n in range(12) for m in (user(f"{n} " + repeat("why")), assistant(f"{n} " + repeat("so")))]
    )
    add(log, calls("z", text="let me see"))
    add(log, tool("z", "zebra"))
    add(log, assistant("the zebra is striped"))
    add(log, user("and now?"))
    result_, answer, last = (entry.id for entry in said(log)[-3:])
    take_out(log, -3)
    take_out(log, -2)
    made = compact_log(log, ask_for(context=3_000))
    assert isinstance(made, Compacted)
    assert [entry.id for entry in view_of(log).kept][-2:] == [result_, last]
    assert {edit.entry for edit in made.edits} >= {result_, answer}
    assert "zebra" not in shown(log)


def test_the_checkpoint_tells_of_it_no_more_where_it_was_made_before():
    """A checkpoint also quotes rules and the newest request of messages that are kept after it."""
    log = log_of(
        *[m for n in range(12) for m in (user(f"{n} " + repeat("why")), assistant(f"{n} " + repeat("so")))]
    )
    rule = add(log, user("Never touch the zebra table. Then go on."))
    add(log, assistant("I will not."))
    assert isinstance(compact_log(log, ask_for(context=3_000)), Compacted)
    state = view_of(log)
    assert rule.id in {entry.id for entry in state.kept}
    assert state.boundary is not None
    assert "zebra" in state.boundary.checkpoint.text
    made = take_out(log, len(said(log)) - 2)
    state = view_of(log)
    assert state.boundary is not None
    assert "zebra" not in shown(log)
    assert msgspec.convert(state.boundary.ledger, Ledger).constraints == ()
    add(log, user(repeat("more", 900)))
    add(log, assistant("yes"))
    later = compact_log(log, ask_for(context=3_000))
    assert isinstance(later, Compacted)
    assert "zebra" not in later.checkpoint.text + str(later.ledger)
    add_entry(log, Lifted("", None, later.id, lifted=True))
    add_entry(log, Lifted("", None, made.id, lifted=True))
    assert "zebra" in view_of(log).boundary.checkpoint.text  # pyright: ignore


def test_marked_words_go_with_their_message():
    log = talk(user("<keep>the zebra code is 7</keep>"), assistant("noted"), user("and now?"))
    assert [mark.text for mark in view_of(log).marks.values()] == ["the zebra code is 7"]
    take_out(log, 4)
    assert not view_of(log).marks


def test_something_new_is_still_to_be_folded_behind_it():
    log = log_of(
        *[m for n in range(12) for m in (user(f"{n} " + repeat("why")), assistant(f"{n} " + repeat("so")))]
    )
    take_out(log, 3)
    assert isinstance(compact_log(log, ask_for(context=3_000)), Compacted)


def test_a_result_after_its_note_pairs_with_its_call():
    log = log_of(
        user("go"),
        assistant("", call("a")),
        Message("user", (result("a", "zebra"), Text("go on"))),
        assistant("ok"),
    )
    take_out(log, 2, 0)
    assert "zebra" not in shown(log)
    assert "go on" in shown(log)


@pytest.mark.parametrize(
    ("before", "stays"),
    [
        (["Never push to main. Mend it."], True),
        (["Never push to main. Mend it.", "You may push to main now."], False),
        (["Mend it."], False),
    ],
)
def test_a_rule_that_was_said_before_as_well_stays_when_its_newest_message_goes(
    before: list[str], stays: bool
):
    work = [assistant("I looked at the page. " * 60) for _ in range(20)]
    older = [message for text in before for message in (user(text), *work)]
    log = log_of(*older, user("Here is the log.\nNever push to main."), assistant("Mended."), user("Go on."))
    restated = len(older)
    made = compact_log(log, ask_for(target=1_500))
    assert isinstance(made, Compacted)
    assert restated >= [one.id for one in said(log)].index(made.first_kept)
    take_out(log, restated)
    page = text_of(view_of(log).view()[:1])
    assert ("- Never push to main.\n" in page) == stays
    cited = {
        fact.text: fact.entry for fact in msgspec.convert(view_of(log).boundary.ledger, Ledger).constraints
    }
    assert cited.get("Never push to main.") == (said(log)[0].id if stays else None)
