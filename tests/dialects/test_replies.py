"""Whole replies: the message to send back, usage without overlap, why the model stopped."""

import pytest
from pydantic import BaseModel
from tests.dialects.samples import assistant, by_model, call, text, thinking, use, user

from foldline.core.log.messages import Text, Thinking, ToolCall, Usage
from foldline.dialects import get
from foldline.errors import DialectError

CHAT = get("openai-chat")
CLAUDE = get("anthropic")


def completion(message, finish="stop", **usage):
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-5.2",
        "choices": [{"index": 0, "finish_reason": finish, "logprobs": None, "message": message}],
        "usage": usage or None,
    }


def claude_reply(*blocks, stop="end_turn", **usage):
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage or None,
    }


def test_a_chat_reply():
    native = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "parsed": {"x": 1},
        "reasoning_content": "hm",
        "tool_calls": [call()],
    }
    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": 50,
        "total_tokens": 1_050,
        "prompt_tokens_details": {"cached_tokens": 600, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    message = CHAT.decode_reply(completion(native, "tool_calls", **usage))
    assert message.parts == (Thinking("hm"), ToolCall("c1", "read", {"path": "a.py"}))
    assert message.usage == Usage(input=400, cache_read=600, output=50)
    assert (message.model, message.stop) == ("gpt-5.2", "tools")
    sendable = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call()]}
    assert CHAT.render([(message, ())]).messages == [sendable]


@pytest.mark.parametrize(
    ("details", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(input=10, output=2)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(6, 4, 0, 2)),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 5}},
            Usage(2, 3, 5, 0),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 30}}, Usage(0, 30, 0, 0)),
        ({"prompt_tokens": "many", "completion_tokens": None, "prompt_tokens_details": 5}, Usage()),
        ({"prompt_tokens": -4, "completion_tokens": True}, Usage()),
    ],
)
def test_usage_of_chat_replies(details, usage):
    assert CHAT.decode_reply(completion(assistant("x"), **details)).usage == usage


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "end"),
        ("tool_calls", "tools"),
        ("function_call", "tools"),
        ("length", "length"),
        ("content_filter", "error"),
        (None, None),
        ("new_reason", None),
    ],
)
def test_stops_of_chat_replies(reason, stop):
    assert CHAT.decode_reply(completion(assistant("x"), reason)).stop == stop


def test_a_spoken_reply_keeps_its_id_and_its_words():
    native = {
        "role": "assistant",
        "content": None,
        "audio": {"id": "a1", "data": "AAAA", "transcript": "Hello."},
    }
    message = CHAT.decode_reply(completion(native))
    assert message.text == "Hello."
    assert CHAT.render([(message, ())]).messages == [
        {"role": "assistant", "content": "Hello.", "audio": {"id": "a1"}}
    ]


def test_citations_of_a_reply_are_kept():
    native = {
        "role": "assistant",
        "content": "x",
        "annotations": [{"type": "url_citation"}],
        "tool_calls": [],
    }
    message = CHAT.decode_reply(completion(native))
    assert CHAT.render([(message, ())]).messages == [
        {**assistant("x"), "annotations": [{"type": "url_citation"}]}
    ]


@pytest.mark.parametrize("choices", [[], None, [5], [{}], [{"delta": {"content": "x"}}]])
def test_replies_without_a_message_are_refused(choices):
    with pytest.raises(DialectError, match="choices"):
        CHAT.decode_reply({"choices": choices})


def test_an_anthropic_reply():
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 90,
        "output_tokens": 5,
        "service_tier": "standard",
    }
    message = CLAUDE.decode_reply(claude_reply(thinking(), text("\n\n"), use(), stop="tool_use", **usage))
    assert message.parts == (Thinking("hm", "sig"), ToolCall("t1", "read", {}))
    assert message.usage == Usage(input=10, cache_read=900, cache_write=90, output=5)
    assert (message.model, message.stop) == ("claude-sonnet-4-5", "tools")
    assert CLAUDE.render([(message, ())]).messages == [by_model(thinking(), use())]


def test_what_a_cache_keeps_for_an_hour_is_counted_apart():
    kept = {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 70}
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": 90,
        "cache_creation": kept,
    }
    found = CLAUDE.decode_reply(claude_reply(text("hi"), **usage)).usage
    assert found == Usage(input=10, cache_write=90, output=5, cache_write_hour=70)
    assert found.total == 105


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", "end"),
        ("stop_sequence", "end"),
        ("tool_use", "tools"),
        ("pause_turn", "tools"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "error"),
        (None, None),
    ],
)
def test_stops_of_anthropic_replies(reason, stop):
    assert CLAUDE.decode_reply(claude_reply(text("x"), stop=reason)).stop == stop


def test_an_empty_reply_is_left_out_of_a_view():
    message = CLAUDE.decode_reply(claude_reply(input_tokens=3, output_tokens=1))
    assert message.parts == ()
    assert message.usage.total == 4
    assert CLAUDE.render([(message, ())]).messages == []


@pytest.mark.parametrize("dialect", [CHAT, CLAUDE], ids=lambda dialect: dialect.name)
def test_a_bare_message_is_read_as_one(dialect):
    for body in (user("hi"), {**assistant("hi"), "x": 1}):
        assert dialect.decode_reply(body) == dialect.decode(body)


class Inner(BaseModel):
    role: str
    content: str | None = None
    refusal: str | None = None


class Choice(BaseModel):
    message: Inner
    finish_reason: str


class Completion(BaseModel):
    model: str
    choices: list[Choice]
    usage: dict[str, int] | None = None


def test_sdk_objects():
    reply = Completion(
        model="m",
        choices=[Choice(message=Inner(role="assistant", content="hi"), finish_reason="stop")],
        usage={"prompt_tokens": 3, "completion_tokens": 1},
    )
    message = CHAT.decode_reply(reply)
    assert message.parts == (Text("hi"),)
    assert message.usage == Usage(input=3, output=1)
    assert CHAT.render([(message, ())]).messages == [assistant("hi")]
