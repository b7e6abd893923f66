import pytest
from tests.support.talk import (
    assistant,
    call,
    calls,
    developer,
    image,
    reminder,
    result,
    results,
    system,
    tool,
    user,
)

from foldline.core.cut.pairing import Pairing, pair, unanswered_from, waits
from foldline.core.log.messages import Message, Native, Opaque, Text


def batches(*messages: Message) -> list[tuple[int, int, list[str], bool]]:
    return [(b.start, b.end, list(b.open), b.closed) for b in pair(messages).batches]


def left(*messages: Message) -> list[tuple[str, ...]]:
    """The calls of each message that no later message answers."""
    pairing = Pairing()
    return [pairing.say(index, message) for index, message in enumerate(messages)]


def test_a_conversation_without_calls_has_no_batches():
    pairing = pair([system(), user(), assistant("hi")])
    assert (pairing.batches, pairing.late, pairing.doubled, pairing.current) == ([], [], [], None)


def test_a_parallel_batch_ends_with_its_last_result_in_any_order():
    assert batches(user(), calls("a", "b"), tool("b"), tool("a"), assistant("ok")) == [(1, 3, [], False)]
    assert batches(user(), calls("a", "b"), results("a", "b")) == [(1, 2, [], False)]


def test_an_open_batch_names_the_tools_it_waits_for():
    pairing = pair([calls("a", "b"), tool("a")])
    assert pairing.current is pairing.batches[0]
    assert pairing.current.open == {"b": "read"}


def test_a_user_message_closes_a_batch_and_leaves_its_calls_unanswered():
    assert left(calls("a", "b"), tool("a"), user("stop")) == [(), (), ("b",)]
    assert batches(calls("a", "b"), tool("a"), user("stop")) == [(0, 1, ["b"], True)]
    assert pair([calls("a"), user("stop")]).current is None


@pytest.mark.parametrize(
    "closing", [user("stop"), image(), assistant("never mind"), calls("c"), Message("tool")]
)
def test_words_of_anybody_close_a_batch(closing):
    assert left(calls("a"), closing)[1] == ("a",)


def test_an_assistant_message_that_closes_a_batch_opens_its_own():
    messages = [calls("a"), calls("b"), tool("b")]
    assert left(*messages) == [(), ("a",), ()]
    assert batches(*messages) == [(0, 0, ["a"], True), (1, 2, [], False)]


@pytest.mark.parametrize("between", [developer(), system(), reminder()])
def test_a_developer_message_between_call_and_result_waits(between):
    messages = [calls("a", "b"), tool("a"), between, tool("b")]
    assert left(*messages) == [(), (), (), ()]
    assert batches(*messages) == [(0, 3, [], False)]
    assert pair(messages).late == []


def test_only_inside_an_open_batch_does_a_message_wait():
    batch = pair([calls("a")]).current
    assert waits(system(), batch)
    assert waits(reminder(), batch)
    assert not waits(user(), batch)
    assert not waits(assistant("x"), batch)
    assert not waits(tool("a"), batch)
    assert not waits(Message("user", (result("x"),), injected=True), batch)
    assert not waits(system(), None)
    assert not waits(system(), pair([calls("a"), tool("a")]).batches[0])


def test_a_message_that_answers_and_asks_closes_what_it_does_not_answer():
    assert left(calls("a", "b"), results("a", text="stop there")) == [(), ("b",)]
    assert left(calls("a", "b"), results("a", "b", text="thanks")) == [(), ()]


def test_results_in_parts_keep_the_batch_open():
    assert left(calls("a", "b"), results("a"), results("b")) == [(), (), ()]
    assert batches(calls("a", "b"), results("a"), results("b")) == [(0, 2, [], False)]


def test_an_id_that_stands_twice_in_one_batch_is_told_and_answered_once():
    pairing = pair([calls("same", "same"), tool("same"), tool("same")])
    assert pairing.doubled == [(0, 1)]
    assert pairing.late == [(2, 0)]
    assert pairing.batches[0].open == {}


def test_calls_of_anybody_but_the_assistant_open_nothing():
    strange = Message("user", calls("a").parts)
    assert pair([strange]).batches == []


# ---- what no reply has seen yet


@pytest.mark.parametrize(
    ("messages", "first"),
    [
        ([], 0),
        ([user()], 0),
        ([system(), user()], 1),
        ([system()], 1),
        ([user(), assistant("ok")], 2),
        ([user(), assistant("ok"), user("a"), user("b")], 2),
        ([user(), assistant("ok"), system(), user("b")], 3),
        ([user(), assistant("ok"), developer()], 3),
        ([user(), assistant("ok"), reminder()], 2),
        ([calls("a")], 0),
        ([calls("a", "b"), tool("a")], 0),
        ([user(), calls("a")], 1),
        ([user(), calls("a", "b"), tool("a")], 1),
        ([user(), calls("a", "b"), tool("a"), tool("b")], 2),
        ([user(), calls("a"), results("a")], 2),
        ([user(), calls("a"), user("stop")], 2),
        ([user(), calls("a"), developer()], 1),
        ([calls("a"), assistant("never mind"), tool("a")], 2),
        ([user(), assistant("ok"), tool("late")], 2),
    ],
)
def test_what_is_not_yet_answered_starts_at(messages, first):
    assert unanswered_from(messages) == first


def whole_turn(*parts) -> Message:
    return Message("assistant", parts)


def test_a_message_may_answer_its_own_calls():
    turn = whole_turn(call("a"), result("a"), Text("and"), call("b"), result("b"))
    pairing = pair([user(), turn, user()])
    assert (pairing.current, pairing.late, pairing.doubled) == (None, [], [])
    assert [batch.open for batch in pairing.batches] == [{}]
    assert left(user(), turn, user("go")) == [(), (), ()]


def test_what_a_message_leaves_open_of_its_own_calls_waits_for_results():
    turn = whole_turn(call("a"), result("a"), call("b"))
    assert batches(turn, tool("b")) == [(0, 1, [], False)]
    assert left(turn, user("stop")) == [(), ("b",)]


def test_a_message_with_its_own_results_closes_the_batch_before():
    assert left(calls("a"), whole_turn(call("b"), result("b"))) == [(), ("a",)]
    assert pair([calls("a"), whole_turn(call("b"), result("b"))]).current is None


def test_an_id_used_again_in_one_message_is_doubled_and_its_second_result_late():
    pairing = pair([whole_turn(call("a"), result("a"), call("a"), result("a"))])
    assert (pairing.doubled, pairing.late) == ([(0, 2)], [(0, 3)])
    answered_last = pair([whole_turn(call("a"), call("a"), result("a"))])
    assert (answered_last.doubled, answered_last.late, answered_last.current) == ([(0, 0)], [], None)


def test_own_results_at_the_end_are_unanswered():
    ended = whole_turn(call("a"), result("a"), Text("done"))
    assert unanswered_from([user(), ended]) == 2
    assert unanswered_from([user(), whole_turn(call("a"), result("a"))]) == 1
    assert unanswered_from([user(), ended, user()]) == 2


def test_a_second_result_beside_a_call_of_its_id_answers_no_earlier_batch():
    """A UI message with two answered calls of one id, after an open call of that id."""
    twice = Message("assistant", (call("a"), result("a"), call("a"), result("a")))
    assert left(calls("a"), twice) == [(), ("a",)]
    assert pair([calls("a"), twice]).late == [(1, 3)]


def item(*made):
    """One item of a reply as OpenAI's Responses has it."""
    return assistant("", *made, native=Native("openai-responses", b"{}"))


def test_calls_in_the_items_of_one_reply_are_one_batch():
    paired = pair([user(), item(), item(call("a")), item(call("b")), tool("b"), tool("a"), item(call("c"))])
    first, second = paired.batches
    assert (first.start, first.end, first.open, first.closed) == (1, 5, {}, False)
    assert (second.start, second.open) == (6, {"c": "read"})
    waiting = pair([item(call("a")), item(call("b"))])
    assert [(batch.start, batch.end, batch.open) for batch in waiting.batches] == [
        (0, 1, {"a": "read", "b": "read"})
    ]
    assert pair([item(call("a")), item(call("a"))]).doubled == [(1, 0)]


def test_a_call_after_another_reply_opens_a_batch_of_its_own():
    for other in (assistant("", call("b")), user("", native=Native("openai-responses", b"{}"))):
        paired = pair([item(call("a")), other, item(call("c"))])
        assert paired.batches[0].open == {"a": "read"}
        assert paired.batches[0].closed
        assert paired.batches[-1].start == 2
    chat = assistant("", call("b"), native=Native("openai-chat", b"{}"))
    assert [batch.start for batch in pair([item(call("a")), chat]).batches] == [0, 1]
    assert [batch.start for batch in pair([chat, item(call("a"))]).batches] == [0, 1]


def test_a_system_message_between_items_waits_inside_the_reply():
    paired = pair([item(call("a")), system(), item(call("b")), tool("a"), tool("b")])
    assert [(batch.start, batch.open) for batch in paired.batches] == [(0, {})]


def test_a_reply_in_several_items_is_unanswered_from_its_first():
    assert unanswered_from([user(), item(), item(call("a"))]) == 1
    assert unanswered_from([item(), item(), item(call("a"))]) == 0
    assert unanswered_from([item(), item(call("a"))]) == 0
    assert unanswered_from([user(), item(), user(), item(call("a"))]) == 3
    assert unanswered_from([user(), assistant("b"), item(call("a"))]) == 2


def stored(*ids: str) -> Message:
    """Return references to items that the provider stores."""
    data = [{"type": "item_reference", "id": one} for one in ids]
    parts = tuple(Opaque("openai-responses", "item_reference", one) for one in data)
    return Message("assistant", parts, native=Native("openai-responses", b"{}"))


def test_a_reference_takes_one_result_whose_call_nobody_knows():
    messages = [stored("rs_1", "fc_1", "fc_2"), tool("x"), tool("y"), tool("z"), user(), tool("w")]
    pairing = pair(messages)
    assert [(batch.start, batch.end) for batch in pairing.batches] == [(0, 2)]
    assert pairing.late == [(3, 0), (5, 0)]


def test_references_to_what_is_no_call_take_none():
    assert pair([stored("rs_1", "msg_1"), tool("x")]).late == [(1, 0)]
    assert pair([stored("item-5"), tool("x")]).late == []  # an id without a known prefix


def test_a_result_that_was_given_or_has_a_call_answers_no_reference():
    messages = [calls("a"), tool("a"), stored("fc_1", "fc_2"), tool("a"), tool("x"), tool("x")]
    assert pair(messages).late == [(3, 0), (5, 0)]


def test_references_that_wait_for_results_are_unanswered_and_owe_no_note():
    messages = [user(), stored("fc_1")]
    pairing = pair(messages)
    assert pairing.current is not None
    assert pairing.current.open == {}
    assert unanswered_from(messages) == 1
    assert unanswered_from([*messages, tool("x")]) == 2
