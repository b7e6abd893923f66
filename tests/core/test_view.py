"""The view that the model receives; each case once broke another tool."""

import msgspec
import pytest
from tests.support.log import Log
from tests.support.logs import DIALECTS, add, add_entry, ask_for, compact_log, problems, view_of
from tests.support.talk import (
    Letters,
    as_sent,
    assistant,
    call,
    calls,
    developer,
    log_of,
    outline,
    reminder,
    repeat,
    result,
    results,
    signed,
    system,
    text_of,
    tool,
    user,
)

from foldline.core.cut.notes import UNANSWERED
from foldline.core.decide.policy import Keep
from foldline.core.decide.presets import preset
from foldline.core.log.entries import (
    Checkpoint,
    Compacted,
    Edit,
    Lifted,
    Noted,
    Pin,
    Pinned,
    Pruned,
    Receipt,
    Said,
)
from foldline.core.log.messages import Message, Native, Text, ToolCall, ToolResult, Usage
from foldline.core.measure.tokens import OFFLINE, message_tokens, part_tokens
from foldline.core.measure.window import Amount
from foldline.core.view import ViewState
from foldline.core.view_items import LATE_CAP, AddedItem, MessageItem, native_items, sizes_of

replace = msgspec.structs.replace


def viewed(*messages: Message):
    return view_of(log_of(*messages)).view()


def valid(items) -> bool:
    return all(problems(items, dialect) == [] for dialect in DIALECTS)


def fold_at(log: Log, first: Said | None, **more) -> Compacted:
    """Append a compaction whose first kept entry is `first`."""
    point = more.pop("point", None) or Checkpoint("CHECKPOINT", "summary", tokens=7)
    boundary = Compacted("", None, point, Receipt("manual"), first.id if first else None, **more)
    return add_entry(log, boundary)


def pin(log: Log, entry: Said, *, on: bool = True) -> None:
    add_entry(log, Pinned("", None, entry.id, on=on, text=entry.message.text if on else ""))


def lift(log: Log, boundary: Compacted | Pruned, *, lifted: bool = True) -> None:
    add_entry(log, Lifted("", None, boundary.id, lifted))


# ---- without a boundary


def test_an_empty_path_has_an_empty_view():
    fold = ViewState(counter=OFFLINE)
    assert (fold.view(), list(fold.items()), fold.tokens, fold.messages, tuple(fold.open_calls)) == (
        [],
        [],
        0,
        0,
        (),
    )
    assert fold.context_size() == 0


def test_what_was_said_is_sent_as_received():
    talk = [system(), user("hi"), assistant("hello"), user("bye")]
    log = log_of(*talk)
    items = view_of(log).view()
    assert items == [MessageItem(entry) for entry in log.path()]
    assert native_items(items) == [(message, ()) for message in talk]
    assert view_of(log).messages == 4


def test_a_fold_that_is_pushed_equals_one_that_is_made_at_once():
    log = log_of(system(), user("a"), calls("x"), reminder(), tool("x"), assistant("ok"))
    add_entry(log, Noted("", None, "title", {"title": "t"}))
    fold_at(log, log.path()[1])
    pin(log, log.path()[1])
    add(log, user("b"))
    add_entry(log, Noted("", None, "model", {"model": "m"}))
    pushed = ViewState(counter=OFFLINE)
    for entry in log.path():
        pushed.push(entry)
    whole = view_of(log)
    assert pushed.view() == whole.view()
    assert pushed.entries() == whole.entries() == log.path()
    assert pushed.notes == whole.notes
    assert [note.kind for note in pushed.notes] == ["title", "model"]
    assert pushed.pins == whole.pins
    assert pushed.tokens == whole.tokens


def test_a_view_without_a_copy_is_the_same_list_until_something_waits():
    fold = view_of(log_of(user("a"), assistant("b")))
    assert fold.items() is fold.items()
    assert list(fold.items()) == fold.view()
    opened = log_of(user("old"), assistant("b"), calls("x"), system("waits"))
    fold = view_of(opened)
    assert list(fold.items()) == fold.view()
    assert outline(fold.items()) == ["user", "assistant", "assistant", "unanswered", "system"]


def test_what_a_reader_does_to_a_view_leaves_the_fold_as_it_is():
    fold = view_of(log_of(user("a"), assistant("b")))
    fold.view().clear()
    fold.entries().clear()
    assert fold.messages == 2
    assert len(fold.entries()) == 2


# ---- calls and results


def test_an_open_call_is_answered_by_a_note_and_named():
    fold = view_of(log_of(user("go"), calls("a", "b"), tool("a")))
    items = fold.view()
    assert tuple(fold.open_calls) == ("b",)
    assert outline(items) == ["user", "assistant", "tool", "unanswered"]
    assert items[-1].message == Message("tool", (ToolResult("b", (Text(UNANSWERED),), is_error=True),))
    assert items[-1].source == fold.kept[1].id
    assert list(fold.items()) == items
    assert valid(items)
    assert fold.tokens == sum(item.tokens for item in items)
    assert fold.messages == 4


def test_the_note_is_counted_as_the_messages_that_a_dialect_makes_of_it():
    one, two = view_of(log_of(calls("a"))), view_of(log_of(calls("a", "b")))
    assert (
        two.open_call_tokens
        == 2 * one.open_call_tokens
        == 2 * message_tokens(one.view()[-1].message, OFFLINE)
    )
    assert view_of(log_of(calls("a"), tool("a"))).open_call_tokens == 0


def test_a_call_given_up_by_words_of_the_user_stays_answered_by_the_note():
    log = log_of(calls("a", "b"), tool("a"), user("stop"), assistant("ok"))
    items = view_of(log).view()
    assert outline(items) == ["assistant", "tool", "unanswered", "user", "assistant"]
    assert items[2].source == log.path()[2].id
    assert [r.call_id for r in items[2].message.results] == ["b"]
    assert valid(items)


def test_a_developer_message_between_call_and_result_waits_behind_the_result():
    items = viewed(user("go"), calls("a", "b"), tool("a"), developer("hurry"), tool("b"), assistant("ok"))
    assert outline(items) == ["user", "assistant", "tool", "tool", "developer", "assistant"]
    assert valid(items)


def test_a_reminder_inside_an_open_batch_stands_behind_the_note():
    fold = view_of(log_of(user("go"), calls("a"), reminder()))
    assert outline(fold.view()) == ["user", "assistant", "unanswered", "user"]
    assert valid(fold.view())
    assert fold.messages == 4


def test_what_waited_for_a_batch_comes_before_the_words_that_end_it():
    items = viewed(calls("a"), developer("hurry"), user("stop"))
    assert outline(items) == ["assistant", "unanswered", "developer", "user"]
    assert valid(items)


def test_what_waited_stands_behind_a_message_that_answers_a_part_and_says_more():
    items = viewed(user("go"), calls("a", "b"), system("hurry"), results("a", text="stop there"))
    assert outline(items) == ["user", "assistant", "unanswered", "user", "system"]
    assert valid(items)


def test_a_late_result_becomes_a_quoted_note_where_it_came():
    log = log_of(calls("a"), user("stop"), assistant("ok"), tool("a", "the answer"), user("next"))
    items = view_of(log).view()
    assert outline(items) == ["assistant", "unanswered", "user", "assistant", "late", "user"]
    note = items[4]
    quote = "[Late result of tool call a, quoted as data]\nthe answer"
    assert note.message == user(quote, injected=True)
    assert note.source == log.path()[3].id
    assert note.tokens == message_tokens(note.message, OFFLINE)
    assert valid(items)


def test_a_late_result_never_stands_between_call_and_result():
    items = viewed(calls("a"), user("stop"), calls("b", "c"), tool("b"), tool("a"), tool("c"))
    assert outline(items) == ["assistant", "unanswered", "user", "assistant", "tool", "tool", "late"]
    assert valid(items)


def test_a_long_late_result_is_quoted_in_part_and_says_where_the_rest_is():
    exact = viewed(user(), tool("a", "x" * LATE_CAP))[1].message.text
    assert exact.endswith("x" * LATE_CAP)
    log = log_of(user(), tool("a", "x" * (LATE_CAP + 1_234)))
    text = view_of(log).view()[1].message.text
    assert f"x\n[1,234 more characters in entry {log.path()[1].id}]" in text
    assert text.count("x") == LATE_CAP


def test_of_a_message_with_a_late_result_the_rest_is_kept():
    log = log_of(calls("a"), results("a", "nobody", text="and?"), assistant("ok"))
    items = view_of(log).view()
    assert outline(items) == ["assistant", "user", "late", "assistant"]
    assert [type(part) for part in as_sent(items[1]).parts] == [ToolResult, Text]
    assert items[1].edits == (
        Edit(items[1].entry.id, 1, "repaired", None, part_tokens(items[1].entry.message.parts[1], OFFLINE)),
    )
    assert items[1].tokens == message_tokens(as_sent(items[1]), OFFLINE)
    assert valid(items)


def test_a_result_given_twice_is_late_the_second_time():
    items = viewed(calls("a"), tool("a"), tool("a"), assistant("ok"))
    assert outline(items) == ["assistant", "tool", "late", "assistant"]
    assert valid(items)


def test_an_id_used_again_gets_one_of_its_own_and_so_does_its_result():
    items = viewed(calls("a"), tool("a"), calls("a"), tool("a"), calls("a", "b"), tool("a"))
    assert [c.id for item in items for c in as_sent(item).calls] == ["a", "a_2", "a_3", "b"]
    assert [r.call_id for item in items for r in as_sent(item).results] == ["a", "a_2", "a_3", "b"]
    assert items[2].edits == (
        Edit(items[2].entry.id, 0, "repaired", replace(call("a", path="a.py"), id="a_2")),
    )
    assert items[3].edits == (Edit(items[3].entry.id, 0, "repaired", result("a_2")),)
    assert valid(items)


def test_a_new_id_is_one_that_no_other_call_has():
    items = viewed(
        calls("a", "a_2"), results("a", "a_2"), calls("a", "a_3"), results("a", "a_3"), calls("a_4")
    )
    ids = [c.id for item in items for c in as_sent(item).calls]
    assert ids == ["a", "a_2", "a_4", "a_3", "a_4_2"]
    assert [r.call_id for item in items[:4] for r in as_sent(item).results] == ["a", "a_2", "a_4", "a_3"]
    assert valid(items)


def test_an_id_used_again_stays_where_its_dialect_allows_it():
    def native(dialect: str) -> Message:
        return replace(calls("a"), native=Native(dialect, b"{}"))

    for dialect, ids in (("openai-chat", ["a", "a"]), ("anthropic", ["a", "a_2"])):
        items = viewed(native(dialect), tool("a"), native(dialect), tool("a"))
        assert [c.id for item in items for c in as_sent(item).calls] == ids


def test_a_result_takes_no_id_that_only_an_earlier_call_was_given():
    later = replace(calls("a"), native=Native("openai-chat", b"{}"))
    items = viewed(calls("a"), tool("a"), calls("a"), tool("a"), later, tool("a"))
    assert [r.call_id for item in items for r in as_sent(item).results] == ["a", "a_2", "a"]


def test_a_call_behind_a_blank_text_is_renamed_too():
    blank = Message("assistant", (Text(" "), call("a")))
    items = viewed(calls("a"), tool("a"), blank, tool("a"))
    assert [edit.part for edit in items[2].edits] == [0, 1]
    assert as_sent(items[2]).parts == (call("a_2"),)


def test_the_note_that_answers_a_renamed_call_has_its_new_id():
    items = viewed(calls("a"), tool("a"), calls("a"), user("stop"), assistant("ok"))
    assert outline(items) == ["assistant", "tool", "assistant", "unanswered", "user", "assistant"]
    assert items[3].message.results[0].call_id == "a_2"
    assert valid(items)
    opened = viewed(calls("a"), tool("a"), calls("a"))
    assert opened[3].message.results[0].call_id == "a_2"


def test_a_repair_keeps_what_a_boundary_made_of_the_part_and_the_next_boundary_still_knows_it():
    log = log_of(user("go"), calls("a"), tool("a"), calls("a"), tool("a", repeat("x")), assistant("ok"))
    path = log.path()
    shorter = ToolCall("a", "read", {"path": "…"})
    edits = (
        Edit(path[3].id, 0, "elided", shorter, saved=1),
        Edit(path[4].id, 0, "blanked", result("a", "[cleared]"), saved=90),
    )
    add_entry(log, Pruned("", None, Receipt("manual"), edits))
    fold = view_of(log)
    items = fold.view()
    assert as_sent(items[3]).calls == (replace(shorter, id="a_2"),)
    assert as_sent(items[4]).results == (result("a_2", "[cleared]"),)
    assert items[4].tokens == path[4].tokens - 90
    assert [fold.edits[path[i].id] for i in (3, 4)] == [(edits[0],), (edits[1],)]


def test_blank_texts_and_empty_messages_are_left_out():
    items = viewed(
        user(" "), assistant(""), Message("user"), user("hi"), assistant("\n", call("a")), tool("a")
    )
    assert outline(items) == ["user", "assistant", "tool"]
    assert [type(part) for part in as_sent(items[1]).parts] == [ToolCall]
    assert valid(items)


def test_a_turn_of_400_calls_is_sent_whole():
    talk = [user("go")]
    for n in range(400):
        talk += [calls(f"c{n}"), tool(f"c{n}")]
    items = viewed(*talk)
    assert len(items) == 801
    assert valid(items)


# ---- with a boundary


def test_a_checkpoint_stands_behind_the_leading_messages_and_before_what_is_kept():
    log = log_of(system(), user("a"), assistant("b"), user("c"), assistant("d"))
    path = log.path()
    boundary = fold_at(log, path[3], leading=(path[0].id,))
    add(log, user("e"))
    fold = view_of(log)
    assert outline(fold.view()) == ["system", "checkpoint", "user", "assistant", "user"]
    assert fold.view()[1] == AddedItem("checkpoint", Message("user", (Text("CHECKPOINT"),)), boundary.id, 7)
    assert fold.boundary == boundary
    assert fold.leading == path[:1]
    assert fold.kept == [*path[3:], log.path()[-1]]
    assert fold.fresh_from == 2
    assert fold.added_tokens == 7
    assert fold.tokens == 7 + path[0].tokens + sum(entry.tokens for entry in fold.kept)


def test_a_boundary_that_keeps_nothing_is_followed_by_what_comes_after_it():
    log = log_of(user("a"), assistant("b"))
    fold_at(log, None)
    assert outline(view_of(log).view()) == ["checkpoint"]
    assert view_of(log).fresh_from == 0
    add(log, system("not leading any more"))
    add(log, user("c"))
    fold = view_of(log)
    assert outline(fold.view()) == ["checkpoint", "system", "user"]
    assert fold.leading == []


def test_a_first_kept_that_is_not_on_the_path_keeps_nothing():
    log = log_of(user("a"), assistant("b"))
    fold_at(log, None, quoted=("unknown",), leading=("unknown",))
    add_entry(log, replace(log.path()[-1], first_kept="unknown"))
    assert outline(view_of(log).view()) == ["checkpoint"]


def test_the_latest_compaction_on_the_path_counts_not_the_first():
    log = log_of(user("a"), assistant("b"), user("c"), assistant("d"))
    path = log.path()
    fold_at(log, path[1], point=Checkpoint("FIRST", "s"))
    latest = fold_at(log, path[3], point=Checkpoint("SECOND", "s"))
    fold = view_of(log)
    assert fold.boundary == latest
    assert [item.message.text for item in fold.view()] == ["SECOND", "d"]


ACK = Checkpoint("C", "s", ack="Understood.")


def test_an_acknowledgement_stands_only_where_the_first_kept_is_not_an_assistants():
    for first, expected in (
        (2, ["checkpoint", "ack", "user", "assistant"]),
        (3, ["checkpoint", "assistant"]),
    ):
        log = log_of(user("a"), assistant("b"), user("c"), assistant("d"))
        fold_at(log, log.path()[first], point=ACK)
        assert outline(view_of(log).view()) == expected
    log = log_of(user("a"), assistant("b"))
    boundary = fold_at(log, None, point=ACK)
    assert outline(view_of(log).view()) == ["checkpoint"]
    add(log, user("c"))
    made = view_of(log).view()[1]
    assert made == AddedItem(
        "ack",
        Message("assistant", (Text("Understood."),)),
        boundary.id,
        message_tokens(assistant("Understood."), OFFLINE),
    )


@pytest.mark.parametrize(
    ("said", "expected"), [(assistant, ["checkpoint", "assistant"]), (user, ["checkpoint", "ack", "user"])]
)
def test_after_a_boundary_that_kept_nothing_a_view_that_grows_is_the_one_of_a_fresh_reader(said, expected):
    log = log_of(user("a"), assistant("b"))
    fold_at(log, None, point=ACK)
    live = view_of(log)
    live.push(add(log, said("c")))
    assert outline(live.view()) == expected
    assert live.view() == view_of(log).view()
    assert live.tokens == view_of(log).tokens


@pytest.mark.parametrize(
    ("position", "expected"), [("before", ["C", "Understood.", "a", "b"]), ("after", ["a", "C", "b"])]
)
def test_quoted_user_messages_stand_on_the_side_that_the_policy_says(position, expected):
    log = log_of(user("a"), assistant("b"))
    path = log.path()
    fold_at(log, path[1], quoted=(path[0].id,), point=replace(ACK, position=position))
    fold = view_of(log)
    assert [item.message.text for item in fold.view()] == expected
    assert fold.quoted == path[:1]


def test_blank_texts_of_a_quoted_message_are_left_out_too():
    log = log_of(Message("user", (Text("a"), Text(" "))), assistant("b"))
    path = log.path()
    fold_at(log, path[1], quoted=(path[0].id,))
    quoted = view_of(log).view()[1]
    blank = Edit(path[0].id, 1, "repaired", None, part_tokens(Text(" "), OFFLINE))
    assert quoted == MessageItem(path[0], (blank,))
    assert valid(view_of(log).view())


def test_edits_of_a_compaction_are_made_in_the_entries_they_name():
    log = log_of(user("a"), calls("x"), tool("x", "long"), assistant("b"))
    path = log.path()
    edit = Edit(path[2].id, 0, "blanked", result("x", "[cleared]"), saved=1)
    fold_at(log, path[1], edits=(edit,))
    items = view_of(log).view()
    assert items[2] == MessageItem(path[2], (edit,))
    assert text_of(items).endswith("b")
    assert as_sent(items[2]).results[0].text == "[cleared]"


def test_a_later_prune_takes_the_place_of_an_older_edit_of_the_same_part_alone():
    log = log_of(user("a"), assistant("b"))
    path = log.path()
    old = (Edit(path[1].id, 0, "elided", Text("B"), 1), Edit(path[1].id, 1, "stripped", None, 1))
    add_entry(log, Pruned("", None, Receipt("manual"), old))
    new = Edit(path[1].id, 0, "elided", Text("…"), 2)
    add_entry(log, Pruned("", None, Receipt("manual"), (new,)))
    assert view_of(log).edits == {path[1].id: (old[1], new)}
    assert view_of(log).fresh_from == 2


def test_a_prune_before_the_newest_compaction_is_in_its_edits_or_nowhere():
    log = log_of(user("a"), assistant("b"), user("c"))
    path = log.path()
    add_entry(log, Pruned("", None, Receipt("manual"), (Edit(path[2].id, 0, "elided", Text("…"), 1),)))
    fold_at(log, path[2])
    assert view_of(log).edits == {}
    add_entry(log, Pruned("", None, Receipt("manual"), (Edit(path[2].id, 0, "elided", Text("C"), 1),)))
    assert [e.replacement for e in view_of(log).edits[path[2].id]] == [Text("C")]


def test_what_was_folded_stays_folded_when_a_later_message_repeats_it():
    log = log_of(user("a"), assistant("b"), user("c"))
    fold_at(log, log.path()[2])
    add(log, assistant("b"))
    assert [item.message.text for item in view_of(log).view()] == ["CHECKPOINT", "c", "b"]


# ---- undo and redo


def test_an_undone_compaction_leaves_everything_said_and_a_redo_folds_it_again():
    log = log_of(user("a"), assistant("b"), user("c"))
    boundary = fold_at(log, log.path()[2])
    add(log, assistant("d"))
    folded = outline(view_of(log).view())
    lift(log, boundary)
    undone = view_of(log)
    assert [item.message.text for item in undone.view()] == ["a", "b", "c", "d"]
    assert undone.boundary is None
    assert undone.fresh_from == 0
    lift(log, boundary, lifted=False)
    assert outline(view_of(log).view()) == folded
    add(log, user("e"))
    assert outline(view_of(log).view()) == [*folded, "user"]


def test_an_undone_compaction_gives_way_to_the_one_before():
    log = log_of(user("a"), assistant("b"), user("c"), assistant("d"))
    path = log.path()
    first = fold_at(log, path[1], point=Checkpoint("FIRST", "s"))
    second = fold_at(log, path[3], point=Checkpoint("SECOND", "s"))
    lift(log, second)
    assert view_of(log).boundary == first
    assert [item.message.text for item in view_of(log).view()] == ["FIRST", "b", "c", "d"]
    assert view_of(log).fresh_from == 3


def test_an_undone_prune_brings_the_result_back():
    log = log_of(calls("a"), tool("a", "whole"), assistant("ok"))
    edit = Edit(log.path()[1].id, 0, "blanked", result("a", "[cleared]"), 1)
    boundary = add_entry(log, Pruned("", None, Receipt("manual"), (edit,)))
    assert as_sent(view_of(log).view()[1]).results[0].text == "[cleared]"
    lift(log, boundary)
    assert as_sent(view_of(log).view()[1]).results[0].text == "whole"


# ---- pins


def pins_told(log: Log) -> list[str]:
    return [
        item.message.text
        for item in view_of(log).view()
        if isinstance(item, AddedItem) and item.kind == "pin"
    ]


def test_a_pin_on_what_is_in_the_view_adds_nothing():
    log = log_of(system("s"), user("a"), assistant("b"))
    for entry in log.path()[:2]:
        pin(log, entry)
    assert pins_told(log) == []
    assert list(view_of(log).pins.values()) == [Pin(log.path()[0].id, "s"), Pin(log.path()[1].id, "a")]


def test_a_pin_on_a_folded_entry_is_quoted_once_at_the_tail():
    log = log_of(user("number 48151623"), assistant("b"), user("c"))
    path = log.path()
    fold_at(log, path[2])
    pin(log, path[0])
    add(log, assistant("d"))
    text = "[Pinned by the user, from earlier in this conversation]\nnumber 48151623"
    assert pins_told(log) == [text]
    items = view_of(log).view()
    assert outline(items) == ["checkpoint", "user", "pin", "assistant"]
    assert (items[2].message, items[2].source) == (user(text), log.path()[4].id)
    pin(log, path[0])
    pin(log, path[0], on=False)
    pin(log, path[0])
    assert pins_told(log) == [text]
    assert view_of(log).pins[path[0].id].text == "number 48151623"


def test_a_pin_that_the_checkpoint_quotes_is_not_quoted_again():
    log = log_of(user("keep this"), assistant("b"), user("c"))
    path = log.path()
    pin(log, path[0])
    point = Checkpoint("C", "s", pins=(Pin(path[0].id, "keep this"),))
    fold_at(log, path[2], point=point)
    assert view_of(log).pins == {path[0].id: Pin(path[0].id, "keep this")}
    pin(log, path[0])
    assert pins_told(log) == []


def test_a_pin_on_an_entry_of_another_branch_is_quoted():
    log = log_of(user("a"))
    add_entry(log, Pinned("", None, "elsewhere", on=True, text="said on another branch"))
    assert pins_told(log) == [
        "[Pinned by the user, from earlier in this conversation]\nsaid on another branch"
    ]


def test_a_pin_taken_away_is_gone_and_one_never_made_can_be_taken_away():
    log = log_of(user("a"), user("b"))
    first, second = log.path()
    pin(log, first)
    pin(log, first, on=False)
    pin(log, second, on=False)
    assert view_of(log).pins == {}


def test_a_pin_set_and_taken_away_before_a_boundary_leaves_no_quote_behind_it():
    log = log_of(user("a"), assistant("b"), user("c"))
    path = log.path()
    fold_at(log, path[2])
    pin(log, path[0])
    pin(log, path[0], on=False)
    fold_at(log, path[2])
    assert outline(view_of(log).view()) == ["checkpoint", "user"]


def test_a_pin_waits_for_an_open_batch():
    log = log_of(user("old"), assistant("b"), user("go"), calls("x"))
    path = log.path()
    fold_at(log, path[2])
    pin(log, path[0])
    assert outline(view_of(log).view()) == ["checkpoint", "user", "assistant", "unanswered", "pin"]
    add(log, tool("x"))
    assert outline(view_of(log).view()) == ["checkpoint", "user", "assistant", "tool", "pin"]
    assert valid(view_of(log).view())


def test_a_pin_of_a_quoted_entry_adds_nothing():
    log = log_of(user("a"), assistant("b"), user("c"))
    path = log.path()
    fold_at(log, path[2], quoted=(path[0].id,))
    pin(log, path[0])
    assert pins_told(log) == []


# ---- size


def test_without_usage_everything_is_estimated_and_what_is_given_apart_counts():
    fold = view_of(log_of(user("a"), assistant("b")))
    assert fold.context_size(overhead=50) == fold.tokens + 50
    assert fold.context_size(overhead=50, ratio=2.0) == 2 * (fold.tokens + 50)


def test_the_newest_usage_and_an_estimate_of_what_follows():
    log = log_of(user("a"), assistant("b", usage=Usage(input=900, output=100)), user("c"))
    assert view_of(log).context_size(overhead=50) == 1_000 + log.path()[2].tokens
    assert view_of(log).anchor == 1
    assert view_of(log).usage_from == 0
    assert view_of(log).context_size(ratio=2.0) == 1_000 + 2 * log.path()[2].tokens


def test_a_model_that_repeats_stale_usage_after_a_boundary_is_believed_only_from_then_on():
    log = log_of(user("a"), assistant("b", usage=Usage(input=900_000, output=1)), user("c"))
    fold_at(log, log.path()[1])
    assert view_of(log).anchor is None
    assert view_of(log).context_size() == view_of(log).tokens
    add(log, assistant("d", usage=Usage(input=80, output=5)))
    assert view_of(log).context_size() == 85
    assert view_of(log).usage_from == 2


def test_usage_from_before_an_undo_counts_another_view():
    log = log_of(user(repeat("a", 500)), assistant("b"), user("c"))
    boundary = fold_at(log, log.path()[2])
    add(log, assistant("d", usage=Usage(input=30, output=5)))
    assert view_of(log).context_size() == 35
    lift(log, boundary)
    fold = view_of(log)
    assert fold.anchor is None
    assert fold.context_size() == fold.tokens > 500
    assert fold.usage_from == 4
    add(log, assistant("e", usage=Usage(input=600, output=5)))
    assert view_of(log).context_size() == 605


def test_the_note_for_open_calls_is_not_in_the_context_size_since_it_gives_way():
    fold = view_of(log_of(user("a"), calls("x")))
    assert fold.open_call_tokens > 0
    assert fold.context_size(overhead=5) == fold.tokens - fold.open_call_tokens + 5


def test_everything_that_is_made_is_counted_by_the_counter_that_is_given():
    log = log_of(user("old"), assistant("b"), user("c"), tool("late"))
    fold_at(log, log.path()[2], point=ACK)
    pin(log, log.path()[0])
    add(log, calls("x"))
    letters = Letters()
    made = [
        i
        for i in ViewState(log.path(), counter=letters).view()
        if isinstance(i, AddedItem) and i.kind != "checkpoint"
    ]
    assert [item.kind for item in made] == ["ack", "late", "pin", "unanswered"]
    assert [item.tokens for item in made] == [message_tokens(item.message, letters) for item in made]


def test_items_are_sized_by_what_they_count_as():
    log = log_of(user("a"), calls("x"), tool("x"), assistant("b"), user("c"))
    fold_at(log, log.path()[1])
    add(log, calls("y"))
    names = [item.kind for item in view_of(log).view()]
    assert names == [
        "checkpoint",
        "assistant",
        "tool results",
        "assistant",
        "user",
        "assistant",
        "unanswered",
    ]
    assert sum(sizes_of(view_of(log).view()).values()) == view_of(log).tokens


def test_the_fold_of_what_a_boundary_needs_equals_the_fold_of_the_path():
    log = log_of(system(), user("a"), assistant("b"), user("c"), signed("d"))
    rules = replace(
        preset("claude-code"), keep=Keep(messages=2), cut_rule="any", summary_tokens=Amount(tokens=500)
    )
    for i in range(8):
        add(log, user(repeat(f"question {i}", 60)))
        add(log, assistant(repeat(f"answer {i}", 60)))
    boundary = compact_log(log, ask_for(rules, context=3_000))
    assert isinstance(boundary, Compacted)
    path = log.path()
    at = next(i for i, entry in enumerate(path) if entry.id == boundary.first_kept)
    assert ViewState([path[0], *path[at:]], counter=OFFLINE).view() == view_of(log).view()
