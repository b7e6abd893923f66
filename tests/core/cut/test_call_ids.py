"""Ids of calls that stand once in a view."""

from tests.support.talk import assistant, calls, tool

from foldline.core.cut.call_ids import CallIds


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
