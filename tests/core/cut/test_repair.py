import pytest
from hypothesis import given
from tests.support.growth import grows_in_step
from tests.support.logs import any_messages, decode
from tests.support.talk import assistant, call, calls, result, results, system, tool, user

from foldline.core.cut.pairing import pair
from foldline.core.cut.repair import ReplyIds, repair, with_own_ids
from foldline.core.log.messages import Message, Native, Text, ToolCall

RAW = Native("anthropic", b"{}")


def order(*messages: Message) -> list[int]:
    return [index for index, _ in repair(messages).messages]


def test_a_list_in_order_comes_back_as_received():
    talk = [
        system(),
        user(),
        calls("a", "b"),
        tool("a"),
        tool("b"),
        assistant("ok"),
        results("x"),
        user(native=RAW),
    ]
    talk.pop(6)
    done = repair(talk)
    assert [message for _, message in done.messages] == talk
    assert all(new is old for (_, new), old in zip(done.messages, talk, strict=True))
    assert not done.changed
    assert done.orphans == []


def test_a_late_result_moves_to_its_call():
    talk = [calls("a"), user("never mind"), tool("a"), assistant("ok")]
    assert order(*talk) == [0, 2, 1, 3]
    assert repair(talk).changed
    assert repair(talk).messages[1][1] is talk[2]


def test_what_stands_between_call_and_result_goes_behind():
    assert order(calls("a", "b"), tool("a"), system(), tool("b")) == [0, 1, 3, 2]


def test_an_orphan_is_left_out_and_named():
    done = repair([user(), tool("nobody"), assistant("ok")])
    assert [index for index, _ in done.messages] == [0, 2]
    assert done.orphans == [(1, "nobody")]
    assert done.changed


def test_a_result_before_its_call_is_an_orphan():
    done = repair([tool("a"), calls("a")])
    assert done.orphans == [(0, "a")]
    assert [index for index, _ in done.messages] == [1]


def test_a_second_result_of_one_call_is_an_orphan():
    assert repair([calls("a"), tool("a"), tool("a")]).orphans == [(2, "a")]


def test_a_call_that_a_user_wrote_owns_nothing():
    strange = Message("user", (call("a"),))
    assert repair([strange, tool("a")]).orphans == [(1, "a")]


def test_of_two_calls_with_one_id_the_nearest_unanswered_one_owns_a_result():
    talk = [calls("a"), user("1"), calls("a"), tool("a"), user("2"), tool("a")]
    assert order(*talk) == [0, 5, 1, 2, 3, 4]


def test_an_id_that_stands_twice_in_one_batch_takes_two_results():
    done = repair([calls("same", "same"), tool("same"), tool("same")])
    assert done.orphans == []
    assert not done.changed


def test_a_message_of_late_results_and_words_is_split_and_no_longer_as_received():
    mixed = Message("user", (result("a"), Text("and now?"), Text("please")), native=RAW)
    done = repair([calls("a"), user("wait"), mixed])
    assert [index for index, _ in done.messages] == [0, 2, 1, 2]
    moved, rest = done.messages[1][1], done.messages[3][1]
    assert moved.parts == mixed.parts[:1]
    assert rest.parts == mixed.parts[1:]
    assert moved.native is rest.native is None


def test_a_message_of_results_and_words_in_its_place_stays_whole():
    mixed = Message("user", (result("a"), result("b"), Text("and now?")), native=RAW)
    done = repair([calls("a", "b"), mixed])
    assert done.messages[1] == (1, mixed)
    assert not done.changed


def test_an_orphan_among_answers_is_taken_out_of_its_message():
    mixed = Message("user", (result("a"), result("nobody"), result("b")), native=RAW)
    done = repair([calls("a", "b"), mixed])
    assert done.orphans == [(1, "nobody")]
    assert [part.call_id for _, m in done.messages[1:] for part in m.results] == ["a", "b"]
    assert all(message.native is None for _, message in done.messages[1:])


@given(any_messages)
def test_nothing_is_lost_but_the_orphans_and_repairing_again_changes_nothing(made):
    messages = decode(*made)
    done = repair(messages)
    parts = sorted(repr(part) for _, message in done.messages for part in message.parts)
    orphans = {(index, call_id) for index, call_id in done.orphans}
    before = sorted(
        repr(part)
        for index, message in enumerate(messages)
        for part in message.parts
        if (index, getattr(part, "call_id", None)) not in orphans
    )
    assert len(parts) == sum(len(message.parts) for message in messages) - len(done.orphans)
    assert set(before) <= set(parts)
    again = repair([message for _, message in done.messages])
    assert not again.changed
    calls_ = [p.id for m in messages for p in m.parts if isinstance(p, ToolCall)]
    if len(calls_) == len(set(calls_)):
        mended = [message for _, message in done.messages]
        late = [mended[index].parts[at].call_id for index, at in pair(mended).late]
        answered = [part.call_id for message in mended for part in message.results]
        assert all(answered.count(call_id) > 1 for call_id in late)  # only a second result is late


def test_results_in_the_message_of_their_calls_stay_where_they_are():
    turn = Message("assistant", (call("a"), result("a"), Text("and"), call("b"), result("b"), Text("done")))
    done = repair([user(), turn, user()])
    assert [message for _, message in done.messages] == [user(), turn, user()]
    assert not done.changed
    half = Message("assistant", (call("a"), result("a"), Text("and"), call("b")))
    assert order(user(), half, user("go"), tool("b")) == [0, 1, 3, 2]


def test_what_a_call_is_answered_again_stays_and_what_says_the_same_again_goes():
    once, again, same = tool("a", text="pending"), tool("a", text="42 rows"), tool("a", text="pending")
    talk = [calls("a"), once, assistant("wait"), again, same, tool("nobody"), tool("nobody", text="x")]
    done = repair(talk)
    assert [message for _, message in done.messages] == talk[:4]
    assert done.orphans == [(4, "a"), (5, "nobody"), (6, "nobody")]


# ---- ids of calls: once in a reply, and once in a view


@pytest.mark.parametrize(
    ("asked", "answered", "own"),
    [
        (["x", "x", "x"], ["x", "x", "x"], ["x", "x_2", "x_3"]),
        (["x", "x"], ["x", "x_2"], ["x", "x_2"]),  # results by the ids that were given
        (["x", "x", "x_2"], ["x_2", "x", "x"], ["x_2_2", "x", "x_2"]),
        (["x" * 64, "x" * 64], ["x" * 64, "x" * 64], ["x" * 64, "x" * 62 + "_2"]),
        (["x"], ["x", "x"], ["x", "x"]),  # answered twice
    ],
)
def test_calls_of_one_reply_are_told_apart_and_answered_in_order(asked, answered, own):
    ids = ReplyIds()
    ids.reply()
    renamed = [ids.call(one) for one in asked]
    assert len(set(renamed)) == len(renamed)
    assert [ids.result(one) for one in answered] == own
    ids.reply()
    assert ids.call("x") == "x"


def test_calls_with_one_id_are_told_apart_in_time_that_grows_in_step():
    def read(many: int) -> None:
        ids = ReplyIds()
        for _ in range(many):
            ids.call("x")

    assert grows_in_step(read, 500)


def test_a_result_finds_a_call_that_was_told_apart_when_an_earlier_message_was_read():
    ids = ReplyIds(("x", "x_2"))
    assert [ids.result("x"), ids.result("x"), ids.result("y")] == ["x", "x_2", "y"]


def test_messages_that_no_dialect_read_get_the_same_ids():
    said = with_own_ids([calls("x", "x"), tool("x"), tool("x"), calls("x"), tool("x")])
    assert [[call.id for call in m.calls] or m.results[0].call_id for m in said] == [
        ["x", "x_2"], "x", "x_2", ["x"], "x",
    ]  # fmt: skip
