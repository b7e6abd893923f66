import math

import pytest
from tests.core.decide.builders import LETTERS
from tests.support.talk import assistant, call, tool, user

from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import Policy, message_estimate
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking
from foldline.core.measure.tokens import message_tokens
from foldline.core.measure.window import Amount, Floor, Window

POLICY = Policy(name="plain", reserve=Amount(tokens=2_000))
WINDOW = Window(context=10_000, output=1_000)


def test_what_is_usable_comes_from_the_policy_and_a_target_replaces_it():
    assert FoldRequest(POLICY, WINDOW, "manual").usable == 8_000
    assert FoldRequest(POLICY, WINDOW, "target", target=300).usable == 300
    assert FoldRequest(POLICY, WINDOW, "target", target=0).usable == 0


@pytest.mark.parametrize(
    ("reason", "automatic"),
    [
        ("threshold", True),
        ("model_switch", True),
        ("manual", False),
        ("overflow", False),
        ("agent", False),
        ("target", False),
    ],
)
def test_only_what_nobody_asked_for_and_nothing_forces_has_to_gain_much(reason, automatic):
    assert FoldRequest(POLICY, WINDOW, reason).optional is automatic


def test_what_is_given_apart_is_the_system_prompt_and_the_tools():
    floor = Floor(system=5, tools=70, pins=900, unanswered=9, checkpoint=9)
    assert FoldRequest(POLICY, WINDOW, "manual", overhead=floor).overhead_tokens == 75


# ---- estimate


def test_chars_by_four_counts_every_part_of_a_message():
    reply = Message("assistant", (Thinking("1234"), Text("12345678"), call("c", "bash", command="ls")))
    assert message_estimate(reply, "chars/4", LETTERS) == math.ceil((4 + 8 + 4 + len('{"command":"ls"}')) / 4)
    assert message_estimate(tool("c", "12345"), "chars/4", LETTERS) == 2
    assert message_estimate(Message("user", (Media("image", data="A" * 9_999),)), "chars/4", LETTERS) == 1_200
    assert message_estimate(Message("user", (Opaque("anthropic", "x", {"a": 1}),)), "chars/4", LETTERS) == 2


def test_arguments_that_do_not_parse_count_as_they_came():
    broken = assistant("", call("c", "bash"))
    broken = Message("assistant", (type(broken.calls[0])("c", "bash", '{"comm'),))
    assert message_estimate(broken, "chars/4", LETTERS) == math.ceil((4 + 6) / 4)


def test_moldable_counts_text_and_reasoning_alone_and_ten_a_message():
    reply = Message("assistant", (Thinking("1234"), Text("123"), call("c", "bash", command="x" * 999)))
    assert message_estimate(reply, "chars/3.5+10", LETTERS) == 2 + 10
    assert message_estimate(tool("c", "x" * 9_999), "chars/3.5+10", LETTERS) == 10


def test_foldlines_own_estimator_is_the_counter():
    message = user("some words")
    assert message_estimate(message, "foldline", LETTERS) == message_tokens(message, LETTERS)
