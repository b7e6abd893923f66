"""Native messages as chat templates want them: user and assistant in turn, the system at the head."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.conversations import anthropic_chats, openai_chats

from foldline.core.checkpoint.checkpoint import checkpoint_split_off
from foldline.core.log.messages import Message, Text
from foldline.core.measure.overflow import refuses_roles
from foldline.dialects import get
from foldline.dialects.in_turn import NO_REPLY, applies_template, in_turn

CHATS = {"openai-chat": openai_chats, "anthropic": anthropic_chats}


def say(role, content, **more):
    return {"role": role, "content": content, **more}


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS = say("assistant", None, tool_calls=[CALL])
RESULT = {"role": "tool", "tool_call_id": "c", "content": "r"}


@pytest.mark.parametrize(
    ("messages", "joined"),
    [
        ([say("user", "a"), say("user", "b")], [say("user", "a\n\nb")]),
        (
            [say("user", "a"), say("user", [{"type": "text", "text": "b"}])],
            [say("user", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
        ),
        (
            [say("system", "s"), say("developer", "t"), say("user", "a"), say("system", "later")],
            [say("system", "s\n\nt"), say("user", "a\n\n[System message]\nlater")],
        ),
        (
            [say("user", "a"), say("assistant", "b"), CALLS, RESULT, say("user", "c")],
            [say("user", "a"), say("assistant", "b", tool_calls=[CALL]), RESULT, say("assistant", NO_REPLY),
             say("user", "c")],
        ),
    ],
)  # fmt: skip
def test_neighbours_of_one_role_are_joined(messages, joined):
    assert in_turn(messages, "openai-chat") == joined
    assert in_turn(joined, "openai-chat") == joined


def test_a_list_that_begins_with_the_assistant_gets_a_user_before_it():
    assert [m["role"] for m in in_turn([say("system", "s"), say("assistant", "a")], "openai-chat")] == [
        "system", "user", "assistant",
    ]  # fmt: skip


def test_items_of_responses_are_joined_by_their_own_parts():
    items = [say("user", "a"), say("user", [{"type": "input_text", "text": "b"}])]
    assert in_turn(items, "openai-responses") == [
        say("user", [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}])
    ]


@pytest.mark.parametrize("name", CHATS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_valid_list_stays_valid_and_grows_at_its_end(name, data):
    messages = data.draw(CHATS[name]())
    turned = in_turn(messages, name)
    assert get(name).validate(turned) == []
    said = [m["role"] for m in turned if m["role"] != "tool" and not m.get("tool_calls")]
    assert all(before != after for before, after in pairwise(said))
    shorter = in_turn(messages[:-1], name)
    assert turned[: max(0, len(shorter) - 1)] == shorter[:-1]


REFUSALS = (
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "Jinja Exception: After the optional system message, conversation roles must alternate user/assistant/...",
    'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
    "Unexpected role 'user' after role 'tool'",
    "System message must be at the beginning.",
    "Only user and assistant roles are supported!",
)


@pytest.mark.parametrize("text", REFUSALS)
def test_the_words_of_templates_are_known(text):
    assert refuses_roles(text)


@pytest.mark.parametrize("text", ["prompt is too long: 9 tokens > 8", "invalid role 'x'", "unknown model"])
def test_other_errors_are_none(text):
    assert not refuses_roles(text)


def test_a_hostile_answer_is_read_to_its_end():
    assert not refuses_roles(
        "only user and assistant" + " and" * 500
    )  # it once took 2 to the power of 500 steps


def test_only_servers_of_ones_own_are_known_to_apply_a_template():
    assert applies_template("openai-compatible:m@http://127.0.0.1:8080/v1")
    assert not applies_template("openai:gpt-5.2")
    assert not applies_template(None)


def test_a_checkpoint_that_was_joined_with_what_follows_is_found_again():
    text = '<foldline-checkpoint version="1" ack="0" quoted="0">\n<summary>\nS\n</summary>\n</foldline-checkpoint>'
    assert checkpoint_split_off(Message("user", (Text(f"{text}\n\nGo on."),))).parts == (
        Text(text),
        Text("Go on."),
    )
    alone = Message("user", (Text(text),))
    assert checkpoint_split_off(alone) is alone


def test_calls_in_a_row_stay_apart_among_the_items_of_responses():
    call = {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"}
    items = [
        {"type": "message", "role": "user", "content": "go"},
        call,
        {**call, "call_id": "b"},
        {"type": "function_call_output", "call_id": "a", "output": "A"},
        {"type": "function_call_output", "call_id": "b", "output": "B"},
    ]
    assert in_turn(items, "openai-responses") == items
