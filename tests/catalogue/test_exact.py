import sys

import pytest

from foldline.catalogue import exact
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.errors import InputError


def test_it_counts_with_the_real_vocabulary():
    counter: Counter = exact()
    assert counter.name == "o200k_base"
    assert counter.count("") == 0
    assert counter.count("hello world") == 2
    assert counter.count("你好，世界") <= 5
    assert message_tokens(Message("user", (Text("hello world"),)), counter) == 6


def test_special_tokens_are_text():
    assert exact().count("<|endoftext|>") > 1


def test_another_vocabulary():
    assert exact("cl100k_base").count("hello world") == 2
    with pytest.raises(InputError, match="gpt2000"):
        exact("gpt2000")


def test_awkward_text():
    counter = exact()
    assert counter.count(" " * 1_000_000) < 20_000
    assert counter.count("a" * 1_000_000) == 125_000
    assert counter.count("a\ud800b") >= 3


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "toktok", None)
    with pytest.raises(InputError, match=r"foldline\[tokens\]"):
        exact()
