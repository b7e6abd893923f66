"""Ids of calls: once in a reply, and once in a view."""

import pytest
from tests.support.talk import calls, tool

from foldline.core.cut.repair import ReplyIds, with_own_ids


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
