import math

import pytest
from tests.core.decide.builders import LETTERS, assistant, call, entries, tool, user

from foldline.core.decide import estimate as estimating
from foldline.core.decide.estimate import Estimates, estimate, message_estimate, trigger_size
from foldline.core.decide.policy import Policy
from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, Usage
from foldline.core.measure.tokens import message_tokens


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
    assert estimate([reply, tool("c", "x" * 9_999), user("")], "chars/3.5+10", LETTERS) == 12 + 10 + 10


def test_foldlines_own_estimator_is_the_counter():
    messages = [user("some words"), assistant("more of them")]
    assert estimate(messages, "foldline", LETTERS) == sum(message_tokens(m, LETTERS) for m in messages)


KEPT = entries([
    (user("x" * 400), 7),
    (assistant("y" * 40, usage=Usage(input=50, cache_read=30, cache_write=20, output=15)), 7),
    (user("z" * 80), 7),
])  # fmt: skip


def size(policy, kept=KEPT, **more):
    return trigger_size(policy, kept, LETTERS, **more)


def test_a_trigger_looks_at_usage_and_the_policys_estimate_of_what_follows():
    assert size(Policy(name="p")) == 115 + 7
    assert size(Policy(name="p", estimator="chars/4")) == 115 + 20
    assert size(Policy(name="p", estimator="chars/4"), fresh_from=2, overhead=1_000) == 1_000 + 100 + 10 + 20


def test_a_trigger_can_look_at_the_last_input_alone():
    coop = Policy(name="p", estimator="chars/4", trigger_on="input")
    assert size(coop) == 100
    assert size(coop, KEPT[:1], overhead=9) == 109


def test_a_trigger_can_look_at_estimates_alone():
    moldable = Policy(name="p", estimator="chars/3.5+10", trigger_on="estimate")
    assert size(moldable, overhead=5_000, ratio=3.0) == (115 + 10) + (12 + 10) + (23 + 10)
    assert size(moldable, made=40, saved=60) == 180 - 20


@pytest.mark.parametrize("estimator", ["foldline", "chars/4", "chars/3.5+10"])
def test_a_running_estimate_is_the_sum_of_the_estimates(estimator):
    kept = entries([(user("word " * n), message_tokens(user("word " * n), LETTERS)) for n in range(9)])
    running = Estimates(estimator, LETTERS)
    assert running.total(kept) == estimate([e.message for e in kept], estimator, LETTERS)
    other = kept[:3]
    assert running.total(other) == estimate([e.message for e in other], estimator, LETTERS)


def test_a_running_estimate_looks_at_every_message_once(monkeypatch):
    looked: list[Message] = []
    kept = entries([(user(f"message {n}"), 1) for n in range(50)])
    running = Estimates("chars/4", LETTERS)
    monkeypatch.setattr(
        estimating, "message_estimate", lambda m, e, c: looked.append(m) or message_estimate(m, e, c)
    )
    for _ in range(3):
        before = running.total(kept)
    assert len(looked) == 50
    kept += entries([(user("one more"), 1)])
    assert running.total(kept) == before + message_estimate(user("one more"), "chars/4", LETTERS)
    assert len(looked) == 51
