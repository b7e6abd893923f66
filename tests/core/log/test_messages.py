import pytest
from tests.support.talk import assistant, call, image, reminder, result, results, signed, system, tool, user

from foldline.core.log.messages import Media, Message, Opaque, Text, Thinking, ToolResult, Usage, texts


def test_the_four_counts_of_usage_add_up_to_the_context():
    assert Usage(input=1, cache_read=20, cache_write=300, output=4_000).total == 4_321
    assert Usage().total == 0


def test_the_texts_of_a_message_are_joined_and_nothing_else_is_in_them():
    message = Message("user", (Text("one"), Media("image"), result("c", "not this"), Text("two")))
    assert message.text == "one\ntwo"
    assert Message("user").text == ""


def test_the_text_of_a_result_leaves_media_out():
    inner = (Text("a"), Media("image"), Opaque("anthropic", "search_result", {}), Text("b"))
    assert ToolResult("c", inner).text == "a\nb"


def test_calls_and_results_come_in_their_order():
    batch = assistant("look", call("a"), call("b"))
    assert [one.id for one in batch.calls] == ["a", "b"]
    assert batch.results == ()
    assert [one.call_id for one in results("a", "b", text="and?").results] == ["a", "b"]


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        (user("hi"), True),
        (image(), True),
        (results("c", text="and this?"), True),
        (results("c"), False),
        (Message("user"), False),
        (reminder(), False),
        (tool("c"), False),
        (system(), False),
        (assistant("hi"), False),
    ],
)
def test_a_prompt_is_what_a_person_wrote(message, asked):
    assert message.is_prompt is asked


def test_every_text_is_found_that_of_thinking_and_results_too():
    message = Message("user", (Text("a"), Thinking("b"), result("c", "d"), call("e"), Media("image")))
    assert list(texts(message)) == ["a", "b", "d"]
    assert list(texts(signed("done"))) == ["Let me think.", "done"]
