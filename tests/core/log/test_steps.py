"""Assistant messages that hold the results of their own calls."""

import pytest
from tests.support.talk import call, result

from foldline.core.log.messages import Message, Native, Opaque, Text, ToolResult
from foldline.core.log.steps import STEP, ends_in_results, finishes, last_step, own_results, steps

MARK = Opaque("ui-message", STEP, {"type": STEP})
SOURCE = Opaque("ui-message", "source-url", {"type": "source-url"})


def turn(*parts):
    return Message("assistant", parts)


def test_own_results_are_those_behind_their_call():
    assert own_results(turn(call("a"), result("a"), call("b"), result("b"))) == {1: 0, 3: 2}
    assert own_results(turn(result("a"), call("a"))) == {}
    assert own_results(turn(call("a"), call("a"), result("a"), result("a"))) == {2: 1}
    assert own_results(turn(call("a"), result("a"), call("a"), result("a"))) == {1: 0}
    assert own_results(Message("user", (call("a"), result("a")))) == {}


def test_an_anthropic_message_has_no_results_of_its_own():
    native = Native("anthropic", b"{}")
    assert own_results(Message("assistant", (call("a"), result("a")), native=native)) == {}


@pytest.mark.parametrize(
    ("parts", "spans"),
    [
        ((), [(0, 0)]),
        ((Text("a"), call("a")), [(0, 2)]),
        ((MARK, Text("a"), call("a"), result("a"), MARK, Text("b")), [(0, 4), (4, 6)]),
        ((call("a"), result("a"), Text("b")), [(0, 2), (2, 3)]),
        ((call("a"), result("a"), call("b"), result("b"), Text("c")), [(0, 4), (4, 5)]),
        ((call("a"), result("a"), SOURCE, call("b"), result("b")), [(0, 5)]),
        ((MARK, MARK, Text("a")), [(0, 1), (1, 3)]),
        ((call("a"), result("a"), result("x")), [(0, 2), (2, 3)]),
    ],
)
def test_steps(parts, spans):
    assert steps(turn(*parts)) == spans


def test_the_last_step_is_the_last_that_says_something():
    assert last_step(turn(Text("a"), call("a"))) == 0
    assert last_step(turn(call("a"), result("a"), MARK, Text("b"), MARK)) == 2
    assert last_step(turn(MARK)) == 0
    assert last_step(turn(Text("a"), MARK, Text("b"))) == 1


def test_a_message_that_finishes_and_one_that_waits_for_the_model():
    ended = turn(call("a"), result("a"), Text("done"))
    waiting = turn(Text("x"), call("a"), result("a"), MARK)
    still_open = turn(call("a"), result("a"), MARK, call("b"))
    assert [finishes(one) for one in (ended, waiting, still_open, turn(Text("a")))] == [
        True,
        False,
        False,
        True,
    ]
    assert [ends_in_results(one) for one in (ended, waiting, still_open)] == [False, True, False]
    assert not ends_in_results(Message("tool", (ToolResult("a"),)))
