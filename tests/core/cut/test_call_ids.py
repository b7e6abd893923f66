"""Ids of calls: once in a reply, and once in a view."""

import pytest
from tests.support.talk import assistant, calls, tool

from foldline.core.cut.call_ids import CallIds, ReplyIds, with_own_ids


def test_an_id_that_is_used_again_becomes_another_with_its_result_until_it_is_called_anew():
    ids = CallIds()
    assert ids.take(calls("x"), set()) == {}
    assert ids.take(tool("x"), set()) == {}
    assert ids.take(calls("x"), set()) == {0: "x_2"}
    assert ids.in_view("x") == "x_2"
    assert ids.take(tool("x"), set()) == {0: "x_2"}
    assert ids.take(assistant("done"), set()) == {}
    assert ids.take(calls("x"), set()) == {0: "x_3"}
    assert ids.in_view("other") == "other"


def test_a_part_that_the_view_leaves_out_takes_no_id():
    ids = CallIds()
    assert ids.take(calls("x"), {0}) == {}
    assert ids.take(calls("x"), set()) == {}


def test_a_new_id_is_none_that_the_view_or_the_message_has():
    ids = CallIds()
    ids.take(calls("x", "x_2"), set())
    assert ids.take(calls("x", "x_3"), set()) == {0: "x_4"}


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
    given = [ids.call(one) for one in asked]
    assert len(set(given)) == len(given)
    assert [ids.result(one) for one in answered] == own
    ids.reply()
    assert ids.call("x") == "x"


def test_a_result_finds_a_call_that_was_told_apart_when_an_earlier_message_was_read():
    ids = ReplyIds(("x", "x_2"))
    assert [ids.result("x"), ids.result("x"), ids.result("y")] == ["x", "x_2", "y"]


def test_messages_that_no_dialect_read_get_the_same_ids():
    said = with_own_ids([calls("x", "x"), tool("x"), tool("x"), calls("x"), tool("x")])
    assert [[call.id for call in m.calls] or m.results[0].call_id for m in said] == [
        ["x", "x_2"], "x", "x_2", ["x"], "x",
    ]  # fmt: skip
