"""Which dialect a list is in, and what is no list of messages."""

import pytest
from tests.dialects.samples import (
    ANTHROPIC,
    OPENAI,
    as_json,
    assistant,
    by_model,
    by_user,
    call,
    calling,
    image,
    result,
    text,
    thinking,
    tool_answer,
    use,
    user,
)

from foldline.dialects import decode_all, detect, get, names
from foldline.errors import DialectError

SYSTEM = {"role": "system", "content": "x"}


@pytest.mark.parametrize(
    ("messages", "name"),
    [
        (OPENAI, "openai-chat"),
        (ANTHROPIC, "anthropic"),
        ([], "openai-chat"),
        ([user("a"), assistant("b")], "openai-chat"),
        ([by_user(text("a"))], "openai-chat"),
        ([user("a"), calling(call())], "openai-chat"),
        ([tool_answer()], "openai-chat"),
        ([{"role": "function", "name": "f", "content": "x"}], "openai-chat"),
        ([by_user({"type": "image_url", "image_url": {"url": "x"}})], "openai-chat"),
        ([{**assistant("x"), "reasoning_content": "hm"}], "openai-chat"),
        ([user("a"), by_model(use())], "anthropic"),
        ([by_user(result())], "anthropic"),
        ([by_model(thinking(), text("x"))], "anthropic"),
        ([by_user(image())], "anthropic"),
        ([SYSTEM, user("a"), by_model(use())], "anthropic"),
        ([user("a"), {"role": "assistant", "content": [{"type": ["tool_use"]}]}], "openai-chat"),
        ([by_user({"text": "a"}), assistant("b")], "bedrock-converse"),
        (
            [by_user({"text": "a"}), by_model({"toolUse": {"toolUseId": "t", "name": "f", "input": {}}})],
            "bedrock-converse",
        ),
        ([by_user({"text": "a"}), calling(call()), tool_answer()], "openai-chat"),
    ],
)
def test_detect(messages, name):
    assert detect(messages) == name
    assert detect([as_json(message) for message in messages]) == name


@pytest.mark.parametrize("messages", [None, 5, "[]", b"[]", user("hi"), object()])
def test_what_is_no_list_is_refused(messages):
    with pytest.raises(DialectError, match="list of messages"):
        detect(messages)


@pytest.mark.parametrize("junk", [None, 5, "hi", {}, {"role": None}, {"type": "message"}, b"{", [user("hi")]])
def test_what_is_no_message_is_refused_with_its_place(junk):
    with pytest.raises(DialectError) as caught:
        detect([by_model(use()), junk])
    assert caught.value.index == 1
    with pytest.raises(DialectError):
        decode_all([user("x"), junk])


def test_names():
    assert set(names()) == {
        "anthropic",
        "bedrock-converse",
        "gemini",
        "openai-chat",
        "openai-responses",
        "ui-message",
    }
    assert [get(name).name for name in names()] == list(names())
    with pytest.raises(DialectError, match="anthropic, bedrock-converse, gemini, openai-chat"):
        get("gemni")


def test_decode_all_says_which_message():
    with pytest.raises(DialectError, match="message 1"):
        decode_all([user("hi"), {"role": "robot", "content": "x"}])
